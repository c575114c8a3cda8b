package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// closeGrace is how long a session may take to say good-bye (end its HTTP session, let the child process end) before
// everything it holds is cut off.
const closeGrace = 3 * time.Second

// A session is one connection to one server, from connecting to the first fault or Close. It is never repaired: a
// listing that finds it broken makes a new one.
type session struct {
	life   // its end cuts off every request and kills the child
	server Server
	limits Limits

	client   *sdk.ClientSession
	guard    *guardedConn
	http     *roundTripper // nil for a child process
	protocol atomic.Pointer[string]
	tokens   atomic.Int64 // the progress token of the last call
	status   atomic.Int32 // of the last HTTP response if it was not a success, else 0

	freshness // see changes.go
	news      listener
}

// connect opens a session and shakes hands. The session outlives ctx; the connecting does not.
func (u *Upstreams) connect(ctx context.Context, server Server) (*session, *fault) {
	s := &session{server: server, limits: u.limits}
	s.secrets, s.moments = u.secrets, &u.moments
	s.changed() // what an earlier session listed says nothing of this one
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.news.info = u.info
	s.news.ctx, s.news.stop = context.WithCancel(s.ctx)
	stop := context.AfterFunc(ctx, func() {
		s.fail(overCode(ctx), "it did not connect and greet within the time allowed")
	})
	transport := &guardTransport{session: s}
	switch server.Type {
	case TypeStdio:
		transport.inner = &stdioTransport{session: s}
	case TypeSSE:
		transport.inner = &sdk.SSEClientTransport{Endpoint: server.URL, HTTPClient: s.httpClient(), MaxEventSize: -1}
	default:
		transport.inner = &sdk.StreamableClientTransport{
			Endpoint: server.URL, HTTPClient: s.httpClient(), MaxEventSize: -1, // eventFilter bounds events
			MaxRetries: -1, DisableStandaloneSSE: true, // listen.go opens it
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: u.info.Name, Version: u.info.Version}, &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true},
	})
	var err error
	s.client, err = client.Connect(s.ctx, transport, nil)
	stop()
	if err != nil {
		code, reason := s.broken(err)
		f := s.fail(code, "%s", reason)
		s.release()
		return nil, f
	}
	if f := s.fault(); f != nil {
		s.close()
		return nil, f
	}
	s.protocol.Store(&s.client.InitializeResult().ProtocolVersion)
	return s, nil
}

// overCode tells a deadline from a cancellation.
func overCode(ctx context.Context) string {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return CodeTimeout
	case errors.Is(cause, errClosed):
		return CodeClosed
	}
	return CodeCancelled
}

// close says good-bye, for at most closeGrace, and returns when nothing of the session is left.
func (s *session) close() {
	s.news.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.client.Close() // its error says how the good-bye went, which changes nothing
	}()
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	s.cancel()
	<-done
	s.release()
}

func (s *session) release() {
	s.cancel()
	s.news.running.Wait()
	if s.http != nil {
		s.http.closeIdle()
	}
}

func (s *session) httpClient() *http.Client {
	s.http = newRoundTripper(s)
	return &http.Client{
		Transport: s.http,
		// The round tripper refuses redirects before this is asked; it is here for the day it does not.
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("redirects are refused") },
	}
}

// sdkRejected is the code of the SDK's own error for a message that its transport did not take (jsonrpc2.ErrRejected).
const sdkRejected = -32005

// refused finds the server's JSON-RPC error in err. The SDK wraps HTTP failures in errors of the same type with a code
// of its own.
func refused(err error) (*jsonrpc.Error, bool) {
	var e *jsonrpc.Error
	ok := errors.As(err, &e) && e.Code != sdkRejected
	return e, ok
}

// broken names the code and the reason for err, which ended an exchange without an answer. Of the SDK's account of its
// layers the cause is kept.
func (s *session) broken(err error) (code, reason string) {
	if e, ok := refused(err); ok {
		return CodeProtocol, fmt.Sprintf("it answered with error %d %q", e.Code, e.Message)
	}
	if status := int(s.status.Load()); status != 0 {
		return CodeUnreachable, httpReason(status)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return CodeUnreachable, err.Error()
}

func httpReason(status int) string {
	return fmt.Sprintf("it answered with HTTP status %d %s", status, http.StatusText(status))
}
