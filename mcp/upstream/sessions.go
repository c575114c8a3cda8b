package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// Values of [Server.Sessions]: which clients share a session.
const (
	SessionsIdentity = "identity" // the clients of one identity
	SessionsSession  = "session"  // no others: each client session has its own
	SessionsOne      = "one"      // all clients
)

// usage counts the users of a link. A link begins with one user: the caller who opened it.
type usage struct {
	mu    sync.Mutex
	users int
	since time.Time   // time at which the last user left
	over  bool        // the link is closed, or about to be, for lack of users
	ends  bool        // the link's account has ended: it is closed when the last user leaves
	timer *time.Timer // closes the link
}

// Use keeps the link open until [Link.Release]. It returns false if the link has ended, or is
// closed because nobody used it.
func (l *Link) Use() bool {
	l.usage.mu.Lock()
	defer l.usage.mu.Unlock()
	if l.usage.over || l.usage.ends || l.ctx.Err() != nil {
		return false
	}
	l.usage.users++
	if l.usage.timer != nil {
		l.usage.timer.Stop()
	}
	return true
}

// Release ends one use. After the last one, the link is closed when the
// server's IdleTimeout is over, or when another session needs its place.
func (l *Link) Release() {
	l.usage.mu.Lock()
	defer l.usage.mu.Unlock()
	if l.usage.users--; l.usage.users > 0 {
		return
	}
	l.usage.since = time.Now()
	idle := l.up.server.IdleTimeout
	if l.usage.ends {
		idle = 0
	}
	l.usage.timer = time.AfterFunc(idle, func() {
		if l.endUnused(idle) {
			l.Close()
		}
	})
}

// endUnused marks a link that nobody has used for some time. The caller closes it.
func (l *Link) endUnused(idle time.Duration) bool {
	l.usage.mu.Lock()
	defer l.usage.mu.Unlock()
	if l.usage.users > 0 || l.usage.over || time.Since(l.usage.since) < idle {
		return false
	}
	l.usage.over = true
	return true
}

// Idle reports whether the link was closed because nobody used it.
func (l *Link) Idle() bool {
	l.usage.mu.Lock()
	defer l.usage.mu.Unlock()
	return l.usage.over
}

// Process reports whether the link has a process of its own.
func (l *Link) Process() bool { return l.up.server.Type == TypeStdio }

// idleSince returns the time at which the last user left. idle is false while the link is used, or
// if it is closed already.
func (l *Link) idleSince() (since time.Time, idle bool) {
	l.usage.mu.Lock()
	defer l.usage.mu.Unlock()
	return l.usage.since, l.usage.users == 0 && !l.usage.over
}

// linkSet holds the links that share a limit: those with one server, or those with all stdio
// servers.
type linkSet struct {
	mu     sync.Mutex
	links  map[*Link]struct{} // open, or being opened
	closed bool               // no link is admitted any more
}

// addLink adds a link that is about to be opened. One owner may have up to share links. If there is
// no place, addLink closes the link that was unused for longest, and waits until it has ended.
func (s *linkSet) addLink(ctx context.Context, l *Link, most, share int) *fault {
	for {
		victim, f := s.tryAdd(l, most, share)
		if victim == nil {
			return f
		}
		select {
		case <-victim.finished:
		case <-ctx.Done():
			return &fault{code: contextCode(ctx), reason: "there was no time to wait for the end of another session"}
		}
	}
}

// tryAdd adds a link, or returns the link that must end first.
func (s *linkSet) tryAdd(l *Link, most, share int) (victim *Link, f *fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, &fault{code: CodeClosed, reason: errClosed.Error()}
	}

	// An owner that has its share makes room only by closing one of its own links.
	full, victimOwner := len(s.links) >= most, ""
	if owner := l.peer.Owner; owner != "" && s.ownedBy(owner) >= share {
		full, victimOwner = true, owner
	}

	if !full {
		if s.links == nil {
			s.links = make(map[*Link]struct{})
		}
		s.links[l] = struct{}{}
		return nil, nil
	}
	if victim = s.closeOldestIdle(victimOwner); victim != nil {
		return victim, nil
	}
	if victimOwner != "" {
		return nil, &fault{code: CodeLinks,
			reason: fmt.Sprintf("one client uses %d sessions at the same time, as many as are allowed", share)}
	}

	return nil, &fault{code: CodeLinks,
		reason: fmt.Sprintf("%d sessions are in use at the same time, as many as are allowed", most)}
}

