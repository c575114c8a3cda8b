// Package demo provides three small MCP servers with made-up content: something to run pgfsm
// against without a network, a key or an account.
//
//	mcp-sharepoint   search_sharepoint          fetch_sharepoint_doc   delete_sharepoint_doc
//	mcp-servicenow   search_servicenow_tickets  get_ticket             close_ticket
//	mcp-policy-kb    search_policy_kb           fetch_policy_entry     delete_policy_entry
//
// The first two of each only read and say so in their annotations; the third changes something.
// Each server also has a resource and a prompt, and lists its tools in two pages. The declarations
// and the content are in the folder data.
//
// The output schemas of the six reading tools are the files of package config, where the demo
// configuration registers them too. An id that does not exist is an ordinary answer with the status
// NOT_FOUND and no content. Arguments that do not fit the inputSchema are a tool error (isError)
// and change nothing.
//
// The servers that [Servers] returns share nothing. A deletion is seen by every client of the same
// [Server] and by no other server, and [Server.Calls] says which calls arrived, refused ones
// included.
//
// [Listen] binds one port for each server, on loopback only: nobody is authenticated here. It
// serves the older HTTP+SSE transport at /sse and streamable HTTP at /mcp, there in the sessionless
// revision of 2026 and in the ones before it.
package demo
