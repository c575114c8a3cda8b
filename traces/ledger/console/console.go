// Package console serves the pages on which people decide about held calls and look at runs.
//
// A person signs in with a token, with a link that pgfsm console prints, or at an identity
// provider, and gets a session, which a cookie carries. The console never reads bearer tokens.
// Every page works without JavaScript: a vote is a form. The script only refreshes pages whose
// content has changed.
//
// Text from agents and servers is escaped. Characters that are not visible as themselves are
// written as marked escapes.
package console

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/web"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

// Path is the console's path, below the address of its listener.
const Path = "/console/"

// CallPath is the path of a held call's page, below the address of its listener, without the run's
// id.
const CallPath = Path + "calls/"

// LinkPath is the path of a sign-in link's page, below the address of its listener, without the
// link's secret.
const LinkPath = Path + "link/"

// Options of a handler.
type Options struct {
	api.Service
	// Health returns the state of the service.
	Health func(context.Context) present.Health
	// Definition returns the digest of a tool's definition in the last known listing of its server;
	// empty if the listing does not contain the tool. Nil: the service has no servers.
	Definition func(server, tool string) (d canonical.Digest, known bool)
	// AskServers lists the tools of every server again. Nil: the service has no servers.
	AskServers func(context.Context) error
	// Explain returns the decision of every gate about a hypothetical call. Nil: the service has no
	// gates.
	Explain func(context.Context, present.Question) (present.Explanation, error)
	// Providers sign people in, besides tokens.
	Providers []Provider
}

// A Handler serves the console. It is safe for concurrent use.
type Handler struct {
	Options
	guard   *web.Guard
	origin  http.CrossOriginProtection
	listing web.Slot      // held while a page reads many requests: calls need the ledger's readers
	trying  web.Slot      // held while a person tries out a policy or lists tools: that takes seconds
	streams chan struct{} // one value for each open event stream
	// Limits the lines about failed sign-ins: anybody can cause them, and must not fill a disk.
	failed rate.Sometimes
	asking *rate.Limiter // limits the requests to providers for people who sign in
	poller changePoller
	closed context.Context // done after Close
	close  context.CancelFunc
}

// maxStreams bounds the open event streams: each keeps a connection of the admin address busy.
const maxStreams = 64

// New returns a handler.
func New(o Options) *Handler {
	h := &Handler{
		Options: o,
		guard:   web.NewGuard(o.Hosts),
		listing: web.NewSlot(),
		trying:  web.NewSlot(),
		streams: make(chan struct{}, maxStreams),
	}
	h.Service = o.WithDefaults()
	h.failed.Interval, h.asking = time.Second, rate.NewLimiter(signInsEachSecond, signInsAtOnce)
	h.closed, h.close = context.WithCancel(context.Background())
	return h
}

// WithConsole serves the console, and every other path by another handler. The root path redirects
// to the console.
func WithConsole(h *Handler, other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.EscapedPath()
		switch {
		case (path == "/" || path == strings.TrimSuffix(Path, "/")) &&
			(r.Method == http.MethodGet || r.Method == http.MethodHead):
			setSecurityHeaders(w.Header())
			http.Redirect(w, r, Path, http.StatusSeeOther)
		case strings.HasPrefix(path, Path):
			h.ServeHTTP(w, r)
		default:
			other.ServeHTTP(w, r)
		}
	})
}

// Close ends the event streams. A server that shuts down would wait for them.
func (h *Handler) Close() { h.close() }

// A visit is one HTTP request.
type visit struct {
	w      http.ResponseWriter
	r      *http.Request
	base   string // prefix of the session's pages
	page   string // path of the page below base
	id     string // last part of the page's path, if the route has one
	secret string // secret of the session
	who    ledger.Caller
}

// A route is one page.
type route struct {
	method string // GET includes HEAD
	page   string // path below the base; if it ends in /, a text that rest matches follows
	rest   *regexp.Regexp
	open   bool // no session is needed
	part   bool // part of a page
	serve  func(*Handler, *visit) error
}

var (
	runID    = api.RunID
	rawTrace = regexp.MustCompile(strings.TrimSuffix(runID.String(), "$") + "/trace$")
	secret   = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
)

var routes []route

