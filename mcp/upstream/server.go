package upstream

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os/user"
	"reflect"
	"slices"
	"strings"
	"time"

	"pgfsm/internal/deadline"
	"pgfsm/internal/web/loopback"
)

// The transports of [Server.Type].
const (
	TypeStdio = "stdio" // a child process, newline-delimited JSON over its stdin and stdout
	TypeSSE   = "sse"   // HTTP with server-sent events, MCP revision 2024-11-05
	TypeHTTP  = "http"  // streamable HTTP, MCP revisions 2025-03-26 and later
)

// A Header is an HTTP header or an environment variable. Its value may be a secret: it goes to the server or into the child's
// environment, and into no text of ours. [New] learns the secrets to mask in texts of servers.
type Header struct{ Name, Value string }

// A Server describes how to reach one upstream server. References to secrets are already resolved.
type Server struct {
	Name string // unique; not empty, without "__", which joins server and tool for agents
	Type string // TypeStdio, TypeSSE or TypeHTTP

	URL     string   // sse and http: absolute, http or https, without user, password or fragment
	Headers []Header // sse and http: sent with every request to the URL's origin and to no other

	Auth *ClientCredentials // sse and http: get the token of the Authorization header, which Headers must not have. Nil: none

	Command string   // stdio: a program, looked up on PATH if it holds no separator, else taken as it stands
	Args    []string // stdio
	Env     []Header // stdio: added to the PATH, HOME, LANG and TMPDIR that a child gets

	User *user.User // stdio: runs the command, which only root can do for another user. Nil: our own user

	// Zero means the default.
	ConnectTimeout time.Duration // connecting, handshake and listing together; also sending a notification or an answer
	Timeout        time.Duration // a request, since it was sent or since the server last reported progress
	TimeoutTotal   time.Duration // a request in total
	IdleTimeout    time.Duration // time without users after which a session ends

	Sessions string // which clients share a session: [SessionsIdentity] if it is empty
}

// limits returns the timeouts of one request.
func (s *Server) limits() deadline.Limits {
	return deadline.Limits{Idle: s.Timeout, Total: s.TimeoutTotal}
}

// connectContext returns ctx bounded by the ConnectTimeout.
func (s *Server) connectContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.ConnectTimeout, errConnectTimeout)
}

var errConnectTimeout = errors.New("the connect_timeout is over")

// Equal reports whether two servers are reached in the same way. Private keys cache values when they are used, so they are compared as keys.
func (s Server) Equal(other Server) bool {
	if s.Auth != nil && other.Auth != nil && s.Auth.Key != nil && other.Auth.Key != nil {
		key, ok := s.Auth.Key.(interface{ Equal(crypto.PrivateKey) bool })
		if !ok || !key.Equal(other.Auth.Key) {
			return false
		}
		auth := *other.Auth
		auth.Key, other.Auth = s.Auth.Key, &auth
	}
	return reflect.DeepEqual(s, other)
}

// setTimeouts sets the default of each timeout that is zero.
func (s *Server) setTimeouts() {
	s.ConnectTimeout = cmp.Or(s.ConnectTimeout, DefaultConnectTimeout)
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	s.TimeoutTotal = cmp.Or(s.TimeoutTotal, DefaultTimeoutTotal)
	s.IdleTimeout = cmp.Or(s.IdleTimeout, DefaultIdleTimeout)
}

// reserved lists the headers that only the transport sets, by their canonical names: they decide how a message is framed, routed or
// repeated. (net/http repeats a request with an Idempotency-Key.)
var reserved = []string{
	"Accept", "Connection", "Content-Length", "Content-Type", "Expect", "Host", "Idempotency-Key", "Last-Event-Id",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "X-Idempotency-Key",
}

func (s Server) check() error {
	switch {
	case s.Name == "":
		return errors.New("a server has no name")
	case strings.Contains(s.Name, "__"):
		return fmt.Errorf("server %q: a name must not contain \"__\"", s.Name)
	case min(s.ConnectTimeout, s.Timeout, s.TimeoutTotal, s.IdleTimeout) < 0:
		return fmt.Errorf("server %q: a timeout is negative", s.Name)
	}
	var err error
	switch s.Type {
	case TypeStdio:
		err = s.checkStdio()
	case TypeSSE, TypeHTTP:
		err = s.checkHTTP()
	default:
		err = fmt.Errorf("type is %q; it must be stdio, sse or http", s.Type)
	}
	if err != nil {
		return fmt.Errorf("server %q: %w", s.Name, err)
	}
	return nil
}

func (s Server) checkStdio() error {
	switch {
	case s.Command == "":
		return errors.New("type stdio needs a command")
	case s.URL != "" || len(s.Headers) > 0 || s.Auth != nil:
		return errors.New("type stdio takes no url, no headers and no credentials")
	}
	for _, e := range s.Env {
		if e.Name == "" || strings.ContainsAny(e.Name, "=\x00") || strings.Contains(e.Value, "\x00") {
			return fmt.Errorf("%q cannot be an environment variable", e.Name)
		}
	}
	return nil
}

func (s Server) checkHTTP() error {
	if s.Command != "" || len(s.Args) > 0 || len(s.Env) > 0 {
		return fmt.Errorf("type %s takes no command, args or env", s.Type)
	}
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return errors.New("the url cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the url must begin with http:// or https://")
	case u.Hostname() == "":
		return errors.New("the url has no host")
	case u.User != nil:
		return errors.New("the url holds a user or password; use headers")
	case u.Fragment != "":
		return errors.New("the url has a fragment")
	case u.Scheme == "http" && s.credentials() && !loopback.Host(u.Hostname()):
		return errors.New("headers would travel in clear text: use https, or a loopback address")
	}
	for _, h := range s.Headers {
		if err := checkHeader(h); err != nil {
			return err
		}
		if s.Auth != nil && strings.EqualFold(h.Name, "Authorization") {
			return errors.New("the header Authorization is that of the access token")
		}
	}
	if s.Auth != nil {
		return s.Auth.check()
	}
	return nil
}

// credentials reports whether requests over HTTP carry secrets.
func (s Server) credentials() bool { return len(s.Headers) > 0 || s.Auth != nil }

func checkHeader(h Header) error {
	if !IsToken(h.Name) {
		return fmt.Errorf("%q is not a header name", h.Name)
	}
	if strings.ContainsFunc(h.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return fmt.Errorf("the value of header %q holds a control character", h.Name)
	}
	name := http.CanonicalHeaderKey(h.Name)
	if strings.HasPrefix(name, "Mcp-") {
		return fmt.Errorf("header %q belongs to the protocol", h.Name)
	}
	if slices.Contains(reserved, name) {
		return fmt.Errorf("header %q belongs to the transport", h.Name)
	}
	return nil
}

// IsToken reports whether name is allowed for a header (RFC 9110, section 5.6.2).
func IsToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}
