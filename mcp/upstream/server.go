package upstream

import (
	"cmp"
	"context"
	"crypto"
	"errors"
	"os/user"
	"reflect"
	"strings"
	"time"

	"pgfsm/internal/deadline"
)

// The transports of [Server.Type], and the type of a server that has none.
const (
	TypeStdio  = "stdio"  // a child process, newline-delimited JSON over its stdin and stdout
	TypeSSE    = "sse"    // HTTP with server-sent events, MCP revision 2024-11-05
	TypeHTTP   = "http"   // streamable HTTP, MCP revisions 2025-03-26 and later
	TypeClient = "client" // a coding agent with tools that it executes itself: see client_tools.go
)

// A Header is an HTTP header or an environment variable. Its value may be a secret: it goes to the
// server or into the child's environment, and into no text of ours. [New] learns the secrets to
// mask in texts of servers.
type Header struct{ Name, Value string }

// A Server describes how to reach one upstream server. References to secrets are already resolved,
// and package config has checked the rest: headers and credentials go over https or to this
// machine, and no header belongs to the transport.
type Server struct {
	Name string // unique; not empty, without "__", which joins server and tool for agents
	Type string // TypeStdio, TypeSSE, TypeHTTP or TypeClient

	URL     string   // sse and http: absolute, http or https, without user, password or fragment
	Headers []Header // sse and http: sent with every request to the URL's origin and to no other

	// Sse and http: get the token of the Authorization header, which Headers must not have. Nil:
	// none.
	Auth *ClientCredentials

	// Sse and http: links carry the credentials of a person ([Peer.Account]). Without Auth, there are no others.
	Person bool

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

	ToolList []byte // client: its tools, a result of tools/list
}

// requestLimits returns the timeouts of one request.
func (s *Server) requestLimits() deadline.Limits {
	return deadline.Limits{Idle: s.Timeout, Total: s.TimeoutTotal}
}

// connectContext returns ctx bounded by the ConnectTimeout.
func (s *Server) connectContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.ConnectTimeout, errConnectTimeout)
}

var errConnectTimeout = errors.New("the connect_timeout is over")

// Equal reports whether two servers are reached in the same way. Private keys cache values when
// they are used, so they are compared as keys.
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

// hasCredentials reports whether requests over HTTP carry secrets.
func (s Server) hasCredentials() bool { return len(s.Headers) > 0 || s.Auth != nil || s.Person }

// IsToken reports whether name is allowed for a header (RFC 9110, section 5.6.2).
func IsToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}
