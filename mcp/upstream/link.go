package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/secret"
	"pgfsm/mcp/wire"
)

// A Peer is the client that a link speaks for.
type Peer struct {
	// Owner is the client's identity. One owner may have half of the links under a limit. Links
	// without an owner are bounded only together.
	Owner    string
	Account  *Account // of the person for whom the link speaks, at a [Server] with Person; nil: none
	Protocol string   // the client's revision; the link uses it if the server can, else the server's newest
	// Capabilities are the client capabilities that the link declares to the server, a JSON object.
	// Nil: none. A server of a revision with sessions does not learn the capabilities of a
	// stateless client, nor the reverse: it would ask in a way that the client does not know.
	Capabilities jsontext.Value
	// OnMessage gets the server's messages that belong to no request under way, in order:
	// notifications, and requests, which need a [Link.Answer]. It must not block. Nil:
	// notifications are dropped, requests refused.
	OnMessage func(wire.Message)
}

// ServerInfo holds the server's claims in the handshake. Nothing in it is verified.
type ServerInfo struct {
	Protocol     string         // the revision in force
	Capabilities jsontext.Value // the server's, a raw object
	Server       Info           // printable, bounded, without secrets
}

// A Reply is the answer to a request: exactly one of its members is set.
type Reply struct {
	Result jsontext.Value // byte for byte as received
	Error  jsontext.Value // the error object, byte for byte as received
}

// A CachedListing is the last listing of a link, with its time. It is immutable,
// and the pointer stays the same until the server is asked again.
type CachedListing struct {
	Listing
	At time.Time // time of the complete answer

	mu     sync.Mutex
	reader any // the last reader of View; nil: none
	view   any // the reader's
}

// View returns the result of read for the listing. It is computed once for a reader; only the last
// reader's view is kept.
func (k *CachedListing) View(reader any, read func(Listing) any) any {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.reader != reader {
		k.reader, k.view = reader, read(k.Listing)
	}
	return k.view
}

// Age returns the age of the listing at now.
func (k *CachedListing) Age(now time.Time) time.Duration { return max(0, now.Sub(k.At)) }

// A LinkError says why a link could not be opened, why it has ended, or why a
// request has no answer. Its codes are those of [Listing], and [CodeLinks].
type LinkError struct{ Code, Reason string }

func (e *LinkError) Error() string { return e.Code + ": " + e.Reason }

// linkError converts f for callers. The reason of f is presentable already.
func (f *fault) linkError() *LinkError {
	code := f.code
	if code == codeFrame {
		code = CodeResult
	}
	return &LinkError{Code: code, Reason: f.reason}
}

// A Link is one session with one server. It does not use the SDK, because the bytes of messages
// must pass unchanged. [Upstreams.Link] opens it. It ends with its first fault, with Close, or when
// nobody has used it for the server's IdleTimeout, and is never repaired. All methods may be called
// concurrently.
type Link struct {
	u          *Upstreams
	up         *sharedServer
	peer       Peer
	forClients atomic.Bool // [Client]s of the owner share it
	secrets    *secret.Masker
	maxFrame   int // largest message in bytes

	ctx        context.Context // cancelled when the link ends; ends every request and kills the child
	cancel     context.CancelFunc
	calls      atomic.Int32 // requests under way
	allowance  allowance    // for unsolicited messages
	usage      usage
	retired    atomic.Pointer[fault]
	faultMu    sync.Mutex
	firstFault *fault

	staleUntil atomic.Uint64 // listings up to this moment are out of date

	conn           conn
	serverInfo     ServerInfo
	modern         bool
	ownMeta        wire.Object // set on a modern link: see requestMeta
	announcesTools bool        // the server declares that it announces changes of its tools
	usesStream     bool        // the server may send messages between requests that we handle
	streamOpen     atomic.Bool // the standalone stream is open, or never will be
	asksPeer       bool        // the server may send requests to the peer on that stream, also during a call
	// Closed by markStreamAnswered: the server has answered the request for that stream, with
	// whatever status.
	streamAnswered     chan struct{}
	markStreamAnswered func()
	cached             atomic.Pointer[CachedListing]
	listing            chan struct{} // held while the tools are listed

	requests serverRequests
	outbox   outbox
	tasks    tasks

	polite   atomic.Bool   // Close was called: end the session at the server, too
	finished chan struct{} // closed when everything is released
}

// closeGrace is the time that a link gets to end its HTTP session or its child process. Then its
// connections are cut.
const closeGrace = 3 * time.Second

// A conn sends and receives messages over one transport.
type conn interface {
	// roundTrip sends a request and returns its outcome. Meanwhile it passes the server's messages
	// to the query, in the caller's goroutine.
	roundTrip(ctx context.Context, q *query) outcome
	// sendMessage sends a notification, or an answer to a request of the server.
	sendMessage(ctx context.Context, frame []byte) *fault
	// close releases all resources. If polite, it first ends the session at the server, within
	// closeGrace.
	close(polite bool)
}

// Link connects to a server, makes the handshake, and returns the link. ctx and the server's
// ConnectTimeout bound the connecting, not the link. The caller uses the link until [Link.Release].
// The error is a [*LinkError].
func (u *Upstreams) Link(ctx context.Context, server string, p Peer) (*Link, error) {
	up := u.byName[server]
	if up == nil {
		return nil, &LinkError{CodeUnknown, "no server of this name is configured"}
	}
	if p.Capabilities != nil {
		if err := wire.CheckObject(p.Capabilities); err != nil {
			return nil, &LinkError{CodeInvalid, "the peer's capabilities are not a strict JSON object"}
		}
	}
	ctx, cancel := up.server.connectContext(ctx)
	defer cancel()
	return u.openLink(ctx, up, p)
}

