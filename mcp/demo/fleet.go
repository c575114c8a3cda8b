package demo

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
	// headerTimeout bounds the time that a client may take to send the header of a request.
	headerTimeout = 10 * time.Second
	// closeTimeout bounds the time that [Fleet.Close] waits for the last bytes of answers.
	closeTimeout = 500 * time.Millisecond
)

var errNotLoopback = errors.New("it is not a loopback address, and nobody is authenticated here: " +
	"use 127.0.0.1:PORT or [::1]:PORT")

// A Fleet holds the listening demo servers. The caller closes it.
type Fleet struct {
	berths []*berth
	detach func() bool // detaches the fleet from the context of Listen
	close  func() error
}

// A berth is one server and its port.
type berth struct {
	server   *Server
	listener net.Listener
	http     *http.Server
	served   chan error // the error that Serve returned
}

// Listen starts the demo servers, the first of [Servers] at addrs[0] and so on. An address is HOST:PORT with a literal loopback address;
// port 0 takes a free one. If one address cannot be used, no server is left listening, and the error names the address and the remedy.
// The fleet serves until [Fleet.Close] or until ctx is done.
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
		f.berths = append(f.berths, &berth{server: s, listener: l, served: make(chan error, 1)})
	}
	for _, b := range f.berths {
		b.http = &http.Server{
			Handler:           b.server.Handler(),
			ReadHeaderTimeout: headerTimeout,
			ErrorLog:          log.New(io.Discard, "", 0), // clients report their own errors
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

// Close stops listening, ends every session and waits until all have ended. Calls under way may get no answer. Close may be called more
// than once and returns the same error each time.
func (f *Fleet) Close() error {
	f.detach()
	return f.close()
}

func (f *Fleet) shutDown() error {
	errs := make([]error, len(f.berths))
	var wg sync.WaitGroup
	for i, b := range f.berths {
		wg.Go(func() { errs[i] = b.shutDown() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// shutDown ends the sessions, and with them their streams, and closes the server.
func (b *berth) shutDown() error {
	b.endSessions()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = b.http.Shutdown(ctx) // Close ends the connections that are still open
	err := b.http.Close()
	b.endSessions()
	if served := <-b.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("%s stopped serving: %w", b.server.name, served))
	}
	return err
}

func (b *berth) endSessions() {
	for session := range b.server.mcp.Sessions() {
		session.Close() // an error would concern only a client that is disconnected anyway
	}
}
