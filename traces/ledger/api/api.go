package api

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/time/rate"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/web"
	"pgfsm/policy"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// Options of a handler.
type Options struct {
	// Ledger contains the calls and counts the votes. Without a ledger, only the health checks are
	// served.
	Ledger *ledger.Ledger
	// Replayer executes the records of runs again. With a ledger it must not be nil.
	Replayer *traces.Replayer
	// Callers verifies callers. Nil: the ledger's tokens are accepted.
	Callers web.Authenticator
	// Hosts are the accepted values of the Host header: name and port, as a browser writes them.
	// Without hosts every request is rejected.
	Hosts []string
	// Metrics writes the metrics and returns their media type. Nil: there are none.
	Metrics func(io.Writer) (mime string, err error)
	// Voted is called after each vote that counted. It must not block. It may be nil.
	Voted func(ledger.Ballot)
	// Ready returns the reasons why the service cannot do its work now. It may be nil.
	Ready func(context.Context) []NotReady
	// Warnings returns the warnings of a ready service. It may be nil.
	Warnings func() []string
	// Checkpoints is the folder of signed checkpoints; empty: there is none.
	Checkpoints string
	// Result returns the result of a request's call, or nil and the reason why the caller may not
	// see it. If Result is nil, no result is shown.
	Result func(context.Context, ledger.Reader, *ledger.RunRow) (result jsontext.Value, note string, err error)
	// Bundle returns the bundle that judges the calls of this service. Nil: the bundle that a
	// gateway last activated.
	Bundle func() *policy.Bundle
	// Reload has the service read its configuration again, for a caller; the error may be a
	// [ReloadError]. Nil: the service cannot reload.
	Reload func(context.Context, ledger.Caller) (present.Reload, error)
	// Servers returns the servers as this service last saw them, and a note about missing
	// information. Nil: the service has no servers.
	Servers func() (all []present.Server, note string)
	// Log writes one line with details that callers must not learn. Lines about invalid tokens are
	// limited to one a second. It may be nil.
	Log func(line string)
}

// A Handler serves the API. It is safe for concurrent use.
type Handler struct {
	Options
	guard *web.Guard
	// One value while a page is read: a page may read all requests, and calls need the ledger's
	// readers.
	listing chan struct{}
	// Limits the lines about rejected tokens: anybody can cause them, and must not fill a disk.
	failed rate.Sometimes
}

// New returns a handler.
func New(o Options) *Handler {
	h := &Handler{
		Options: o,
		guard:   web.NewGuard(o.Hosts, "Idempotency-Key"),
		listing: make(chan struct{}, 1),
		failed:  rate.Sometimes{Interval: time.Second},
	}
	if h.Callers == nil {
		h.Callers = Tokens{Ledger: o.Ledger}
	} else {
		h.Callers = Unblocked{h.Callers, o.Ledger}
	}

	if h.Bundle == nil {
		h.Bundle = func() *policy.Bundle { return nil }
	}

	if h.Voted == nil {
		h.Voted = func(ledger.Ballot) {}
	}

	if h.Ready == nil {
		h.Ready = func(context.Context) []NotReady { return nil }
	}

	if h.Warnings == nil {
		h.Warnings = func() []string { return []string{} }
	}

	if h.Log == nil {
		h.Log = func(string) {}
	}

	return h
}

// A route is one operation of the API.
type route struct {
	method string // GET includes HEAD
	path   string // a path that ends in / is followed by a run's id
	may    []ledger.Action
	query  []string // the known parameters
	body   bool     // a body belongs to it
	open   bool     // no token is needed: the answer reveals nothing of the ledger
	local  bool     // no token is needed from this machine
	serve  func(*Handler, *visit) (answer, error)
}