// closeOldestIdle closes and returns the link that was unused for longest. If one
// is being closed already, it returns that one; if none can be, nil.
func (s *linkSet) closeOldestIdle(owner string) (victim *Link) {
	var oldest time.Time
	var closing *Link
	for l := range s.links { // in any order: the oldest is wanted
		if owner != "" && l.peer.Owner != owner {
			continue
		}
		idleStart, idle := l.idleSince()
		switch {
		case idle && (victim == nil || idleStart.Before(oldest)):
			victim, oldest = l, idleStart
		case l.ctx.Err() != nil || l.Idle():
			closing = l
		}
	}
	// A user may have come meanwhile: endUnused decides.
	if victim != nil && victim.endUnused(0) {
		go victim.Close()
		return victim
	}
	return closing
}

// ownedBy counts the links of one owner. The caller has the lock.
func (s *linkSet) ownedBy(owner string) int {
	n := 0
	for l := range s.links { // in any order: they are counted
		if l.peer.Owner == owner {
			n++
		}
	}
	return n
}

func (s *linkSet) remove(l *Link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.links, l)
}

// Processes returns the number of sessions with stdio servers, each with a process, and their
// limit.
func (u *Upstreams) Processes() (open, most int) {
	u.processes.mu.Lock()
	defer u.processes.mu.Unlock()
	return len(u.processes.links), u.limits.ServerSessions
}

// A Client uses servers for one run, in sessions that belong to one identity. The sessions stay
// open for the next run of the identity.
type Client struct {
	u     *Upstreams
	owner string
	// Person says that the client speaks for a person: it uses a server with Person only with an account.
	Person bool
	// By server: the account with which the client uses it; see [Client.UseAccount].
	accounts map[string]*Account

	mu   sync.Mutex
	held map[string]*Link // by server: link of the last List, in use until Close
}

// Client returns a client for an identity. Two callers that must not share a session need different
// identities. Runs of the operator have an identity, too, which may be empty. The caller closes the
// client.
func (u *Upstreams) Client(owner string) *Client {
	return &Client{u: u, owner: owner, held: make(map[string]*Link)}
}

// UseAccount makes the client use a server with an account. It must come before List.
func (c *Client) UseAccount(server string, a *Account) { c.accounts = map[string]*Account{server: a} }

// Close ends the use of the sessions.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, l := range c.held { // in any order: each is independent
		l.Release()
		delete(c.held, name)
	}
}

// holdLink stores a link, which is in use already, in place of the server's previous link, and
// releases that.
func (c *Client) holdLink(server string, l *Link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.held[server]; old != nil {
		old.Release()
	}
	c.held[server] = l
}

// heldLink returns the link of the last listing; nil before.
func (c *Client) heldLink(server string) *Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[server]
}

// List asks servers for their tools concurrently, each within its ConnectTimeout, and returns their
// listings in the order of New. Without names it lists all servers; it leaves unknown ones out.
// List connects where there is no working link and never uses an old listing. A failing server
// removes only its own tools. A server whose tools change during the listing is asked again. If the
// changes do not end, the server is up and Changed reports the change.
func (c *Client) List(ctx context.Context, names ...string) []Listing {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.u.ctx, func() { cancel(errClosed) })()
	servers := c.u.serversNamed(names)
	out := make([]Listing, len(servers))
	var wg sync.WaitGroup
	for i, up := range servers {
		wg.Go(func() { out[i] = c.listServer(ctx, up) })
	}
	wg.Wait()
	return out
}

