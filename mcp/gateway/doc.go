// Package gateway lets MCP clients use MCP servers as far as the operator allows: all servers at
// one endpoint, and each at its own.
//
//	g, err := gateway.New(gateway.Options{Servers: …, Upstreams: …, Calls: …, Front: …})
//	err = g.Serve(ctx, on)                               // or g.Handler() in another server
//	err = g.ServeStdio(ctx, os.Stdin, os.Stdout, client) // for a client that starts the gateway
//
// A request goes down these layers, and no function calls one of a layer above it:
//
//	front                                     reads it from a connection, authenticates its client and checks it
//	dispatch.go                               finds its row in the table of methods.go
//	tools_call.go, tools_list.go, lists.go,   answer it: one file for each kind of request
//	relay.go, subscribe.go, log_level.go, …
//	Calls (internal/runner)                   takes a tools/call through the gates; lists tools over ToolCall.Connect
//	links.go                                  find the link with the server that the client uses, or connect
//	upstream                                  sends it
//
// A link passes the server's messages to server_messages.go, by a callback. From there they go to
// the client's request or session.
//
// Clients and servers speak a revision with sessions (up to 2025-11-25) or the stateless one
// (2026-07-28). The gateway translates requests and results between the two. Questions of servers,
// and subscriptions to resources, pass only if both sides speak the same kind.
package gateway
