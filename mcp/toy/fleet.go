package toy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	// headerTimeout bounds how long a client may take to send the header of a request.
	headerTimeout = 10 * time.Second
	// closeTimeout bounds how long [Fleet.Close] waits for requests that are being answered.
	closeTimeout = 5 * time.Second
	// sweepInterval is how often open sessions are looked for while closing.
	sweepInterval = 5 * time.Millisecond
)

var errNotLoopback = errors.New("it is not a loopback address, and nobody is authenticated here: " +
	"use 127.0.0.1:PORT or [::1]:PORT")

// A Fleet is the demo servers, listening. Close it.
type Fleet struct {
	berths []*berth
	detach func() bool // from the context of Listen
	close  func() error
}

// A berth is one server and its port.
type berth struct {
	server   *Server
	listener net.Listener
	http     *http.Server
	served   chan error // what Serve returned

	mu        sync.Mutex
	silent    map[net.Conn]bool // connections on which nothing has come yet
	answering int               // requests that will end by themselves
}

// Listen starts the demo servers, the first of [Servers] at addrs[0] and so on. An address is HOST:PORT with a literal
// loopback address; port 0 takes a free one. If one cannot be had, none is left listening and the error says which and
// what to do. The fleet serves until [Fleet.Close] or until ctx is done.
func Listen(ctx context.Context, addrs []string) (*Fleet, error) {
	servers := Servers()
	if len(addrs) != len(servers) {
		return nil, fmt.Errorf("the demo needs %d addresses, one for each server, and got %d", len(servers), len(addrs))
	}
	f := &Fleet{}
	f.close = sync.OnceValue(f.shutDown)
	for i, s := range servers {
		l, err := bind(ctx, addrs[i])
		if err != nil {
			for _, b := range f.berths {
				b.listener.Close()
			}
			return nil, fmt.Errorf("%s cannot listen on %s: %w", s.Name(), addrs[i], err)
		}
		f.berths = append(f.berths, &berth{
			server: s, listener: l, served: make(chan error, 1), silent: map[net.Conn]bool{},
		})
	}
	for _, b := range f.berths {
		b.http = &http.Server{
			Handler:           b.counted(b.server.Handler()),
			ReadHeaderTimeout: headerTimeout,
			ConnState:         b.note,
			ErrorLog:          log.New(io.Discard, "", 0), // what a client breaks is the client's to report
		}
		go func() { b.served <- b.http.Serve(b.listener) }()
	}
	f.detach = context.AfterFunc(ctx, func() { f.close() })
	return f, nil
}

func bind(ctx context.Context, addr string) (net.Listener, error) {
	if err := loopback(addr); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w; stop the other program, or give another port (0 takes a free one)", err)
	}
	return l, err
}

// Servers returns the servers in the order of [Servers].
func (f *Fleet) Servers() []*Server {
	servers := make([]*Server, len(f.berths))
	for i, b := range f.berths {
		servers[i] = b.server
	}
	return servers
}

// URL returns where the named server listens for a transport, "sse" or "mcp" (streamable HTTP). It is empty if there
// is no such server or transport.
func (f *Fleet) URL(name, transport string) string {
	i := slices.IndexFunc(f.berths, func(b *berth) bool { return b.server.name == name })
	if path := "/" + transport; i >= 0 && (path == pathSSE || path == pathHTTP) {
		return "http://" + f.berths[i].listener.Addr().String() + path
	}
	return ""
}

// Close stops listening, lets requests that are being answered finish (for up to 5 seconds), ends every session and
// waits until all of that is done. An answer that is due on a stream, as with HTTP+SSE, may be lost. Close may be
// called more than once and returns the same error each time.
func (f *Fleet) Close() error {
	f.detach()
	return f.close()
}

func (f *Fleet) shutDown() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	errs := make([]error, len(f.berths))
	var wg sync.WaitGroup
	for i, b := range f.berths {
		wg.Go(func() { errs[i] = b.shutDown(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// note keeps the list of silent connections.
func (b *berth) note(c net.Conn, state http.ConnState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if state == http.StateNew {
		b.silent[c] = true
	} else {
		delete(b.silent, c)
	}
}

// counted counts the requests that are being answered. A GET and a subscription are streams and have no end.
func (b *berth) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Method") != "subscriptions/listen" {
			b.add(1)
			defer b.add(-1)
		}
		next.ServeHTTP(w, r)
	})
}

func (b *berth) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answering += n
}

// sweep ends what [http.Server.Shutdown] waits for although nothing will come of it: sessions, because a request that
// is a stream ends with its session only, and connections that a client opened in advance, which count as busy for
// five seconds. Unless it is the last time, sessions wait for requests, because one that closes drops its answers.
func (b *berth) sweep(last bool) {
	b.mu.Lock()
	for c := range b.silent {
		c.Close()
	}
	wait := b.answering > 0 && !last
	b.mu.Unlock()
	if wait {
		return
	}
	for session := range b.server.mcp.Sessions() {
		session.Close() // its error is about a client that is being left anyway
	}
}

// shutDown sweeps again and again, because until the port is closed a client may come back.
func (b *berth) shutDown(ctx context.Context) error {
	idle := make(chan struct{})
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		for last := false; !last; {
			select {
			case <-idle:
				last = true
			case <-time.After(sweepInterval):
			}
			b.sweep(last)
		}
	})
	err := b.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("%s did not finish in time: %w", b.server.name, err), b.http.Close())
	}
	close(idle)
	sweeping.Wait()
	if served := <-b.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("%s stopped serving: %w", b.server.name, served))
	}
	return err
}