var routes = []route{
	{method: http.MethodGet, path: "/pending", may: []ledger.Action{ledger.ActRead},
		query: []string{"after", "limit"}, serve: (*Handler).listPending},
	{method: http.MethodGet, path: "/requests", may: []ledger.Action{ledger.ActRead}, serve: (*Handler).listRequests,
		query: []string{
			"actor", "after", "code", "limit", "policy", "server", "since", "status", "task", "tool", "until",
		}},
	{method: http.MethodGet, path: "/replicas", may: []ledger.Action{ledger.ActRead}, serve: (*Handler).listReplicas},
	{method: http.MethodGet, path: "/summary", may: []ledger.Action{ledger.ActRead}, query: []string{"since"},
		serve: (*Handler).showSummary},
	{method: http.MethodGet, path: "/entries", may: []ledger.Action{ledger.ActAudit}, serve: (*Handler).listEntries,
		query: []string{
			"before", "by", "limit", "run", "since", "type", "until",
		}},
	{method: http.MethodGet, path: "/checkpoints", may: []ledger.Action{ledger.ActRead},
		serve: (*Handler).listCheckpoints},
	{method: http.MethodGet, path: "/policies", may: []ledger.Action{ledger.ActRead}, serve: (*Handler).listPolicies},
	{method: http.MethodGet, path: "/servers", may: []ledger.Action{ledger.ActRead}, serve: (*Handler).listServers},
	{method: http.MethodGet, path: "/status/", may: []ledger.Action{ledger.ActRead, ledger.ActCall},
		serve: (*Handler).showStatus},
	{method: http.MethodGet, path: "/steps/", may: []ledger.Action{ledger.ActRead}, serve: (*Handler).showSteps},
	{method: http.MethodGet, path: "/what-if/", may: []ledger.Action{ledger.ActRead}, query: []string{"bundle"},
		serve: (*Handler).showWhatIf},
	{method: http.MethodGet, path: "/inclusion/", may: []ledger.Action{ledger.ActRead},
		serve: (*Handler).showInclusion},
	{method: http.MethodPost, path: "/approve/", may: []ledger.Action{ledger.ActVote}, body: true,
		serve: (*Handler).castApproval},
	{method: http.MethodPost, path: "/deny/", may: []ledger.Action{ledger.ActVote}, body: true,
		serve: (*Handler).castDenial},
	{method: http.MethodPost, path: "/reload", may: []ledger.Action{ledger.ActReload}, serve: (*Handler).reloadConfig},
	{method: http.MethodGet, path: "/openapi.yaml", open: true, serve: (*Handler).openapiYAML},
	{method: http.MethodGet, path: "/openapi.json", open: true, serve: (*Handler).openapiJSON},
	{method: http.MethodGet, path: "/metrics", may: []ledger.Action{ledger.ActAudit}, local: true,
		serve: (*Handler).writeMetrics},
	{method: http.MethodGet, path: "/healthz", open: true, serve: (*Handler).healthz},
	{method: http.MethodGet, path: "/readyz", open: true, serve: (*Handler).readyz},
}

// A visit is one HTTP request.
type visit struct {
	w      http.ResponseWriter
	r      *http.Request
	caller ledger.Caller
	run    string // the run's id in the path
	query  map[string]string
}

// An answer is the body of a successful response.
type answer struct {
	mime string // empty: application/json
	body []byte
}

func jsonAnswer(v any) answer { return answer{body: canonical.MustSorted(v)} }

// ServeHTTP implements [http.Handler.ServeHTTP].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	response, err := h.serveVisit(w, r)
	if err != nil {
		p := problemOf(r, err, h.Log)
		if r.Body != http.NoBody && p.Code != Internal {
			w.Header().Set("Connection", "close") // the rest of the body is not read
		}
		writeProblem(w, p)
		return
	}
	if response.mime == "" {
		response.mime = "application/json"
	}
	writeBody(w, http.StatusOK, response.mime, response.body)
}

// serveVisit makes all checks of a visit and then calls its handler.
func (h *Handler) serveVisit(w http.ResponseWriter, r *http.Request) (answer, error) {
	if err := h.checkOrigin(r); err != nil {
		return answer{}, err
	}
	matched, run, err := findRoute(w, r)
	if err != nil {
		return answer{}, err
	}

	v := &visit{w: w, r: r, run: run}
	_, sent := r.Header["Authorization"]
	if !matched.open && (!matched.local || sent || !web.FromThisMachine(r)) {
		if h.Ledger == nil {
			return answer{}, newProblem(PathUnknown, "this service has no ledger, so there is nothing to decide")
		}
		if v.caller, err = h.authenticate(r); err != nil {
			return answer{}, err
		}
		if !slices.ContainsFunc(matched.may, v.caller.May) {
			return answer{}, v.caller.Allow(matched.may[0])
		}
	}

	if v.query, err = readQuery(r, matched.query); err != nil {
		return answer{}, err
	}
	if !matched.body && (r.ContentLength != 0 || r.Body != http.NoBody) {
		return answer{}, newProblem(BodyNotExpected, "a body came where none belongs")
	}

	return matched.serve(h, v)
}

// runID matches a run's id. Another form of the same id is another path.
var runID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// findRoute returns the route of a visit, and the run's id in its path. It does not decode or clean
// the path: a proxy in front may have checked another form of it.
func findRoute(w http.ResponseWriter, r *http.Request) (matched *route, run string, err error) {
	path := r.URL.EscapedPath()
	var methods []string
	for i := range routes {
		id, fits := routes[i].match(path)
		if !fits {
			continue
		}
		if m := routes[i].method; r.Method == m || m == http.MethodGet && r.Method == http.MethodHead {
			return &routes[i], id, nil
		}
		methods = append(methods, routes[i].method)
		if routes[i].method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	if len(methods) == 0 {
		return nil, "", newProblem(PathUnknown, "there is nothing at this path; /openapi.yaml says what there is")
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	return nil, "", newProblem(MethodUnknown, "this path takes "+strings.Join(methods, ", "))
}

func (matched *route) match(path string) (id string, ok bool) {
	if !strings.HasSuffix(matched.path, "/") {
		return "", path == matched.path
	}
	id, ok = strings.CutPrefix(path, matched.path)
	return id, ok && runID.MatchString(id)
}

// writeBody sends a response. net/http discards the body of a HEAD.
func writeBody(w http.ResponseWriter, status int, mime string, body []byte) {
	w.Header().Set("Content-Type", mime)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // a disconnected caller needs no answer
}
