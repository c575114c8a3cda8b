package gateway

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/current"
	"pgfsm/mcp/gateway/front"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
)

// Server is one upstream server, with the operator's rules for agents.
type Server struct {
	Name     string
	Expose   Expose
	Sessions string // which clients share a session with it, see [upstream.Server]
	Person   bool   // people use it with accounts of their own
}

// A Config is the part of a gateway that [Gateway.Replace] can replace while it serves.
type Config struct {
	Servers   []Server            // in the operator's order
	Upstreams *upstream.Upstreams // must have these servers, and may have others
	Calls     Calls
	// Account returns the account with which a client uses a server with Person; nil for a client without a person, if the
	// server has credentials for those. The error may be one of [upstream.NeedsAccount].
	Account func(ctx context.Context, client Identity, server string) (*upstream.Account, error)
	MaxAge  time.Duration  // longest use of a listing of tools (catalog_max_age)
	Front   front.Settings // without Servers
	// Observe is called for each answered request. It must not block. Nil: none is observed.
	Observe func(context.Context, Operation)
}

// Options of a gateway. Nil functions are not offered; zero values mean the default.
type Options struct {
	Config
	Hooks front.Hooks
	// Passed records a message beside tools/call before it passes. If it returns an error, the
	// message does not pass.
	Passed func(context.Context, Passed) error
	// Mask removes the operator's secrets from the messages of servers.
	Mask func([]byte) []byte
	// Redact removes personal data from what a server sends beside results of calls. If why is not empty,
	// clients must not get it.
	Redact func(server string, text []byte) (clean []byte, why string)
	Tasks  bool // clients of the Tasks extension get a task for a waiting call
	Limits Limits
	Info   upstream.Info // the gateway's name for clients
	Log    *slog.Logger

	// Begin is called for each request before it is answered, with the client's traceparent and
	// tracestate. It returns the context of the request. It must not block. Nil: the context stays.
	Begin func(ctx context.Context, traceparent, tracestate string) context.Context
}

// The client's side of a gateway.
type (
	Identity = session.Identity
	Limits   = session.Limits
)

// Anonymous is the name of a client without credentials.
const Anonymous = session.Anonymous

// Passed is one message other than tools/call that is about to pass.
type Passed struct {
	Identity  Identity
	Server    string
	Direction string // ToServer or ToClient
	Method    string
	Params    jsontext.Value // raw; nil if absent. Only their digest is recorded
}

// Directions of [Passed].
const (
	ToServer = "to_server"
	ToClient = "to_client"
)

// A Gateway lets clients of any revision of MCP use servers of any revision. Its methods may be
// called concurrently.
type Gateway struct {
	options       Options
	front         *front.Front
	table         *session.Table
	active        *current.Value[*generation]
	self          []byte // _meta member with the gateway's name
	links         *linkTable
	requestStates *requestStates // seals the request states for clients
	openUpstream  func(ctx context.Context, server *server, p upstream.Peer) (upstreamLink, error)

	mu       sync.Mutex
	sessions map[*session.Session]*clientSession
}

// New returns a gateway. It connects to no server.
func New(o Options) (*Gateway, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}

	if o.Redact == nil {
		o.Redact = func(_ string, b []byte) ([]byte, string) { return b, "" }
	}
	if o.Mask == nil {
		o.Mask = func(b []byte) []byte { return b }
	}

	if o.Upstreams != nil {
		o.Upstreams.LogTo(o.Log)
	}

	first, err := newGeneration(&o.Config, nil)
	if err != nil {
		return nil, err
	}

	g := &Gateway{
		options:       o,
		table:         session.NewTable(o.Limits),
		active:        current.New(first),
		requestStates: newRequestStates(),
		openUpstream:  openUpstream,
		sessions:      make(map[*session.Session]*clientSession),
	}

	g.self = append(append(g.self, `"`+metaServerInfo+`":`...), infoOf(o.Info)...)
	g.links = newLinkTable(g)
	g.front = front.New(first.frontSettings(), o.Hooks, g.table, g)
	return g, nil
}

// Handler serves HTTP clients: /mcp and /sse for all servers, /servers/{name}/mcp and
// /servers/{name}/sse for one.
func (g *Gateway) Handler() http.Handler { return g.front }

// Serve answers HTTP clients until ctx is done, and then drains the gateway. It closes the
// listener.
func (g *Gateway) Serve(ctx context.Context, listener net.Listener) error {
	return g.front.Serve(ctx, listener, g.Drain)
}

// ServeStdio serves one client with all servers; see [front.Front.ServeStdio].
func (g *Gateway) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, client Identity) error {
	return g.front.ServeStdio(ctx, in, out, client)
}

// Drain accepts no more requests and waits for those under way until ctx is done. Then it ends all
// sessions and closes all links. An error means that requests were cut off.
func (g *Gateway) Drain(ctx context.Context) error {
	err := g.front.Drain(ctx)
	g.links.closeAll()
	return err
}
