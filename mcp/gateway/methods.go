package gateway

import "pgfsm/mcp/gateway/session"

// Methods that the gateway treats differently.
const (
	methodInitialize  = "initialize"
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"
	methodListen      = "subscriptions/listen"
	methodSetLevel    = "logging/setLevel"
	methodElicit      = "elicitation/create"

	noteCancelled  = "notifications/cancelled"
	noteProgress   = "notifications/progress"
	noteMessage    = "notifications/message"
	noteTools      = "notifications/tools/list_changed"
	notePrompts    = "notifications/prompts/list_changed"
	noteResources  = "notifications/resources/list_changed"
	noteUpdated    = "notifications/resources/updated"
	noteSubscribed = "notifications/subscriptions/acknowledged"
)

// MethodCall is the method of calls.
const MethodCall = "tools/call"

// A sender is the side that sends a message.
type sender uint8

const (
	fromClient sender = iota + 1
	fromServer
)

// revisions is a set of kinds of protocol revisions.
type revisions uint8

const (
	stateful  revisions = 1 << iota // up to 2025-11-25: initialize, sessions, requests of servers
	stateless                       // from 2026-07-28 on: each request declares everything
)

// A handler names the function that answers a method.
type handler uint8

const (
	byInitialize handler = iota + 1 // Gateway.initialize
	byDiscover                      // Gateway.discover
	byPing                          // an empty result
	byListen                        // Gateway.serveListen
	byToolsList                     // Gateway.listTools
	byToolsCall                     // Gateway.callTool
	byTasks                         // Gateway.serveTask, for calls that wait
	// Gateway.answerList: one server's list is relayed, those of all servers are joined.
	byLists
	// Gateway.relayRequest, or for messages of servers the functions of server_messages.go.
	byRelay
	bySubscription // Gateway.subscribeResource
	byLogLevel     // Gateway.setLevel
	// The front, or the link with the server: the other side never sees the message.
	byFront
)

// A method is one row of the table of methods.
type method struct {
	name         string
	from         sender
	notification bool      // the message gets no answer
	needs        Expose    // features that the server must expose; zero: the method belongs to the protocol
	revisions    revisions // revisions between the client and the gateway in which the method passes
	handler      handler
	why          string // explanation for docs/reference/gateway-protocol.md
}

const both = stateful | stateless

// methods lists all methods that the gateway knows. It refuses others, in both directions.
var methods = []method{
	{methodInitialize, fromClient, false, 0, stateful, byInitialize,
		"opens a session, and declares the exposed capabilities of the servers"},
	{"notifications/initialized", fromClient, true, 0, stateful, byFront, "accepts it"},
	{"ping", fromClient, false, 0, stateful, byPing, "answers it"},
	{"server/discover", fromClient, false, 0, stateless, byDiscover,
		"answers with its revisions and capabilities, and without the instructions of servers"},
	{methodListen, fromClient, false, 0, stateless, byListen,
		"opens a stream of the notifications that the client asks for and the operator exposes"},
	{noteCancelled, fromClient, true, 0, both, byFront, "cancels the request, if the server's `cancellation` is exposed"},

	{"tools/list", fromClient, false, ExposeTools, both, byToolsList, "lists the allowed tools on one page"},
	{MethodCall, fromClient, false, ExposeTools, both, byToolsCall, "makes the call if every gate allows it"},
	{"tasks/get", fromClient, false, ExposeTools, both, byTasks,
		"returns the state of a call that waits, if tasks are on"},
	{"tasks/update", fromClient, false, ExposeTools, both, byTasks, "acknowledges it; no task waits for input"},
	{"tasks/cancel", fromClient, false, ExposeTools, both, byTasks,
		"withdraws the call if it still waits for approvers"},

	{"resources/list", fromClient, false, ExposeResources, both, byLists, "relays it"},
	{"resources/templates/list", fromClient, false, ExposeResources, both, byLists, "relays it"},
	{"resources/read", fromClient, false, ExposeResources, both, byRelay, "relays it"},
	{methodSubscribe, fromClient, false, ExposeResources, stateful, bySubscription,
		"relays it to a server with sessions"},
	{methodUnsubscribe, fromClient, false, ExposeResources, stateful, bySubscription,
		"relays it to a server with sessions"},
	{"prompts/list", fromClient, false, ExposePrompts, both, byLists, "relays it"},
	{"prompts/get", fromClient, false, ExposePrompts, both, byRelay, "relays it"},
	{"completion/complete", fromClient, false, ExposeCompletion, both, byRelay, "relays it"},
	{methodSetLevel, fromClient, false, ExposeLogging, stateful, byLogLevel, "relays it"},
	{"notifications/roots/list_changed", fromClient, true, ExposeRoots, stateful, byRelay,
		"relays it to servers with sessions"},

	{"ping", fromServer, false, 0, stateful, byFront, "answers it"},
	{"sampling/createMessage", fromServer, false, ExposeSampling, stateful, byRelay,
		"relays it if the client has a session and supports it"},
	{methodElicit, fromServer, false, ExposeElicitation, stateful, byRelay,
		"relays it if the client has a session and supports it"},
	{"roots/list", fromServer, false, ExposeRoots, stateful, byRelay,
		"relays it if the client has a session and supports it"},
	{noteCancelled, fromServer, true, ExposeCancellation, stateful, byRelay,
		"relays it if the gateway relayed the cancelled request"},
	{noteProgress, fromServer, true, ExposeProgress, both, byRelay,
		"relays it during a request, under the client's progress token"},
	{noteMessage, fromServer, true, ExposeLogging, both, byRelay,
		"relays it; to stateless clients during a request with a log level"},
	{noteTools, fromServer, true, ExposeTools, both, byRelay, "sends one itself when its tool listing is out of date"},
	{notePrompts, fromServer, true, ExposePrompts, both, byRelay,
		"relays it, except from a stateless server to a session"},
	{noteResources, fromServer, true, ExposeResources, both, byRelay,
		"relays it, except from a stateless server to a session"},
	{noteUpdated, fromServer, true, ExposeResources, both, byRelay,
		"relays it if client and server speak the same kind of revision"},
	{"notifications/elicitation/complete", fromServer, true, ExposeElicitation, stateful, byRelay, "relays it"},
	{noteSubscribed, fromServer, true, 0, stateless, byFront, "sends its own acknowledgement"},
}

// A methodKey is the key of a method.
type methodKey struct {
	from sender
	name string
}

var methodsByName = func() map[methodKey]*method {
	index := make(map[methodKey]*method, len(methods))
	for i := range methods {
		index[methodKey{methods[i].from, methods[i].name}] = &methods[i]
	}
	return index
}()

// methodOf returns the row of a method, or nil.
func methodOf(from sender, name string) *method { return methodsByName[methodKey{from, name}] }

// existsIn reports whether a revision has the method.
func (m *method) existsIn(protocol string) bool {
	if protocol >= session.Stateless {
		return m.revisions&stateless != 0
	}
	return m.revisions&stateful != 0
}
