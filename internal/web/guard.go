package web

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

// A Guard refuses requests that a web page elsewhere may have made a browser send.
type Guard struct {
	hosts  []string // the hosts in lower case
	single []string
}

// Errors of a [Guard].
var (
	ErrHost   = errors.New("the Host header names another service")
	ErrOrigin = errors.New("a web page of another origin sent the request")
)

// A RepeatedHeader is the error of a header that decides something and came more than once:
// programs differ in which of two values counts.
type RepeatedHeader string

func (h RepeatedHeader) Error() string { return "the header " + string(h) + " came more than once" }

// NewGuard returns a guard of a service with these hosts. Headers that decide something may come
// once only; single are those that other services do not have.
func NewGuard(hosts []string, single ...string) *Guard {
	g := &Guard{single: append(single,
		"Authorization", "Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Host", "Origin",
		"Sec-Fetch-Site",
	)}
	for _, host := range hosts {
		g.hosts = append(g.hosts, strings.ToLower(host))
	}
	return g
}

// CheckHost refuses repeated headers and foreign hosts. A page whose name was rebound to this
// machine (DNS rebinding) still sends its own name.
func (g *Guard) CheckHost(r *http.Request) error {
	for _, name := range g.single {
		if len(r.Header[name]) > 1 {
			return RepeatedHeader(name)
		}
	}
	if !slices.Contains(g.hosts, strings.ToLower(r.Host)) {
		return ErrHost
	}
	return nil
}

// Check refuses what CheckHost does, and every request of a web page of another origin.
func (g *Guard) Check(r *http.Request) error {
	if err := g.CheckHost(r); err != nil {
		return err
	}
	if origin, sent := r.Header["Origin"]; sent && !g.sameOrigin(origin[0]) {
		return ErrOrigin
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return nil
	default:
		return ErrOrigin
	}
}

func (g *Guard) sameOrigin(origin string) bool {
	for _, scheme := range []string{"http://", "https://"} {
		if host, ok := strings.CutPrefix(strings.ToLower(origin), scheme); ok {
			return slices.Contains(g.hosts, host)
		}
	}
	return false
}
