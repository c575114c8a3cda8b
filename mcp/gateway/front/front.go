// Package front accepts requests from MCP clients over HTTP, and over standard input and output.
//
//	f := front.New(front.Settings{Servers: names, Hosts: loopback.Hosts(on)}, front.Hooks{}, table, dispatcher)
//	err := f.Serve(ctx, on, drain)          // or http.Handler(f) in another server
//	err = f.ServeStdio(ctx, in, out, client) // for a client that starts the gateway
//
// Streamable HTTP is at /mcp and /servers/{name}/mcp. It serves the stateless revision 2026-07-28
// and those before it, which have sessions. A request is stateless if its header
// MCP-Protocol-Version says so or, without a session, its _meta does. The HTTP+SSE transport of
// revision 2024-11-05 is at /sse and /servers/{name}/sse.
//
// The front checks the origin and the token of a request, reads its body once and strictly, applies
// the rules of its revision, and gives it to the [Dispatcher]. It answers a refused request with a
// JSON-RPC error whose data has a stable code. A lost connection cancels a stateless request, but
// not a request of a session: its client may continue the stream with Last-Event-ID. A client that
// stalls is disconnected.
package front

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"pgfsm/internal/web"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// A Dispatcher answers messages; pgfsm's is gateway.Gateway. Dispatch returns the whole message
// that answers a request, and nil for notifications and responses.
type Dispatcher interface {
	Dispatch(context.Context, *session.Request) []byte
}

// Settings are the part of a front that can be replaced while it serves. A request keeps the same
// settings to its end.
type Settings struct {
	Servers []string // servers that have an endpoint of their own
	Hosts   []string // values of the Host header that are served; an Origin must be one of them too
	// Clients verifies the client of a request. Nil: no credentials are valid.
	Clients web.Authenticator
	// Askers verifies clients that ask about calls which they make themselves. Nil: no credentials are valid.
	Askers   web.Authenticator
	Required bool      // no client may be [Anonymous]
	Metadata *Metadata // for OAuth clients; nil: tokens are not from an authorization server
}

// Hooks are functions that a front calls. Each may be nil.
type Hooks struct {
	// RefusedScope is called for each request that is refused because its token lacks scopes. The
	// endpoint is a path.
	RefusedScope func(ctx context.Context, endpoint string, lacking *web.ScopeError)
	// Limit returns the seconds after which the client may send another request, and the reason;
	// zero: it may send one now. It is called once for each request, before the request is read.
	// Nil: requests are not limited.
	Limit func(client session.Identity, says *policy.Identity) (seconds int, why string)
	// Status returns the state of a run of the client as JSON; nil if the client has no such run.
	// Without it there is no GET /status/{run}.
	Status func(ctx context.Context, client session.Identity, run string) ([]byte, error)
	// Delegator answers clients that make calls themselves. Nil: there are no such paths.
	Delegator Delegator
}

// A Front is an HTTP handler. It also serves standard input and output.
type Front struct {
	hooks      Hooks
	table      *session.Table
	dispatcher Dispatcher
	active     atomic.Pointer[settings]
	streams    sync.Map // open streams of revision 2024-11-05: *connection by id
	timeouts   timeouts
}

// settings holds [Settings] with an index.
type settings struct {
	Settings
	guard     *web.Guard
	endpoints map[string]string // servers by the paths of their endpoints; all servers have the empty name
}

// New returns a front. The table must be the one that the dispatcher uses.
func New(s Settings, h Hooks, t *session.Table, d Dispatcher) *Front {
	f := &Front{hooks: h, table: t, dispatcher: d, timeouts: defaultTimeouts}
	f.Replace(s)
	return f
}

// Replace makes the front serve requests with other settings from now on.
func (f *Front) Replace(s Settings) {
	next := &settings{
		Settings:  s,
		guard:     web.NewGuard(s.Hosts, headerLastEvent),
		endpoints: endpointServers(s.Servers),
	}
	f.active.Store(next)
}

// An exchange is one HTTP request and its response.
type exchange struct {
	front    *Front
	settings *settings
	w        http.ResponseWriter
	r        *http.Request
	ctl      http.ResponseController
	from     session.Identity
	identity *policy.Identity // the identity provider's claims about the client
	// The client was authenticated by [web.AuthenticateCall], which is enough for a tools/call only.
	callsOnly bool
	endpoint  string
	conn      *web.Conn // nil on a listener of another server
	reserved  int       // memory that the body takes from the budget
}

