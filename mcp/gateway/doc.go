// Package gateway lets MCP clients use MCP servers as far as the operator allows: all servers at one endpoint, and each at its own.
//
//	g, err := gateway.New(gateway.Options{Servers: …, Upstreams: …, Calls: …, Hosts: loopback.Hosts(on)})
//	err = g.Serve(ctx, on)                               // or g.Handler() in another server
//	err = g.ServeStdio(ctx, os.Stdin, os.Stdout, client) // for a client that starts the gateway
//
// One message goes this way. Package front reads it from a connection, authenticates its client and checks it; package session has the
// client's session. [Gateway.Dispatch] looks the method up in the table of methods.go. tools/call goes to [Calls], which decides, records and
// makes the call; requests for resources, prompts and completions are relayed to a server; the gateway answers the rest itself. What servers
// ask clients is carried by package ask.
//
// A link is a session with one server. A client session has its own links. Stateless clients of one identity share links, unless the server
// may send questions: then each request has a dedicated link.
package gateway
