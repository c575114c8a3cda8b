package demo

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Paths under which [Server.Handler] serves.
const (
	pathSSE  = "/sse"
	pathHTTP = "/mcp"
)

// MaxBodyBytes is the largest request body that is read. A larger one is answered with 413.
const MaxBodyBytes = 1 << 20

// sessionless is the beginning of the first protocol revision without sessions, as the header distinguishes revisions. One handler of the
// SDK serves either those revisions or the older ones, so there are two behind one path.
const sessionless = "2026"

// Handler serves the server over HTTP: the HTTP+SSE transport of MCP 2024-11-05 at /sse, streamable HTTP at /mcp. A request whose Host or
// Origin does not name this machine is answered with 403. Otherwise a web page could reach the server by having its own name resolve to
// loopback ("DNS rebinding", MCP 2025-11-25, "Security Best Practices").
func (s *Server) Handler() http.Handler {
	self := func(*http.Request) *sdk.Server { return s.mcp }
	withSessions := sdk.NewStreamableHTTPHandler(self, &sdk.StreamableHTTPOptions{MaxRequestBodyBytes: MaxBodyBytes})
	without := sdk.NewStreamableHTTPHandler(self, &sdk.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: MaxBodyBytes,
	})
	mux := http.NewServeMux()
	mux.Handle(pathSSE, sdk.NewSSEHandler(self, &sdk.SSEOptions{MaxRequestBodyBytes: MaxBodyBytes}))
	mux.HandleFunc(pathHTTP, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= sessionless {
			without.ServeHTTP(w, r)
			return
		}
		withSessions.ServeHTTP(w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !local(r.Host) || !localOrigins(r.Header.Values("Origin")) {
			http.Error(w, "only requests from this machine are answered", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// local reports whether a Host header, with or without a port, names this machine.
func local(hostport string) bool {
	u := url.URL{Host: hostport}
	host := u.Hostname()
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

func localOrigins(origins []string) bool {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || !local(u.Host) {
			return false
		}
	}
	return true
}

// loopback checks an address to listen on. The host must be a literal address, because the meaning of a name is decided elsewhere.
func loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return errNotLoopback
	}
	return nil
}
