package api

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Codes are all that there are, in order.
func Codes() (all []string) {
	for c := range statuses { // sorted below
		all = append(all, string(c))
	}
	slices.Sort(all)
	return all
}

// Routes are all that there are, in order.
func Routes() (all []string) {
	for _, r := range routes {
		path := r.path
		if strings.HasSuffix(path, "/") {
			path += "{run}"
		}
		all = append(all, r.method+" "+path)
	}
	slices.Sort(all)
	return all
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
