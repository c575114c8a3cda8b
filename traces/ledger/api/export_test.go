package api

import (
	"context"
	"net"
	"net/http"
	"slices"
	"time"

	"pgfsm/traces/ledger"
)

// Codes are all that there are, in order.
func Codes() (all []string) {
	for c := range refusals { // sorted below
		all = append(all, string(c))
	}
	slices.Sort(all)
	return all
}

// Routes are all of the API, in order.
func Routes() (all []string) {
	for _, r := range apiRoutes {
		all = append(all, r.method+" "+r.path)
	}
	slices.Sort(all)
	return all
}

// Register registers a route with a role's actions, or none.
func (h *Handler) Register(may ...ledger.Action) {
	h.register([]route{{method: http.MethodGet, path: "/new", may: may}}, false, "")
}

// Limits are those of a test's server.
type Limits struct {
	Header, Read, Grace time.Duration
}

// ServeWithin is Serve within other limits.
func ServeWithin(ctx context.Context, on net.Listener, h http.Handler, o Limits) error {
	l := serverLimits
	if o.Header > 0 {
		l.header = o.Header
	}
	if o.Read > 0 {
		l.read = o.Read
	}
	if o.Grace > 0 {
		l.grace = o.Grace
	}
	return serveLimited(ctx, on, h, l)
}