// ServeHTTP answers one HTTP request.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{
		front:    f,
		settings: f.active.Load(),
		w:        w,
		r:        r,
		ctl:      *http.NewResponseController(w),
		conn:     web.ConnOf(r.Context()),
	}

	defer x.releaseBody()

	if refused := x.serveRequest(); refused != nil {
		x.writeRefusal(refused, nil)
	}
}

// Paths, or their first or last elements.
const (
	pathMCP     = "/mcp"
	pathServers = "/servers/" // followed by the name of a server
	pathStatus  = "/status/"  // followed by the id of a run
)

// endpointServers returns the paths at which clients connect, with the server of each. All servers
// have the empty name.
func endpointServers(servers []string) map[string]string {
	byPath := map[string]string{pathMCP: "", pathSSE: ""}
	for _, name := range servers {
		byPath[pathServers+name+pathMCP], byPath[pathServers+name+pathSSE] = name, name
	}
	return byPath
}

// serveRequest authenticates the client and serves the request by its path and method.
func (x *exchange) serveRequest() (refused *refusal) {
	if refused = x.settings.checkOrigin(x.r); refused != nil {
		return refused
	}

	// Metadata is for clients that have no token yet, so it comes before authentication.
	path := x.r.URL.EscapedPath() // escaped, which has one spelling: a proxy may decide by the path
	if endpoint, ok := strings.CutPrefix(path, pathMetadata); ok && x.settings.Metadata != nil {
		return x.serveMetadata(endpoint)
	}

	if owned, refused := x.serveDelegation(path); owned {
		return refused
	}

	verify := web.Authenticator.Authenticate
	if x.callsOnly = x.r.Method == http.MethodPost && strings.HasSuffix(path, pathMCP); x.callsOnly {
		verify = web.AuthenticateCall // servePost confirms the client of other messages
	}
	if x.from, x.identity, refused = x.authenticateBy(verify, x.r); refused != nil {
		return refused
	}

	if x.from.Name != session.Anonymous {
		web.Authenticated(x.r.Context(), x.from.Name)
	}

	if x.r.Method != http.MethodDelete { // a DELETE only frees what the client holds
		if refused = x.front.checkRate(x.from, x.identity); refused != nil {
			return refused
		}
	}

	if strings.HasPrefix(path, pathStatus) && x.front.hooks.Status != nil {
		return x.serveStatus()
	}

	endpoint, ok := x.settings.endpoints[endpointPath(path)]
	if !ok {
		return newRefusal(http.StatusNotFound, refusedPath,
			"unknown path; the servers are at /mcp and /servers/{name}/mcp")
	}

	// The transport follows from the path: HTTP+SSE of 2024-11-05, or Streamable HTTP.
	x.endpoint = endpoint
	switch method := x.r.Method; {
	case strings.HasSuffix(path, pathMessages):
		return x.postToStream()
	case strings.HasSuffix(path, pathSSE):
		return x.openStream()
	case method == http.MethodPost:
		return x.servePost()
	case x.r.Header.Get(headerVersion) >= session.Stateless:
		return notAllowed(http.MethodPost)
	case method == http.MethodGet:
		return x.serveGet()
	case method == http.MethodDelete:
		return x.serveDelete()
	default:
		return notAllowed("DELETE, GET, POST")
	}
}

// checkRate refuses the request of a client that sends too many.
func (f *Front) checkRate(client session.Identity, says *policy.Identity) *refusal {
	if f.hooks.Limit == nil {
		return nil
	}

	seconds, why := f.hooks.Limit(client, says)
	if seconds == 0 {
		return nil
	}

	refused := newRefusal(http.StatusTooManyRequests, refusedLimited,
		fmt.Sprintf("too many requests: %s Send the next one in %d s.", why, seconds))
	refused.retryAfter = seconds
	var data wire.Object
	data.Add("code", wire.Quote(refusedLimited))
	data.Add("retry_after_s", strconv.AppendInt(nil, int64(seconds), 10))
	refused.data = data.Value()
	return refused
}

