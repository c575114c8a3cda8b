package upstream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
	"pgfsm/policy/secret"
)

// A Peer is the client that a link speaks for.
type Peer struct {
	// Owner is whom the link is for. One owner has at most half of the sessions with a server that there may be; where it is
	// empty only the whole is bounded.
	Owner    string
	Protocol string // the revision that the client speaks; the link takes it where the server can, else the server's newest
	// Capabilities are the client capabilities that the server is told of, a JSON object: what the operator exposes of the
	// client's own. Nil: none.
	Capabilities jsontext.Value
	// Rounds: what the peer can be asked it can be asked in results, too, as servers of the stateless revisions do. A server without
	// sessions that speaks one of these is then linked by that, whatever the client speaks: it could not ask otherwise.
	Rounds bool
	// Tell is given what the server says that belongs to no request under way, in order: notifications and requests
	// (requests want [Link.Answer]). It must not block. Nil: notifications are dropped, requests refused.
	Tell func(wire.Message)
}

// A Hello is what the server says of itself in the handshake. Everything in it is a claim.
type Hello struct {
	Protocol     string         // the revision in force
	Capabilities jsontext.Value // the server's, raw; an object
	Server       Info           // printable, bounded, without secrets
}

// A Reply is the answer to a request that was passed on: exactly one of its members is set.
type Reply struct {
	Result jsontext.Value // byte for byte as received
	Error  jsontext.Value // the error object, byte for byte as received
}

// A Kept listing is what a link's server offered when it was last asked, and the moment in which it was. It is immutable, and the
// same pointer as long as nothing was asked anew.
type Kept struct {
	Listing
	At time.Time // when the answer was complete

	once sync.Once
	view any
}

// View returns what read makes of the listing. It is made once for each listing, whoever asks first.
func (k *Kept) View(read func(Listing) any) any {
	k.once.Do(func() { k.view = read(k.Listing) })
	return k.view
}

// Age is how old the listing is at a moment.
func (k *Kept) Age(now time.Time) time.Duration { return max(0, now.Sub(k.At)) }

// A LinkError is why a link could not be made, or is over, or why a request has no answer. The codes are those of [Listing],
// and [CodeLinks].
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

// A Link is one session with one server, spoken without the SDK: messages pass with the bytes of their payload untouched. It
// is made by [Upstreams.Link] and lives until its first fault or Close; it is never repaired. All methods may be called
// concurrently.
type Link struct {
	u       *Upstreams
	up      *upstream
	peer    Peer
	secrets *secret.Masker
	frame   int // bytes of the largest message that is read

	ctx       context.Context // its end cuts off every request and kills the child
	cancel    context.CancelFunc
	calls     atomic.Int32 // requests under way
	allowance allowance    // for what nobody asked for
	faultMu   sync.Mutex
	first     *fault

	since atomic.Uint64 // the moment up to which no listing counts

	conn      conn
	hello     Hello
	modern    bool
	ownMeta   wire.Object   // of a modern link: see requestMeta
	listens   bool          // the server says that it announces changes of its tools
	speaks    bool          // the server may send messages between requests that this process uses
	gaveUp    atomic.Bool   // see GaveUp
	stream    atomic.Bool   // the standalone stream is open, or never will be
	asks      bool          // the server may ask the peer on that stream, which it does in the middle of a call
	opened    chan struct{} // closed by setOpened: the server has answered the request for that stream, with whatever status
	setOpened func()
	kept      atomic.Pointer[Kept]
	listing   chan struct{} // held while the tools are listed

	requests serverRequests // see incoming.go
	outbox   outbox         // the same
	tasks    tasks

	polite   atomic.Bool   // the end is ours: say good-bye
	finished chan struct{} // closed when nothing is left
}

// closeGrace is how long a link may take to say good-bye (end its HTTP session, let the child process end) before everything it holds
// is cut off.
const closeGrace = 3 * time.Second

// A conn brings messages to the server and back over one transport.
type conn interface {
	// ask sends a request and returns what it came to. It gives what the server says meanwhile to the query, in the caller's
	// goroutine.
	ask(ctx context.Context, q *query) outcome
	// tell sends a notification, or an answer to the server, and returns when it is on its way.
	tell(ctx context.Context, frame []byte) *fault
	// close lets go of everything. If polite, the server is told before, for at most closeGrace.
	close(polite bool)
}