// openLink opens a link within ctx.
func (u *Upstreams) openLink(ctx context.Context, up *sharedServer, p Peer) (*Link, error) {
	switch {
	case up.clientTools != nil:
		return nil, &LinkError{CodeClientTool, clientToolReason}
	case up.server.Person && p.Account == nil && up.server.Auth == nil:
		return nil, errNoAccount
	case !up.server.Person && p.Account != nil:
		return nil, &LinkError{CodeInvalid, "people have no accounts at it"}
	case p.Account != nil:
		u.MaskAccount(p.Account.Secret) // before the server learns the credentials
	}

	// The link counts against the limits from before it connects.
	l := newLink(u, up, p)
	if f := u.admitLink(ctx, l); f != nil {
		l.endWith(f)
		l.finish() // closeLinks may wait for it
		return nil, f.linkError()
	}

	// The end of ctx, or Close, interrupts the connecting.
	defer context.AfterFunc(u.ctx, func() { l.endWith(&fault{code: CodeClosed, reason: errClosed.Error()}) })()
	stop := context.AfterFunc(ctx, func() { l.fail(contextCode(ctx), errNoAnswer) })
	f := l.connect(ctx)
	stop()
	if f == nil {
		f = l.fault()
	}

	if f != nil {
		l.endWith(f)
		l.finish()
		if f = l.fault(); f.code == CodeTimeout && ctx.Err() != nil {
			f = l.timeoutFault(ctx, "connect and answer the handshake")
		}
		return nil, f.linkError()
	}

	context.AfterFunc(l.ctx, l.finish)
	return l, nil
}

func newLink(u *Upstreams, up *sharedServer, p Peer) *Link {
	if p.Capabilities == nil {
		p.Capabilities = jsontext.Value("{}")
	}
	l := &Link{
		u:              u,
		up:             up,
		peer:           p,
		secrets:        u.secrets,
		maxFrame:       u.limits.maxFrame(),
		listing:        make(chan struct{}, 1),
		streamAnswered: make(chan struct{}),
		finished:       make(chan struct{}),
		usage:          usage{users: 1},
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.markStreamAnswered = sync.OnceFunc(func() { close(l.streamAnswered) })
	l.invalidateListings() // listings of earlier sessions do not count
	return l
}

// connect connects and makes the handshake.
func (l *Link) connect(ctx context.Context) (f *fault) {
	switch l.up.server.Type {
	case TypeStdio:
		f = l.openPipe()
	case TypeSSE:
		f = l.openSSE(ctx)
	default:
		l.conn = newHTTPConn(l)
	}
	if f != nil {
		return f
	}
	return l.handshake(ctx)
}

// ServerInfo returns the server's claims in the handshake.
func (l *Link) ServerInfo() ServerInfo { return l.serverInfo }

// Modern reports whether the revision in force is one without sessions: 2026-07-28 or later.
func (l *Link) Modern() bool { return l.modern }

// Done returns a channel that is closed when the link has ended.
func (l *Link) Done() <-chan struct{} { return l.ctx.Done() }

// Err says why the link has ended, as a [*LinkError]; nil while it works.
func (l *Link) Err() error {
	if f := l.fault(); f != nil {
		return f.linkError()
	}
	return nil
}

// Close ends the link and returns when all resources are released. Requests under way end with
// [CodeClosed]. Queued notifications, such as cancellations, are still sent, within closeGrace.
// Close may be called again.
func (l *Link) Close() {
	l.polite.Store(true)
	l.flushOutbox() // otherwise a server may never learn that a request was cancelled
	l.endWith(&fault{code: CodeClosed, reason: errLinkClosed})
	<-l.finished
}

// errLinkClosed is the reason of requests over a link that is closed, or about to be.
const errLinkClosed = "the link is closed"

// finish releases all resources. It runs once, after the link has ended.
func (l *Link) finish() {
	if l.conn != nil {
		f := l.fault()
		l.conn.close(l.polite.Load() && f.code == CodeClosed)
	}
	l.tasks.stopAndWait()
	l.up.links.remove(l)
	l.u.processes.remove(l)
	close(l.finished)
}

// admitLink registers a link that is about to be opened, if the limits allow it.
func (u *Upstreams) admitLink(ctx context.Context, l *Link) *fault {
	if f := l.up.links.addLink(ctx, l, u.limits.Links, max(1, u.limits.Links/2)); f != nil ||
		l.up.server.Type != TypeStdio {
		return f
	}
	// One client may use every server, however few processes are allowed.
	return u.processes.addLink(ctx, l, u.limits.ServerSessions, max(u.limits.ServerSessions/2, u.stdio))
}

// closeLinks closes all links and admits no others.
func (up *sharedServer) closeLinks() {
	up.links.mu.Lock()
	up.links.closed = true
	links := make([]*Link, 0, len(up.links.links))
	for l := range up.links.links { // in any order: they are closed at once
		links = append(links, l)
	}
	up.links.mu.Unlock()
	var wg sync.WaitGroup
	for _, l := range links {
		wg.Go(l.Close)
	}
	wg.Wait()
	if up.transport != nil {
		up.transport.CloseIdleConnections()
	}
	up.tokens.close()
}

// tasks counts the goroutines of a link. They end before the link is finished.
type tasks struct {
	mu    sync.Mutex
	ended bool
	wg    sync.WaitGroup
}

// run starts f in a goroutine. After end it returns false and starts nothing.
func (t *tasks) run(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.wg.Go(f)
	return true
}

// stopAndWait waits for all goroutines.
func (t *tasks) stopAndWait() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.wg.Wait()
}
