// Package upstream is the client side towards upstream MCP servers: it connects over stdio, SSE and streamable HTTP, lists
// tools, and sends one tools/call at a time, each against a permit.
//
//	u, err := mcp.New(servers, mcp.Limits{}, mcp.Info{Name: "pgfsm", Version: "1"}, secret.New(values)) // starts nothing
//	defer u.Close()
//	listings := u.List(ctx)                                                        // all servers at once
//	changed := u.Changed("docs", listings[0].Number)                               // says it that its tools changed?
//	answer := u.Call(ctx, mcp.Call{Server: "docs", Tool: "fetch", Arguments: canonicalJSON, RunID: id,
//		Listing: listings[0].Number})
//
// The protocol is spoken by the official Go SDK, in the revision that it negotiates with each server. Everything that
// the guarantees rest on is kept away from it, in three layers around its connections. A gateway, which passes on what
// others say, speaks it without the SDK, over a link for each of its clients: see Links.
//
// # The one way to tools/call
//
// The connection under the SDK's client is wrapped. It sends the requests of a client that shakes hands, lists and
// calls, and nothing else; a tools/call only if the context of the call carries a permit for exactly its name and its
// argument bytes. The first matching write consumes the permit. Below, the HTTP client and the pipe consume it a second
// time when the bytes leave the process. A message without permit ends the session with [CodePermit]. The zero permit
// calls nothing, only Upstreams.Call makes one that does, and of many Calls with one run id one makes it. A test here
// finds every other use of the SDK's CallTool, and of the method's name, in the module, and holds the functions of this
// package that bytes leave by to a table.
//
// A call is sent at most once. It has a connection of its own (HTTP/1.1), its body cannot be rewound, so net/http
// repeats nothing; redirects are refused; a 401, a 404 "session not found" or a 503 ends the call; interrupted event
// streams are not resumed; the SDK's automatic rounds of input are off. A result that asks for input is a result.
//
// # Raw bytes
//
// Results come back byte for byte. The SDK decodes a harmless substitute instead, so its typed results, which round
// integers and drop unknown members, are never looked at. Before the SDK sees a message, the JSON-RPC envelope is read
// strictly: one object, no member twice, nothing behind it, the id exactly one of ours, a result or an error. On HTTP
// an answer must be to the request that it came for. Inside a result nothing is judged here: the gates do that. Of the
// handshake only the protocol revision and the server's name and version are kept; instructions end there. Requests of
// the server, except ping, are answered with "method not found" before anything reads their params; notifications are
// dropped, and one of them is heard before.
//
// # Tools that change
//
// A server that says tools/list_changed after its listing began has changed: Changed names it, and Call sends it
// nothing until it is listed again. Call looks in the guarded connection, right before the message leaves; what has
// been read by then stops the call, and the session lives on. A change announced before the first listing means
// nothing. One that is announced during a listing makes List ask again, at most three times: many servers announce
// tools while they start. A server that changes its tools and says nothing cannot be found out, and what it says after
// the call left comes too late.
//
// Over stdio and SSE a server can say so at any time. Over streamable HTTP it needs a stream, which List opens in the
// background if the server declares tools.listChanged: a GET up to revision 2025-11-25, subscriptions/listen, which
// stdio needs too, from 2026-07-28 on. Nothing waits for the stream, so a change in the instant before it is open is
// missed. A server that has none (405, 404, a redirect, a page) is not asked again in the session; after a stream that
// ended, the next List asks again. A stream does not end a session by ending, only by what it says: what is no strict
// JSON-RPC, an answer, a message over the limits.
//
// The mark belongs to the session, not to a run. Where several runs share Upstreams, the List of one clears it for
// all, also for one that was judged by an older listing; such runs have to compare their listings themselves.
//
// What nobody asked for is limited by rate (Limits.Unasked a minute), so that a healthy session may live for ever. A
// server of whose requests more than a thousand wait for it to take our answers loses its session.
//
// # Links
//
//	l, err := u.Link(ctx, "docs", mcp.Peer{Protocol: "2025-11-25", Capabilities: caps, Tell: tell})
//	defer l.Close()
//	kept, err := l.Listing(ctx, time.Minute)                 // the server's tools, not older than that
//	reply, err := l.Request(ctx, "resources/read", params, on) // any request but a call
//	answer := l.Call(ctx, mcp.Call{…, Listing: kept.Number}, on)
//
// A [Link] is one session with one server, for one client. Results, errors, params of notifications and of requests pass
// byte for byte; ids and progress tokens are the link's own, the caller's token is put back. What the server says goes to
// the request that it came with, else to the peer. A message is read once, as strictly as above; a request or notification
// that has two readings inside is not passed on. Requests of the server wait for [Link.Answer], except ping. Those that come
// with a request of ours are forgotten when it is over.
//
// A link's calls are held to the same rules as all others, by the same set of runs. Its permit covers the whole message:
// name, arguments, what repeats an earlier call (Extra) and _meta; every byte is compared right before it leaves, over
// whichever transport, and a message that differs ends the link. Nothing that begins with io.modelcontextprotocol/ crosses
// it, but for the log level; it puts its own there where the revision wants it.
//
// It speaks the kind of revision that its client does (with a handshake up to 2025-11-25, without from 2026-07-28 on),
// and, if the server does not, the other; which one it was is remembered for the next link, and never taken for granted.
// The HTTP connections of a server are shared by its links and kept alive. On one that the server has just closed a call
// may be lost: it is reported as unknown and not sent again. The stream of a call that was cut is asked for again with a
// GET where its events have ids (MCP 2025-11-25), which repeats nothing. A listing is kept until the server says that its
// tools changed; nothing but Close and faults of the connection end a link. HTTP is connectionless: a server that cannot be
// reached, or answers with a status, costs the request; one that lies, redirects, or has forgotten the session, the link.
//
// # How long a call may take
//
// Every call asks its server for progress, with a token that no caller has chosen: a link's is the id of the request, a session's
// is counted. The permit covers the token as it covers the arguments. A call ends when the server has neither answered nor reported
// progress for the server's Timeout, and at TimeoutTotal at the latest. The Timeout of a link's call stands still while the server
// waits for people.
//
// # What became of a call
//
//	effect    code                 situation
//	not_sent  call_invalid         no run id, no tool, arguments not a canonical JSON object
//	not_sent  server_unknown       no such server configured
//	not_sent  server_unreachable   no working session, or no connection could be opened for the call
//	not_sent  tool_definition_changed  the server says that its tools have changed since they were listed
//	not_sent  call_invalid         for a link also: another server, or Extra, Meta or Header that may not be sent
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
// "Written" means that a byte may have left this process. A message over the size limit counts as the answer if it was
// the only call in flight on its session; otherwise the effect is unknown.
//
// # Servers that are down
//
// A [Listing] that is down has one of the codes server_unreachable, server_timeout, server_protocol, server_died,
// catalog_too_large, redirect_refused, origin_refused, cancelled or closed; a link that cannot be made also
// too_many_sessions. The server has no session then, and takes
// only its own tools away. The next List tries it again; Call never connects.
//
// # HTTP
//
// Only the configured origin (scheme, host, port) is ever spoken to, also when an SSE server names another endpoint.
// Configured headers go there and nowhere else, over plain http only to loopback, which is checked on the connection
// too. HTTPS_PROXY and NO_PROXY are obeyed for https to other machines; plain http and loopback never use a proxy.
// There is no HTTP/2 and no compression.
//
// # Child processes
//
// A stdio server gets PATH, HOME, LANG and TMPDIR of our environment and what its configuration names. It leads its own
// process group. Close ends its input, waits a second, sends SIGTERM to the group, waits a second, and kills the group;
// a child that missed a deadline or broke the protocol is killed at once. The last line of its stderr, escaped and
// without secrets, is part of the reason if it dies.
package upstream