// Link opens a session with a server, shakes hands, and returns it. The link outlives ctx; the connecting does not. It takes
// at most the server's ConnectTimeout. The error is a [*LinkError].
func (u *Upstreams) Link(ctx context.Context, server string, p Peer) (*Link, error) {
	up := u.byName[server]
	if up == nil {
		return nil, &LinkError{CodeUnknown, "no server of this name is configured"}
	}
	if p.Capabilities != nil {
		if err := wire.Members(p.Capabilities, func(string, jsontext.Value) error { return nil }); err != nil {
			return nil, &LinkError{CodeInvalid, "the peer's capabilities are not a strict JSON object"}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, up.server.ConnectTimeout)
	defer cancel()
	l, err := u.link(ctx, up, p)
	if err == nil && l.cannotAsk() {
		l = u.stateless(ctx, l)
	}
	return l, err
}

// link is Link within the time of ctx, without a second try.
func (u *Upstreams) link(ctx context.Context, up *upstream, p Peer) (*Link, error) {
	l := newLink(u, up, p)
	if f := up.admit(l, u.limits); f != nil {
		l.cancel()
		return nil, f.linkError()
	}
	defer context.AfterFunc(u.ctx, func() { l.over(&fault{code: CodeClosed, reason: errClosed.Error()}) })()
	stop := context.AfterFunc(ctx, func() {
		l.fail(overCode(ctx), "it did not connect and greet within the time allowed")
	})
	f := l.open(ctx)
	stop()
	if f == nil {
		f = l.fault()
	}
	if f != nil {
		l.over(f)
		l.finish()
		return nil, l.fault().linkError()
	}
	context.AfterFunc(l.ctx, l.finish)
	return l, nil
}

func newLink(u *Upstreams, up *upstream, p Peer) *Link {
	l := &Link{
		u: u, up: up, peer: p, secrets: u.secrets, frame: u.limits.frame(), listing: make(chan struct{}, 1), opened: make(chan struct{}),
		finished: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.setOpened = sync.OnceFunc(func() { close(l.opened) })
	l.changed() // what an earlier session listed says nothing of this one
	return l
}

// open connects and shakes hands.
func (l *Link) open(ctx context.Context) (f *fault) {
	switch l.up.server.Type {
	case TypeStdio:
		f = l.openPipe()
	case TypeSSE:
		f = l.openSSE(ctx)
	default:
		f = l.openHTTP()
	}
	if f != nil {
		return f
	}
	return l.greet(ctx)
}

// Hello is what the server says of itself.
func (l *Link) Hello() Hello { return l.hello }

// Modern reports whether the revision in force is one without sessions: 2026-07-28 or later.
func (l *Link) Modern() bool { return l.modern }

// GaveUp reports whether an answer was not waited for to its end: the server may still be at that request.
func (l *Link) GaveUp() bool { return l.gaveUp.Load() }

// Done is closed when the link is over.
func (l *Link) Done() <-chan struct{} { return l.ctx.Done() }

// Err is why the link is over, a [*LinkError], or nil while it is not.
func (l *Link) Err() error {
	if f := l.fault(); f != nil {
		return f.linkError()
	}
	return nil
}

// Close ends the link and returns when nothing of it is left. What is under way ends with [CodeClosed]; that a request was given
// up is still told, for at most closeGrace. Close may be called again.
func (l *Link) Close() {
	l.polite.Store(true)
	l.flush() // else a server that goes on with a request for which nobody waits may never hear of that
	l.over(&fault{code: CodeClosed, reason: errLinkClosed})
	<-l.finished
}

// errLinkClosed is the reason of what is asked of a link that is closed, or about to be.
const errLinkClosed = "the link is closed"

// finish lets go of everything. It runs once, after the link's end.
func (l *Link) finish() {
	if l.conn != nil {
		f := l.fault()
		l.conn.close(l.polite.Load() && f.code == CodeClosed)
	}
	l.tasks.end()
	l.up.dismiss(l)
	close(l.finished)
}

// admit notes a link that is being opened, if there is room for it.
func (up *upstream) admit(l *Link, limits Limits) *fault {
	most := limits.Links
	if up.server.Type == TypeStdio {
		most = limits.Children
	}
	up.linksMu.Lock()
	defer up.linksMu.Unlock()
	switch {
	case up.closed:
		return &fault{code: CodeClosed, reason: errClosed.Error()}
	case len(up.links) >= most:
		return &fault{code: CodeLinks, reason: fmt.Sprintf("there are %d sessions with it already, as many as are allowed", most)}
	case l.peer.Owner != "" && up.ownedBy(l.peer.Owner) >= max(1, most/2):
		return &fault{code: CodeLinks, reason: fmt.Sprintf("there are %d sessions with it for one client already, as many as are allowed", max(1, most/2))}
	}
	up.links[l] = struct{}{}
	return nil
}

// ownedBy counts the links of one owner, so that nobody can take all.
func (up *upstream) ownedBy(owner string) int {
	n := 0
	for l := range up.links { // in any order: they are counted
		if l.peer.Owner == owner {
			n++
		}
	}
	return n
}

func (up *upstream) dismiss(l *Link) {
	up.linksMu.Lock()
	defer up.linksMu.Unlock()
	delete(up.links, l)
}

// closeLinks closes all links, and lets no other be opened.
func (up *upstream) closeLinks() {
	up.linksMu.Lock()
	up.closed = true
	links := make([]*Link, 0, len(up.links))
	for l := range up.links { // in any order: they are closed at once
		links = append(links, l)
	}
	up.linksMu.Unlock()
	var wg sync.WaitGroup
	for _, l := range links {
		wg.Go(l.Close)
	}
	wg.Wait()
	up.pool.close()
}

// Tasks are the goroutines of a link, which end before it is finished.
type tasks struct {
	mu    sync.Mutex
	ended bool
	wg    sync.WaitGroup
}

// run runs f beside everything else. After the end it does not, and returns false.
func (t *tasks) run(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return false
	}
	t.wg.Go(f)
	return true
}

// end waits for all of them.
func (t *tasks) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.wg.Wait()
}
