package api

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/time/rate"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/web"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// Options of a handler. Functions that are nil belong to parts that the service does not have.
type Options struct {
	// Ledger contains the calls and counts the votes. Without a ledger, the API serves only the
	// health checks, and there is no console.
	Ledger *ledger.Ledger
	// Replayer executes the records of runs again. With a ledger it must not be nil.
	Replayer *traces.Replayer
	// Hosts are the accepted values of the Host header: name and port, as a browser writes them.
	// Without hosts every request is rejected. The console serves names of this machine without
	// TLS; a proxy serves the others with TLS.
	Hosts []string
	// Callers verifies the API's callers. Nil: the ledger's tokens are accepted.
	Callers web.Authenticator
	// Providers sign people in at the console, besides tokens.
	Providers []Provider
	// Checkpoints is the folder of signed checkpoints; empty: there is none.
	Checkpoints string

	// Voted is called after each vote that counted. It must not block.
	Voted func(ledger.Ballot)
	// Result returns the result of a request's call, or nil and the reason why the caller may not
	// see it. If Result is nil, no result is shown.
	Result func(context.Context, ledger.Reader, *ledger.RunRow) (result jsontext.Value, note string, err error)
	// Bundle returns the bundle that judges the calls of this service. Nil: the service makes no
	// calls, and the bundle is the one that a gateway last activated.
	Bundle func() *policy.Bundle
	// Servers returns the servers as this service last saw them, and a note about missing
	// information.
	Servers func() (all []present.Server, note string)
	// Definition returns the digest of a tool's definition in the last known listing of its server;
	// empty if the listing does not contain the tool.
	Definition func(server, tool string) (d canonical.Digest, known bool)
	// AskServers lists the tools of every server again.
	AskServers func(context.Context) error
	// Explain returns the decision of every gate about a hypothetical call.
	Explain func(context.Context, present.Question) (present.Explanation, error)
	// Claims proves the claims of the configuration, for a draft of its policies or, if it is nil, for
	// the active ones.
	Claims func(ctx context.Context, draft *rules.Content) ([]present.Claim, error)
	// Connectable returns the servers at which people connect accounts; nil if there are none now. Connected is called after a
	// connection was "made" or "ended". It must not block.
	Connectable func() *Connectable
	Connected   func(change string)
	// Reload has the service read its configuration again, for a caller; the error may be a
	// [ReloadError].
	Reload func(context.Context, ledger.Caller) (present.Reload, error)

	// Metrics writes the metrics and returns their media type.
	Metrics func(io.Writer) (mime string, err error)
	// Ready returns the reasons why the service cannot do its work now.
	Ready func(context.Context) []NotReady
	// Warnings returns the warnings of a ready service.
	Warnings func() []string
	// Log writes one line with details that callers must not learn. Lines that anybody can cause
	// are limited to one a second.
	Log func(line string)
}

// A Handler serves the API and the console. It is safe for concurrent use.
type Handler struct {
	Options
	mux     *http.ServeMux
	unknown *resource // answers paths that the mux must not see
	guard   *web.Guard
	origin  http.CrossOriginProtection
	listing web.Slot      // held while an answer reads many requests: calls need the ledger's readers
	trying  web.Slot      // held while a person tries out a policy or lists tools: that takes seconds
	streams chan struct{} // one value for each open event stream
	// Limits the lines about rejected credentials: anybody can cause them, and must not fill a disk.
	failed rate.Sometimes
	asking *rate.Limiter // limits the requests to providers for people who sign in, and the connections that people make
	poller changePoller
	closed context.Context // done after Close
	close  context.CancelFunc
}

// New returns a handler.
func New(o Options) *Handler {
	h := &Handler{
		Options: o,
		mux:     http.NewServeMux(),
		guard:   web.NewGuard(o.Hosts, "Idempotency-Key"),
		listing: web.NewSlot(),
		trying:  web.NewSlot(),
		streams: make(chan struct{}, maxStreams),
		failed:  rate.Sometimes{Interval: time.Second},
		asking:  rate.NewLimiter(signInsEachSecond, signInsAtOnce),
	}
	h.closed, h.close = context.WithCancel(context.Background())
	if h.Callers == nil {
		h.Callers = Tokens{Ledger: o.Ledger}
	} else {
		h.Callers = Unblocked{h.Callers, o.Ledger}
	}

	if h.Log == nil {
		h.Log = func(string) {}
	}

	h.registerAll()
	return h
}

// Close ends the event streams. A server that shuts down would wait for them.
func (h *Handler) Close() { h.close() }

// A visit is one HTTP request.
type visit struct {
	w       http.ResponseWriter
	r       *http.Request
	console bool              // the path is the console's
	route   *route            // nil until the guard has found it
	id      string            // variable part of the path, as the run's id
	query   map[string]string // parameters of the query
	caller  ledger.Caller

	base   string // prefix of the session's pages in the console
	page   string // path of the page below base
	secret string // secret of the session

	after int64  // end of the log when the visit first read it
	now   string // the ledger's time then
}

// ServeHTTP implements [http.Handler.ServeHTTP].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !plainPath.MatchString(r.URL.EscapedPath()) {
		h.unknown.ServeHTTP(w, r)
		return
	}
	h.mux.ServeHTTP(w, r)
}

// ServeHTTP implements [http.Handler.ServeHTTP] for the requests of one path.
func (p *resource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, v := p.handler, &visit{w: w, r: r, console: p.console}
	v.setSecurityHeaders()
	out, err := answer{}, h.admit(v, p)
	if err == nil {
		out, err = v.route.serve(h, v)
	}
	if err != nil {
		out = h.answerError(v, err)
	}
	out.write(v)
}

// readLedger reads one consistent state of the ledger.
func (h *Handler) readLedger(v *visit, read func(ledger.Reader) error) error {
	return h.Ledger.View(v.r.Context(), func(r ledger.Reader) error {
		if v.now == "" {
			end, err := r.End()
			if err != nil {
				return err
			}
			v.after, v.now = end.Size, max(h.Ledger.Now().UTC().Format(policy.TimeForm), end.At)
		}
		return read(r)
	})
}

// readValue reads a value from one consistent state of the ledger.
func readValue[T any](h *Handler, v *visit, read func(ledger.Reader) (T, error)) (out T, err error) {
	err = h.readLedger(v, func(r ledger.Reader) (err error) {
		out, err = read(r)
		return err
	})
	return out, err
}

// readList calls readValue once no other visit reads many requests.
func readList[T any](h *Handler, v *visit, read func(ledger.Reader) (T, error)) (out T, err error) {
	err = h.readInTurn(v, func(r ledger.Reader) (err error) {
		out, err = read(r)
		return err
	})
	return out, err
}

// readInTurn calls readLedger once no other visit reads many requests.
func (h *Handler) readInTurn(v *visit, read func(ledger.Reader) error) error {
	if err := h.listing.Acquire(v.r.Context()); err != nil {
		return err
	}
	defer h.listing.Release()
	return h.readLedger(v, read)
}

// activeBundle returns the bundle of this service; nil: the service has none.
func (h *Handler) activeBundle() *policy.Bundle {
	if h.Bundle == nil {
		return nil
	}
	return h.Bundle()
}