func (c *Client) listServer(ctx context.Context, up *sharedServer) Listing {
	if up.clientTools != nil {
		return up.clientTools.Listing
	}
	ctx, cancel := up.server.connectContext(ctx)
	defer cancel()
	listing, err := c.listSession(ctx, up)
	if err != nil {
		linkErr := &LinkError{Code: CodeUnreachable, Reason: err.Error()}
		errors.As(err, &linkErr)
		return Listing{
			Server: up.server.Name,
			Status: StatusDown,
			Code:   linkErr.Code,
			Reason: linkErr.Reason,
		}
	}
	return listing.Listing
}

// listSession lists the tools in the owner's session. If that fails, it tries once more in another
// one: the session may be stale, because the server was restarted.
func (c *Client) listSession(ctx context.Context, up *sharedServer) (*CachedListing, error) {
	for firstTry := true; ; firstTry = false {
		if c.u.ctx.Err() != nil {
			return nil, &LinkError{CodeClosed, errClosed.Error()}
		}
		l, err := c.useSession(ctx, up)
		if err != nil {
			return nil, err
		}

		// A session that has never listed is new: another one would fail in the same way.
		fresh := l.cached.Load() == nil
		listing, err := l.Listing(ctx, 0)
		if err != nil {
			l.closeAfterCalls()
			l.Release()
			if fresh || !firstTry || ctx.Err() != nil {
				return nil, err
			}
			continue
		}
		c.holdLink(up.server.Name, l)
		return listing, nil
	}
}

// Changed reports whether the server has announced changed tools since this listing began, or has
// another session now. Calls by that listing are refused with CodeChanged. For a server that the
// client has not listed it reports false.
func (c *Client) Changed(server string, listing uint64) bool {
	l := c.heldLink(server)
	return l != nil && l.fault() == nil && l.Changed(listing)
}

// Call makes a call over the link of the last List, as [Link.Call] does. It never connects: without
// a working link nothing is sent.
func (c *Client) Call(ctx context.Context, call Call) Returned {
	if c.u.ctx.Err() != nil {
		return notSent(CodeClosed, errClosed.Error())
	}
	switch up := c.u.byName[call.Server]; {
	case up == nil:
		return notSent(CodeUnknown, "no server of this name is configured")
	case up.clientTools != nil:
		return notSent(CodeClientTool, clientToolReason)
	}
	l := c.heldLink(call.Server)
	if l == nil || l.fault() != nil {
		return notSent(CodeUnreachable, "there is no working session with it")
	}
	return l.Call(ctx, call, nil)
}

// useSession returns the session of the client's owner with a server, in use, and opens it if there
// is none. Concurrent callers get the same one, which is opened also if one of them gives up.
func (c *Client) useSession(ctx context.Context, up *sharedServer) (*Link, error) {
	owner := c.owner
	if up.server.Sessions == SessionsOne {
		owner = ""
	}

	account := c.accounts[up.server.Name]
	if c.Person && up.server.Person && account == nil {
		return nil, errNoAccount
	}
	for {
		if l := up.links.clientSession(owner, account.id()); l != nil {
			return l, nil
		}

		// The context of the opening is not the caller's, because other callers may wait for it.
		opened := up.opening.DoChan(account.id()+" "+owner, func() (any, error) {
			ctx, cancel := up.server.connectContext(c.u.ctx)
			defer cancel()
			l, err := c.u.openLink(ctx, up, Peer{Owner: owner, Account: account})
			if err != nil {
				return nil, err
			}
			l.forClients.Store(true)
			l.Release()
			return nil, nil
		})

		var r singleflight.Result
		select {
		case r = <-opened:
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errConnectTimeout) {
				return nil, &LinkError{contextCode(ctx), "there was no time to ask it"}
			}
			r = <-opened // it has the same time, and says what it waited for
		}

		if r.Err != nil {
			return nil, r.Err
		}
	}
}

// clientSession returns the session of an owner with an account that is open for [Client]s, in use; nil if there is
// none.
func (s *linkSet) clientSession(owner, account string) *Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.links { // in any order: there is one
		if l.forClients.Load() && l.peer.Owner == owner && l.peer.Account.id() == account && !l.Retired() && l.Use() {
			return l
		}
	}
	return nil
}
