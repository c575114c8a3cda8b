package api

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"pgfsm/traces/ledger"
)

const (
	// ConsolePath is the console's path, below the address of its listener.
	ConsolePath = "/console/"
	// CallPath is the path of a held call's page, without the run's id.
	CallPath = ConsolePath + "calls/"
	// LinkPath is the path of a sign-in link's page, without the link's secret.
	LinkPath = ConsolePath + "link/"

	// sessionPath is the base of the pages of a session without TLS: see [sessionCookie].
	sessionPath = ConsolePath + "s/{session}/"
)

// plainPath matches the paths that have one form: without escapes, empty segments and dots at the
// beginning of a segment. A proxy in front may have checked another form of any other path.
var plainPath = regexp.MustCompile(`^/([A-Za-z0-9_-][A-Za-z0-9._-]*(/|$))*$`)

// variables are the forms of the variable parts of paths. Another form of a value is another path.
var variables = map[string]*regexp.Regexp{
	"run":     regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`),
	"entry":   regexp.MustCompile(`^(0|[1-9][0-9]{0,17})$`),
	"secret":  regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`),
	"session": regexp.MustCompile(`^[0-9a-f]{32}$`),
	"server":  regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`),
}

// isRunID reports whether a text has the form of a run's id.
func isRunID(s string) bool { return variables["run"].MatchString(s) }

// A route is one operation: a method of a path.
type route struct {
	method string // GET includes HEAD
	path   string // below the root, or below the base of the console's pages
	may    []ledger.Action
	query  []string // the known parameters, in the API
	body   bool     // a body belongs to it
	open   bool     // no credentials are needed: the answer reveals nothing of the ledger
	local  bool     // no token is needed from this machine
	part   bool     // part of a page
	serve  func(*Handler, *visit) (answer, error)
}

var (
	readers    = []ledger.Action{ledger.ActRead}
	auditors   = []ledger.Action{ledger.ActAudit}
	voters     = []ledger.Action{ledger.ActVote}
	requesters = []ledger.Action{ledger.ActRead, ledger.ActCall}
	reloaders  = []ledger.Action{ledger.ActReload}
	connectors = []ledger.Action{ledger.ActConnect}
	everybody  = []ledger.Action{ledger.ActRead, ledger.ActConnect} // who may be signed in
)

// apiRoutes are the operations of the API.
var apiRoutes = []route{
	{method: "GET", path: "/pending", may: readers, query: []string{"after", "limit"},
		serve: document((*Handler).readPending)},
	{method: "GET", path: "/requests", may: readers, serve: document((*Handler).readRequests),
		query: []string{
			"actor", "after", "code", "limit", "policy", "server", "session", "since", "status", "task", "tool", "until",
		}},
	{method: "GET", path: "/replicas", may: readers, serve: document((*Handler).readReplicas)},
	{method: "GET", path: "/summary", may: readers, query: []string{"since"}, serve: document((*Handler).readSummary)},
	{method: "GET", path: "/entries", may: auditors, serve: document((*Handler).readEntries),
		query: []string{"before", "by", "limit", "run", "since", "type", "until"}},
	{method: "GET", path: "/checkpoints", may: readers, serve: document((*Handler).readCheckpoints)},
	{method: "GET", path: "/policies", may: readers, serve: document((*Handler).readPolicies)},
	{method: "GET", path: "/servers", may: readers, serve: document((*Handler).readServers)},
	{method: "GET", path: "/status/{run}", may: requesters, serve: document((*Handler).readStatus)},
	{method: "GET", path: "/steps/{run}", may: readers, serve: document((*Handler).readSteps)},
	{method: "GET", path: "/what-if/{run}", may: readers, query: []string{"bundle"},
		serve: document((*Handler).readWhatIf)},
	{method: "GET", path: "/inclusion/{run}", may: readers, serve: document((*Handler).readInclusion)},
	{method: "GET", path: "/tree-head", may: readers, query: []string{"from"}, serve: document((*Handler).readTreeHead)},
	{method: "POST", path: "/approve/{run}", may: voters, body: true, serve: document((*Handler).approve)},
	{method: "POST", path: "/deny/{run}", may: voters, body: true, serve: document((*Handler).deny)},
	{method: "POST", path: "/reload", may: reloaders, serve: document((*Handler).reload)},
	{method: "GET", path: "/openapi.yaml", open: true, serve: (*Handler).openapiYAML},
	{method: "GET", path: "/metrics", may: auditors, local: true, serve: (*Handler).writeMetrics},
	{method: "GET", path: "/healthz", open: true, serve: document((*Handler).readHealth)},
	{method: "GET", path: "/readyz", open: true, serve: document((*Handler).readReadiness)},
}

// sessionRoutes are the pages of a session. The ledger refuses votes of people who may not vote, so
// that the page says why.
var sessionRoutes = []route{
	{method: "GET", path: "", may: everybody, serve: (*Handler).showInbox},
	{method: "GET", path: "calls/{run}", may: readers, serve: (*Handler).showCall},
	{method: "POST", path: "calls/{run}", may: readers, body: true, serve: (*Handler).sendVote},
	{method: "GET", path: "runs", may: readers, serve: (*Handler).showRuns},
	{method: "GET", path: "runs/{run}", may: readers, serve: (*Handler).showRun},
	{method: "GET", path: "runs/{run}/audit", may: readers, serve: (*Handler).showAudit},
	{method: "GET", path: "runs/{run}/trace", may: auditors, part: true, serve: (*Handler).sendTrace},
	{method: "GET", path: "now", may: readers, serve: (*Handler).showNow},
	{method: "GET", path: "log", may: readers, serve: (*Handler).showLog},
	{method: "GET", path: "log/{entry}", may: auditors, serve: (*Handler).showEntry},
	{method: "GET", path: "policy", may: readers, serve: (*Handler).showPolicies},
	{method: "POST", path: "policy", may: readers, body: true, serve: (*Handler).tryPolicy},
	{method: "GET", path: "servers", may: readers, serve: (*Handler).showServers},
	{method: "POST", path: "servers", may: readers, body: true, serve: (*Handler).askServers},
	{method: "GET", path: "events", may: readers, part: true, serve: (*Handler).streamEvents},
	{method: "GET", path: connectionsPage, may: connectors, serve: (*Handler).showConnections},
	{method: "POST", path: connectionsPage, may: connectors, body: true, serve: (*Handler).changeConnection},
	{method: "GET", path: connectingURL + "{server}", may: connectors, serve: (*Handler).finishConnecting},
	{method: "POST", path: "sign-out", may: everybody, body: true, serve: (*Handler).signOut},
}

// openRoutes are the parts of the console that need no session.
var openRoutes = []route{
	{method: "GET", path: "sign-in", open: true, serve: (*Handler).signInPage},
	{method: "POST", path: "sign-in", open: true, body: true, serve: (*Handler).signIn},
	{method: "GET", path: "link/{secret}", open: true, serve: (*Handler).linkPage},
	{method: "POST", path: "link/{secret}", open: true, body: true, serve: (*Handler).signInByLink},
	{method: "GET", path: providerPage, open: true, serve: (*Handler).redirectToProvider},
	{method: "GET", path: callbackPage, open: true, serve: (*Handler).receiveSignIn},
	{method: "GET", path: connectedPage, open: true, serve: (*Handler).returnToSession},
	{method: "GET", path: "console.css", open: true, serve: (*Handler).serveAsset},
	{method: "GET", path: "console.js", open: true, serve: (*Handler).serveAsset},
	{method: "GET", path: "icon.svg", open: true, serve: (*Handler).serveAsset},
}

// consoleLinks lead to the console.
var consoleLinks = []route{
	{method: "GET", path: "/{$}", open: true, serve: (*Handler).redirectToConsole},
	{method: "GET", path: strings.TrimSuffix(ConsolePath, "/"), open: true, serve: (*Handler).redirectToConsole},
}

func (h *Handler) redirectToConsole(*visit) (answer, error) { return redirectTo(ConsolePath), nil }

// A resource is a path with its operations.
type resource struct {
	handler *Handler
	console bool
	routes  []*route
}

// registerAll registers all routes. Without a ledger there is no console.
func (h *Handler) registerAll() {
	h.unknown = &resource{handler: h}
	h.mux.Handle("/", h.unknown)
	h.register(apiRoutes, false, "")
	if h.Ledger == nil {
		return
	}

	noPage := &resource{handler: h, console: true}
	h.mux.Handle(ConsolePath, noPage)
	h.mux.Handle(strings.TrimSuffix(sessionPath, "/"), noPage) // the mux would redirect to the path with a slash
	h.register(consoleLinks, true, "")
	h.register(openRoutes, true, ConsolePath)
	h.register(sessionRoutes, true, ConsolePath)
	h.register(sessionRoutes, true, sessionPath)
}

// register registers routes below a base. It denies by default: a route that is not open must name
// the actions that its callers need.
func (h *Handler) register(routes []route, console bool, base string) {
	resources := make(map[string]*resource)
	for i := range routes {
		added := &routes[i]
		if !added.open && len(added.may) == 0 {
			panic("the route " + added.method + " " + base + added.path + " does not say who may use it")
		}

		pattern := base + added.path
		if strings.HasSuffix(pattern, "/") {
			pattern += "{$}"
		}
		if resources[pattern] == nil {
			resources[pattern] = &resource{handler: h, console: console}
			h.mux.Handle(pattern, resources[pattern])
		}
		resources[pattern].routes = append(resources[pattern].routes, added)
	}
}

// find returns the route for a method, or nil.
func (p *resource) find(method string) *route {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	i := slices.IndexFunc(p.routes, func(r *route) bool { return r.method == method })
	if i < 0 {
		return nil
	}
	return p.routes[i]
}

// methods lists the methods of a resource, as the header Allow does.
func (p *resource) methods() string {
	var all []string
	for _, r := range p.routes {
		all = append(all, r.method)
		if r.method == http.MethodGet {
			all = append(all, http.MethodHead)
		}
	}
	return strings.Join(all, ", ")
}

// isNext reports whether a page, below the base of a session, may be opened after signing in.
func (h *Handler) isNext(page string) bool {
	r, err := http.NewRequest(http.MethodGet, ConsolePath+page, http.NoBody)
	if err != nil || !plainPath.MatchString(r.URL.EscapedPath()) {
		return false
	}
	found, _ := h.mux.Handler(r)
	p, ok := found.(*resource)
	if !ok || !p.console {
		return false
	}
	next := p.find(http.MethodGet)
	return next != nil && !next.open && !next.part
}
