package gateway

import "pgfsm/mcp/gateway/session"

// methodCancelled cancels a request, in both directions.
const methodCancelled = "notifications/cancelled"

const (
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"
)

// A side is who sends a message.
type side uint8

const (
	fromClient side = iota + 1
	fromServer
)

// eras are the eras of the protocol, as a set.
type eras uint8

const (
	stateful  eras = 1 << iota // up to 2025-11-25: initialize, sessions, requests of servers
	stateless                  // from 2026-07-28 on: each request declares everything
)

// served says what answers a method.
type served uint8

const (
	byGateway served = iota + 1 // the gateway itself
	byMachine                   // tools: the listing and every call pass the gates
	byTasks                     // the Tasks extension, for calls that wait
	byRelay                     // a server or the client: the message is relayed
	byLink                      // the link with the server; the client never sees it
)

// A method is one row of the table of methods.
type method struct {
	name         string
	from         side
	notification bool   // there is no answer
	needs        Expose // what the server must expose; zero: the method belongs to the protocol
	eras         eras   // in which it passes between the client and the gateway
	by           served
	why          string // what happens to it, for docs/reference/gateway-protocol.md
}

// methods are all methods that the gateway knows. Others are refused, in both directions.
var methods = []method{
	{"initialize", fromClient, false, 0, stateful, byGateway, "opens a session, and declares the exposed capabilities of the servers"},
	{"notifications/initialized", fromClient, true, 0, stateful, byGateway, "accepts it"},
	{"ping", fromClient, false, 0, stateful, byGateway, "answers it"},
	{"server/discover", fromClient, false, 0, stateless, byGateway, "answers with its revisions and capabilities, and without the instructions of servers"},
	{"subscriptions/listen", fromClient, false, 0, stateless, byGateway, "opens a stream of the notifications that the client asks for and the operator exposes"},
	{"notifications/cancelled", fromClient, true, 0, stateful | stateless, byGateway, "cancels the request, if the server's `cancellation` is exposed"},

	{"tools/list", fromClient, false, ExposeTools, stateful | stateless, byMachine, "lists the allowed tools on one page"},
	{"tools/call", fromClient, false, ExposeTools, stateful | stateless, byMachine, "makes the call if every gate allows it"},
	{"tasks/get", fromClient, false, ExposeTools, stateful | stateless, byTasks, "returns the state of a call that waits, if tasks are on"},
	{"tasks/update", fromClient, false, ExposeTools, stateful | stateless, byTasks, "acknowledges it; no task waits for input"},
	{"tasks/cancel", fromClient, false, ExposeTools, stateful | stateless, byTasks, "withdraws the call if it still waits for approvers"},

	{"resources/list", fromClient, false, ExposeResources, stateful | stateless, byRelay, "relays it"},
	{"resources/templates/list", fromClient, false, ExposeResources, stateful | stateless, byRelay, "relays it"},
	{"resources/read", fromClient, false, ExposeResources, stateful | stateless, byRelay, "relays it"},
	{"resources/subscribe", fromClient, false, ExposeResources, stateful, byRelay, "relays it"},
	{methodUnsubscribe, fromClient, false, ExposeResources, stateful, byRelay, "relays it"},
	{"prompts/list", fromClient, false, ExposePrompts, stateful | stateless, byRelay, "relays it"},
	{"prompts/get", fromClient, false, ExposePrompts, stateful | stateless, byRelay, "relays it"},
	{"completion/complete", fromClient, false, ExposeCompletion, stateful | stateless, byRelay, "relays it"},
	{"logging/setLevel", fromClient, false, ExposeLogging, stateful, byRelay, "relays it"},
	{"notifications/progress", fromClient, true, ExposeProgress, stateful, byRelay, "relays it to the server that sent the request"},
	{"notifications/roots/list_changed", fromClient, true, ExposeRoots, stateful, byRelay, "relays it"},

	{"ping", fromServer, false, 0, stateful, byLink, "answers it"},
	{"sampling/createMessage", fromServer, false, ExposeSampling, stateful, byRelay, "relays it if the client supports it; to a stateless client in a result"},
	{"elicitation/create", fromServer, false, ExposeElicitation, stateful, byRelay, "relays it if the client supports it; to a stateless client in a result"},
	{"roots/list", fromServer, false, ExposeRoots, stateful, byRelay, "relays it if the client supports it; to a stateless client in a result"},
	{"notifications/cancelled", fromServer, true, ExposeCancellation, stateful, byRelay, "relays it if the gateway relayed the cancelled request"},
	{"notifications/progress", fromServer, true, ExposeProgress, stateful | stateless, byRelay, "relays it during a request, under the client's progress token"},
	{"notifications/message", fromServer, true, ExposeLogging, stateful | stateless, byRelay, "relays it; to stateless clients during a request with a log level"},
	{"notifications/tools/list_changed", fromServer, true, ExposeTools, stateful | stateless, byGateway, "sends one itself when its tool listing is out of date"},
	{"notifications/prompts/list_changed", fromServer, true, ExposePrompts, stateful | stateless, byRelay, "relays it"},
	{"notifications/resources/list_changed", fromServer, true, ExposeResources, stateful | stateless, byRelay, "relays it"},
	{"notifications/resources/updated", fromServer, true, ExposeResources, stateful | stateless, byRelay, "relays it"},
	{"notifications/elicitation/complete", fromServer, true, ExposeElicitation, stateful, byRelay, "relays it"},
	{"notifications/subscriptions/acknowledged", fromServer, true, 0, stateless, byLink, "sends its own acknowledgement"},
}

// A methodKey is the key of a method.
type methodKey struct {
	from side
	name string
}

var methodsByName = func() map[methodKey]*method {
	index := make(map[methodKey]*method, len(methods))
	for i := range methods {
		index[methodKey{methods[i].from, methods[i].name}] = &methods[i]
	}
	return index
}()

// methodOf is the row of a method, or nil.
func methodOf(from side, name string) *method { return methodsByName[methodKey{from, name}] }

// in reports whether a revision has the method.
func (m *method) in(protocol string) bool {
	if protocol >= session.Stateless {
		return m.eras&stateless != 0
	}
	return m.eras&stateful != 0
}