func init() { // an initializer would be a cycle: the handlers refer to routes
	routes = []route{
		{method: http.MethodGet, page: "", serve: (*Handler).showInbox},
		{method: http.MethodGet, page: "calls/", rest: runID, serve: (*Handler).showCall},
		{method: http.MethodPost, page: "calls/", rest: runID, serve: (*Handler).castVote},
		{method: http.MethodGet, page: "runs", serve: (*Handler).showRuns},
		{method: http.MethodGet, page: "runs/", rest: runID, serve: (*Handler).showRun},
		{method: http.MethodGet, page: "runs/", rest: rawTrace, part: true, serve: (*Handler).sendTrace},
		{method: http.MethodGet, page: "now", serve: (*Handler).showNow},
		{method: http.MethodGet, page: "log", serve: (*Handler).showLog},
		{method: http.MethodGet, page: "log/", rest: entryIndex, serve: (*Handler).showEntry},
		{method: http.MethodGet, page: "policy", serve: (*Handler).showPolicies},
		{method: http.MethodPost, page: "policy", serve: (*Handler).tryPolicy},
		{method: http.MethodGet, page: "servers", serve: (*Handler).showServers},
		{method: http.MethodPost, page: "servers", serve: (*Handler).askServers},
		{method: http.MethodGet, page: "events", part: true, serve: (*Handler).streamEvents},
		{method: http.MethodPost, page: "sign-out", serve: (*Handler).signOut},
		{method: http.MethodGet, page: "sign-in", open: true, serve: (*Handler).signInPage},
		{method: http.MethodPost, page: "sign-in", open: true, serve: (*Handler).signIn},
		{method: http.MethodGet, page: "link/", rest: secret, open: true, serve: (*Handler).linkPage},
		{method: http.MethodPost, page: "link/", rest: secret, open: true, serve: (*Handler).signInByLink},
		{method: http.MethodGet, page: providerPage, open: true, serve: (*Handler).toProvider},
		{method: http.MethodGet, page: callbackPage, open: true, serve: (*Handler).fromProvider},
		{method: http.MethodGet, page: "console.css", open: true, serve: (*Handler).serveAsset},
		{method: http.MethodGet, page: "console.js", open: true, serve: (*Handler).serveAsset},
		{method: http.MethodGet, page: "icon.svg", open: true, serve: (*Handler).serveAsset},
	}
}

// ServeHTTP implements [http.Handler.ServeHTTP].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSecurityHeaders(w.Header())
	v := &visit{w: w, r: r}
	if err := h.serveVisit(v); err != nil {
		h.showFailure(v, err)
	}
}

// serveVisit makes all checks of a visit and then calls its handler.
func (h *Handler) serveVisit(v *visit) error {
	if err := h.checkOrigin(v.r); err != nil {
		return err
	}
	var ok bool
	if v.base, v.page, ok = splitPath(v.r.URL.EscapedPath()); !ok {
		return errNoPage
	}
	matched, err := v.findRoute()
	if err != nil {
		return err
	}
	if !matched.open {
		if err := h.identifyCaller(v); err != nil {
			return err
		}
		web.Authenticated(v.r.Context(), v.who.Name)
	}
	return matched.serve(h, v)
}

// splitPath returns the base of a path and the page below it. It does not decode or clean the path:
// a proxy in front may have checked another form of it.
func splitPath(path string) (base, page string, ok bool) {
	page, ok = strings.CutPrefix(path, Path)
	if id, rest, found := strings.Cut(strings.TrimPrefix(page, localPrefix), "/"); found &&
		strings.HasPrefix(page, localPrefix) && localID.MatchString(id) {
		return Path + localPrefix + id + "/", rest, ok
	}
	return Path, page, ok
}

// match reports whether the route serves a page below the base, and returns the last part of its
// path.
func (matched *route) match(page string) (id string, ok bool) {
	id, ok = strings.CutPrefix(page, matched.page)
	return id, ok && (matched.rest == nil && id == "" || matched.rest != nil && matched.rest.MatchString(id))
}

// findRoute returns the route of a visit.
func (v *visit) findRoute() (*route, error) {
	err := errNoPage
	for i := range routes {
		matched := &routes[i]
		id, fits := matched.match(v.page)
		if !fits || matched.open && v.base != Path {
			continue
		}
		if v.r.Method == matched.method || matched.method == http.MethodGet && v.r.Method == http.MethodHead {
			v.id = id
			return matched, nil
		}
		err = errMethod
	}
	return nil, err
}

// A refusal is an error that is shown to the person.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

var (
	errNoPage = &refusal{http.StatusNotFound, "There is no such page."}
	errMethod = &refusal{http.StatusMethodNotAllowed, "This page does not accept requests with this method."}
	errHost   = &refusal{http.StatusMisdirectedRequest,
		"This address is not one of the console's. Add it to serve.hosts, or give approvals serve --host."}
	errOrigin = &refusal{http.StatusForbidden,
		"The request comes from a page of another site, so the console ignores it."}
	errHeaders = &refusal{http.StatusBadRequest, "The request has a security header more than once."}
	errCookies = &refusal{http.StatusBadRequest, "The browser sent two session cookies, and at most one is the console's. Another service on this machine may have set " +
		"the other one. Delete the cookies of this site, and sign in again."}
	errForm = &refusal{http.StatusBadRequest, "The form cannot be read."}
)

// showFailure answers with an error.
func (h *Handler) showFailure(v *visit, err error) {
	var shown *refusal
	var refused *ledger.Refusal
	switch {
	case errors.Is(err, ledger.ErrSession):
		h.askToSignIn(v)
	case errors.As(err, &shown):
		h.showError(v, shown.status, shown.text)
	case errors.As(err, &refused):
		h.showError(v, api.StatusOf(refused), refused.Error())
	case v.r.Context().Err() != nil: // the browser has left
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrClockBack),
		errors.Is(err, ledger.ErrUnsettled), errors.Is(err, ledger.ErrClosed):
		h.Log(err.Error())
		h.showError(v, http.StatusServiceUnavailable,
			"The ledger cannot be used now. Nobody can tell whether a vote that you just cast counts: "+
				"look at the call again before you repeat it. The service's log says what is wrong.")
	default:
		h.Log("a page of the console cannot be shown: " + err.Error())
		h.showError(v, http.StatusInternalServerError, "This page cannot be shown. The service's log says why.")
	}
}
