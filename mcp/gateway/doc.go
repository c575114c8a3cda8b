// Package gateway is the face that pgfsm shows to MCP clients: one endpoint for all servers, and one for each.
//
//	g, err := gateway.New(gateway.Options{Servers: …, Upstreams: …, Calls: …, Hosts: loopback.Hosts(on)})
//	err = g.Serve(ctx, on)                            // or g.Handler() in a server of one's own
//	err = g.ServeStdio(ctx, os.Stdin, os.Stdout, who) // for a client that starts the gateway
//
// The front takes messages from clients: it looks where a request comes from and whose it is, bounds what it may cost, reads its body
// once and strictly, finds out which revision of MCP is in force for it, and holds it to that revision's rules. What it refuses, it
// refuses as JSON-RPC errors with a code in their data that stays. The dispatcher gives the rest its meaning, and asks [Calls] about
// every tools/call.
//
// Three transports lead here. Streamable HTTP at /mcp and /servers/{name}/mcp serves the stateless revision 2026-07-28, in which every
// request says of itself all there is to know, and those before it, which have sessions. HTTP with a channel at /sse and
// /servers/{name}/sse is that of revision 2024-11-05. Standard input and output serve both kinds. A request is of the stateless kind if
// its header MCP-Protocol-Version says so, or, without a session, its _meta does.
//
// A session belongs to the identity and the endpoint that opened it; to anybody else it is as unknown as none. A lost connection
// cancels a stateless request and nothing of a session: its client may take up the stream again with Last-Event-ID, as far as what was
// said is kept. A client who does not read, does not write or does not speak is cut off.
package gateway
