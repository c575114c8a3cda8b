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

	"golang.org/x/time/rate"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/web"
	"pgfsm/traces/ledger"
)

// Options of a handler.
type Options struct {
	Service
	// Callers verifies callers. Nil: the ledger's tokens are accepted.
	Callers web.Authenticator
	// Metrics writes the metrics and returns their media type. Nil: there are none.
	Metrics func(io.Writer) (mime string, err error)
	// Ready returns the reasons why the service cannot do its work now. It may be nil.
	Ready func(context.Context) []NotReady
	// Warnings returns the warnings of a ready service. It may be nil.
	Warnings func() []string
	// Reload has the service read its configuration again, for a caller; the error may be a
	// [ReloadError]. Nil: the service cannot reload.
	Reload func(context.Context, ledger.Caller) (present.Reload, error)
}

// A Handler serves the API. It is safe for concurrent use.
type Handler struct {
	Options
	guard *web.Guard
	// Held while a page is read: a page may read all requests, and calls need the ledger's readers.
	listing web.Slot
	// Limits the lines about rejected tokens: anybody can cause them, and must not fill a disk.
	failed rate.Sometimes
}

// New returns a handler.
func New(o Options) *Handler {
	h := &Handler{
		Options: o,
		guard:   web.NewGuard(o.Hosts, "Idempotency-Key"),
		listing: web.NewSlot(),
		failed:  rate.Sometimes{Interval: time.Second},
	}
	h.Service = o.WithDefaults()
	if h.Callers == nil {
		h.Callers = Tokens{Ledger: o.Ledger}
	} else {
		h.Callers = Unblocked{h.Callers, o.Ledger}
	}

	if h.Ready == nil {
		h.Ready = func(context.Context) []NotReady { return nil }
	}

	if h.Warnings == nil {
		h.Warnings = func() []string { return []string{} }
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
	web.SetSecurityHeaders(w.Header(), contentPolicy, "no-referrer")
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
	// The metrics need no token from this machine, unless the caller sends one.
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

// RunID matches a run's id. Another form of the same id is another path.
var RunID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

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
	// The path has other methods, or is unknown.
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
	return id, ok && RunID.MatchString(id)
}

// writeBody sends a response. net/http discards the body of a HEAD.
func writeBody(w http.ResponseWriter, status int, mime string, body []byte) {
	w.Header().Set("Content-Type", mime)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // a disconnected caller needs no answer
}
