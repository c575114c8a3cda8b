// Package upstream is the client of upstream MCP servers. It connects over stdio, SSE and
// streamable HTTP, lists tools, and sends one tools/call at a time, each against a permit.
//
//	u := upstream.New(servers, upstream.Limits{}, upstream.Info{Name: "pgfsm", Version: "1"}, secret.New(values)) // starts nothing
//	defer u.Close()
//	c := u.Client("ann")                                // of one identity
//	defer c.Close()
//	listings := c.List(ctx)                             // all servers at once
//	changed := c.Changed("docs", listings[0].Number)    // has the server announced other tools since?
//	answer := c.Call(ctx, upstream.Call{Server: "docs", Tool: "fetch", Arguments: canonicalJSON, RunID: id,
//		Listing: listings[0].Number})
//
// pgfsm run, pgfsm tools and approved calls use these methods: the runs of one identity share one
// session with each server. The gateway opens the sessions of its clients:
//
//	l, err := u.Link(ctx, "docs", upstream.Peer{Owner: "ann", Protocol: "2025-11-25", Capabilities: caps, OnMessage: tell})
//	defer l.Release()
//	listing, err := l.Listing(ctx, time.Minute)                // the server's tools, at most a minute old
//	reply, err := l.Request(ctx, "resources/read", params, on) // any request but a call
//	answer := l.Call(ctx, upstream.Call{…, Listing: listing.Number}, on)
//
// Both are a [Link]. It speaks MCP without the Go SDK's client, because results and parameters must
// pass byte for byte.
//
// # The one way to tools/call
//
// A tools/call leaves the process only against a permit for exactly these bytes: tool, arguments,
// the members that repeat an earlier call, and _meta. [Link.Call] makes the permit; the connection
// compares every byte right before it sends them, over every transport, and consumes the permit. A
// call without a matching permit ends the session with [CodePermit]. The zero permit permits
// nothing. Of many calls with one run id, one is sent. A test finds every other use of the method's
// name in the module, and holds the functions that send bytes to a table.
//
// A call is sent at most once. Its HTTP body cannot be rewound, so net/http repeats nothing;
// redirects are refused; a 401, 404 or 503 ends the call. If an event stream is cut, the rest is
// asked for with a GET where the server gives its events ids (MCP 2025-11-25), which repeats
// nothing.
//
// # Raw bytes
//
// Results come back byte for byte. The JSON-RPC envelope of every message is read strictly: one
// object, no member twice, nothing behind it, an id that is one of ours, a result or an error. Over
// HTTP an answer must belong to the request that it came for. The gates judge what is inside a
// result. Request ids and progress tokens are chosen here; the caller's progress token is put back.
// Nothing that begins with io.modelcontextprotocol/ passes, except the log level.
//
// Requests of the server, except ping, wait for [Link.Answer], or are answered with "method not
// found" if the peer takes none.
//
// # Tools that change
//
// If a server sends tools/list_changed after its listing began, the listing is out of date: Changed
// reports it, and a call by that listing is not sent. The check happens right before the call
// leaves; the session lives on. A change that is announced during a listing makes the listing start
// again, at most three times, because many servers announce tools while they start. A server that
// changes its tools and says nothing cannot be found out.
//
// Over streamable HTTP a server can announce a change only on a stream, which the listing opens in
// the background: see openStream.
//
// Messages that nobody asked for are limited by rate (Limits.Unasked a minute). A server of whose
// requests more than a thousand wait for our answers loses its session.
//
// # What became of a call
//
//	effect    code                 situation
//	not_sent  call_invalid         no run id, no tool, arguments not a canonical JSON object, or members that may not be sent
//	not_sent  server_unknown       no such server configured
//	not_sent  client_tool          a coding agent executes the tool itself
//	not_sent  server_unreachable   no working session, or no connection could be opened for the call
//	not_sent  tool_definition_changed  the server says that its tools have changed since they were listed
//	not_sent  permit_refused       the run has called before, or the connection found no permit for the bytes
//	not_sent  closed               after Close
//	not_sent  cancelled, server_timeout   the context ended before a byte was written
//	unknown   cancelled, server_timeout   written, and no answer in time
//	unknown   server_unreachable   written, and the connection was lost or the HTTP status was no success
//	unknown   server_died          written, and the child process ended
//	unknown   server_protocol      written, and what came cannot be read as the answer
//	unknown   redirect_refused     written, and answered with a redirect
//	unknown   rpc_error            answered with a JSON-RPC error: even "invalid params" is only the server's word
//	done      result_too_large     answered with more than Limits.ResultBytes
//	done      (none)               answered with a result, be it one that says isError
//
// "Written" means that a byte may have left this process. A message over the size limit counts as
// the answer if it was the only call in flight on its session; otherwise the effect is unknown.
//
// # Servers that are down
//
// A [Listing] that is down has one of the codes server_unreachable, server_timeout,
// server_protocol, server_died, catalog_too_large, redirect_refused, origin_refused, cancelled or
// closed; a session that cannot be opened also too_many_sessions. A failing server removes only its
// own tools. The next List tries it again; Call never connects. Over HTTP a server that cannot be
// reached, or answers with an error status, fails the request; one that sends malformed messages,
// redirects, or has forgotten the session, ends the session. It has forgotten the session if it
// answers one of its requests with 404 or 410, refuses a list with any status, or refuses a ping
// after another request.
//
// # HTTP
//
// Only the configured origin (scheme, host, port) is ever spoken to, also when an SSE server names
// another endpoint. Configured headers go there and nowhere else, over plain http only to loopback,
// which is checked on the connection too. HTTPS_PROXY and NO_PROXY are obeyed for https to other
// machines; plain http and loopback never use a proxy. There is no HTTP/2 and no compression.
//
// # Access tokens
//
// A server with [ClientCredentials] gets an access token with every request, from the token
// endpoint that they name. All links with the server share it until it expires. The token endpoint
// has the rules of servers: no redirects, no HTTP/2, plain http only to loopback, 1 MiB of a
// response. A token is registered as a secret before it is used, so it is masked wherever a server
// repeats it.
//
// After a 401 the token is dropped, unless it came less than ten seconds ago and the server has
// never accepted it. The request is sent once more with another token, except for a tools/call,
// which ends as unknown: only the next request has another token. A failed token request fails the
// request that needed it, and nothing is sent to the server.
//
// # Tools of a client
//
// A server of [TypeClient] stands for a coding agent, which executes its tools itself. List gives the
// tools of [Server.ToolList]; no connection and no process belongs to it. Link and Call refuse it
// with client_tool.
//
// # Child processes
//
// A stdio server gets PATH, HOME, LANG and TMPDIR of our environment and the variables that its
// configuration names. It leads its own process group. Close ends its input, waits a second, sends
// SIGTERM to the group, waits a second, and kills the group; a child that missed a deadline or
// broke the protocol is killed at once. If the child dies, the last line of its stderr, escaped and
// without secrets, is part of the reason.
package upstream
