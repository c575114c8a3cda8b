package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// headerTimeout bounds the time that a client may take to send the header of a request.
const headerTimeout = 10 * time.Second

// sessionless is the beginning of the first protocol revision without sessions, as the header
// distinguishes revisions. One handler of the SDK serves either those revisions or the older ones,
// so there are two behind one path.
const sessionless = "2026"

var errNotLoopback = errors.New("it is not a loopback address, and nobody is authenticated here: " +
	"use 127.0.0.1:PORT or [::1]:PORT")

// A Fleet holds the listening demo servers. The caller closes it.
type Fleet struct {
	bound []*boundServer
}

// A boundServer is one server and its port.
type boundServer struct {
	server   *Server
	listener net.Listener
	http     *http.Server
	served   chan struct{} // closed when Serve has returned
}

// Listen starts the demo servers, the first of [Servers] at addrs[0] and so on. An address is
// HOST:PORT with a literal loopback address; port 0 takes a free one. If one address cannot be
// used, no server is left listening, and the error names the address and the remedy.
func Listen(ctx context.Context, addrs []string) (*Fleet, error) {
	servers := Servers()
	if len(addrs) != len(servers) {
		return nil, fmt.Errorf("the demo needs %d addresses, one for each server, and got %d", len(servers), len(addrs))
	}

	f := &Fleet{}
	for i, s := range servers {
		l, err := listenLoopback(ctx, addrs[i])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s cannot listen on %s: %w", s.Name(), addrs[i], err), f.Close())
		}
		b := &boundServer{server: s, listener: l, served: make(chan struct{})}
		b.http = &http.Server{
			Handler:           s.newHandler(),
			ReadHeaderTimeout: headerTimeout,
			ErrorLog:          log.New(io.Discard, "", 0), // clients report their own errors
		}
		f.bound = append(f.bound, b)
		go func() {
			defer close(b.served)
			_ = b.http.Serve(l) // it ends with Close
		}()
	}

	return f, nil
}

// listenLoopback listens on a literal loopback address: what a name means is decided elsewhere.
func listenLoopback(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return nil, errNotLoopback
	}

	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w; stop the other program, or give another port (0 takes a free one)", err)
	}
	return l, err
}

// newHandler serves the server over HTTP: the HTTP+SSE transport of MCP 2024-11-05 at /sse,
// streamable HTTP at /mcp. The SDK refuses a Host that does not name this machine, and net/http a
// page of another origin: a web page could reach the server otherwise, by having its own name
// resolve to loopback ("DNS rebinding", MCP 2025-11-25, "Security Best Practices").
func (s *Server) newHandler() http.Handler {
	self := func(*http.Request) *sdk.Server { return s.mcp }
	withSessions := sdk.NewStreamableHTTPHandler(self, nil)
	without := sdk.NewStreamableHTTPHandler(self,
		&sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})

	mux := http.NewServeMux()
	mux.Handle("/sse", sdk.NewSSEHandler(self, nil))
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= sessionless {
			without.ServeHTTP(w, r)
			return
		}
		withSessions.ServeHTTP(w, r)
	})
	return http.NewCrossOriginProtection().Handler(mux)
}

// Servers returns the servers in the order of [Servers].
func (f *Fleet) Servers() []*Server {
	servers := make([]*Server, len(f.bound))
	for i, b := range f.bound {
		servers[i] = b.server
	}
	return servers
}

// URL returns where the named server listens for a transport, "sse" or "mcp" (streamable HTTP). It
// is empty if there is no such server.
func (f *Fleet) URL(name, transport string) string {
	i := slices.IndexFunc(f.bound, func(b *boundServer) bool { return b.server.name == name })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("http://%s/%s", f.bound[i].listener.Addr(), transport)
}

// Close stops listening, ends every session and returns when all have ended. Calls under way get no
// answer. Close may be called again.
func (f *Fleet) Close() error {
	var errs []error
	for _, b := range f.bound {
		errs = append(errs, b.http.Close())
		<-b.served
		for session := range b.server.mcp.Sessions() {
			session.Close() // an error would concern only a client that is disconnected anyway
		}
	}
	return errors.Join(errs...)
}