// serveStatus answers with the state of one of the client's runs.
func (x *exchange) serveStatus() *refusal {
	if x.r.Method != http.MethodGet {
		return notAllowed(http.MethodGet)
	}
	if x.from.Name == session.Anonymous { // all programs on this machine share the name "anonymous"
		return newRefusal(http.StatusUnauthorized, refusedToken, "send the token that made the request")
	}
	if err := x.front.table.Requests.Enter(x.from); err != nil {
		return refusalOf(err)
	}

	defer x.front.table.Requests.Leave(x.from)
	switch doc, err := x.front.hooks.Status(x.r.Context(), x.from,
		strings.TrimPrefix(x.r.URL.EscapedPath(), pathStatus)); {
	case err != nil:
		return newRefusal(http.StatusServiceUnavailable, refusedLedger, "the ledger cannot be read now")
	case doc == nil:
		return newRefusal(http.StatusNotFound, refusedPath, "no run with this id belongs to the token's actor")
	default:
		x.writeJSON(http.StatusOK, doc)
		return nil
	}
}

// serveDelete ends a session.
func (x *exchange) serveDelete() *refusal {
	s, refused := x.findSession()
	if refused != nil {
		return refused
	}
	s.End()
	x.writeStatus(http.StatusNoContent)
	return nil
}

// findSession returns the session that the header of a GET or DELETE names.
func (x *exchange) findSession() (*session.Session, *refusal) {
	id := x.r.Header.Get(headerSession)
	if id == "" {
		return nil, newRefusal(http.StatusBadRequest, refusedSessionless, "the header Mcp-Session-Id is missing")
	}
	return x.sessionOf(id, x.r.Header.Get(headerVersion))
}

// sessionOf returns the client's session with this id.
func (x *exchange) sessionOf(id, version string) (*session.Session, *refusal) {
	s := x.front.table.Find(id, x.from, x.endpoint)
	if s == nil {
		f := newRefusal(http.StatusNotFound, refusedNoSession, "this session is unknown or has ended; send initialize")
		f.code = codeNoSession
		return nil, f
	}
	if version != "" && version != s.Protocol {
		return nil, newRefusal(http.StatusBadRequest, refusedVersion,
			"the session has another revision than the header MCP-Protocol-Version")
	}
	return s, nil
}

// writeRefusal answers with a refusal. The id may be nil.
func (x *exchange) writeRefusal(f *refusal, id []byte) {
	h := x.w.Header()
	switch f.status {
	case http.StatusMethodNotAllowed:
		h.Set("Allow", f.allow)
	case http.StatusUnauthorized:
		failure := ""
		if token, ok := web.BearerToken(x.r); ok && token != "" {
			failure = invalidToken
		}
		h.Set("WWW-Authenticate", x.challenge(failure))
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.Itoa(max(1, f.retryAfter)))
	case http.StatusForbidden:
		if f.reason == refusedScope {
			h.Set("WWW-Authenticate", x.challenge(insufficientScope))
		}
	case http.StatusRequestEntityTooLarge, http.StatusRequestTimeout:
		h.Set("Connection", "close") // the rest of the body is not read
	}
	x.writeJSON(f.status, f.body(id))
}

// writeStatus answers with a status.
func (x *exchange) writeStatus(status int) {
	x.extendWriteDeadline()
	x.w.WriteHeader(status)
}

// setStreamHeader begins an event stream.
func (x *exchange) setStreamHeader() {
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no")
}

// extendWriteDeadline gives the client time to read the next write.
func (x *exchange) extendWriteDeadline() {
	// Without a connection there is no deadline.
	_ = x.ctl.SetWriteDeadline(time.Now().Add(x.front.timeouts.write))
}

// reserveWrite reserves the memory of messages that are about to be written together, until done is
// called. Small messages take nothing, and neither do those of a connection that cannot be closed.
func (x *exchange) reserveWrite(messages ...[]byte) (done func()) {
	size := 0
	for _, m := range messages {
		size += len(m)
	}
	if size <= session.Small || x.conn == nil {
		return func() {}
	}
	return x.front.table.Memory.StartWrite(x.from, size, x.conn).End
}

// writeFrames writes server-sent events. It reports false if the client is gone or does not read.
func (x *exchange) writeFrames(frames ...[]byte) bool {
	defer x.reserveWrite(frames...)()
	for _, frame := range frames {
		x.extendWriteDeadline()
		if _, err := x.w.Write(frame); err != nil {
			return false
		}
	}
	return len(frames) == 0 || x.ctl.Flush() == nil
}

var errGone = errors.New("the client is gone")
