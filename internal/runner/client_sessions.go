package runner

import (
	"slices"
	"sync"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/mcp/gateway"
	"pgfsm/states"
)

const (
	// maxClientSessions bounds the sessions of one owner that are remembered. If there are more, all of this owner are
	// forgotten.
	maxClientSessions = 4 << 10
	// maxAnnounced bounds the calls that somebody announced and that did not come yet. If there are more, the oldest of
	// this actor is forgotten.
	maxAnnounced = 1 << 10
	// maxPrompts bounds the prompts that are recorded of one session.
	maxPrompts = 256
	// sessionIdle is the time after which an unused session is forgotten.
	sessionIdle = 30 * time.Minute
	// announcedFor is how long a hook's announcement of an MCP call waits for the call.
	announcedFor = time.Minute
)

// A clientSession is what this gateway remembers of a session.
type clientSession struct {
	prompts int   // how many prompts were recorded
	prompt  int64 // index of the entry with the last prompt; 0: none
	used    time.Time
}

// An announcedCall is an MCP call that a hook announced.
type announcedCall struct {
	server, tool string
	arguments    canonical.Digest
}

type announcement struct {
	call    announcedCall
	session states.Session
	until   time.Time
}

// clientSessions remembers the sessions of clients whose hooks ask this gateway. Each bound is one of an owner, so that
// nobody makes the gateway forget what others told. The zero value has none.
type clientSessions struct {
	mu        sync.Mutex
	sessions  map[string]map[string]*clientSession // by owner, and the client's session: clients choose its id
	announced map[string][]announcement            // by actor, the oldest first
}

// use returns a session, which it may change until it is told to stop.
func (c *clientSessions) use(from gateway.Identity, session string, do func(*clientSession)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own, now := c.sessions[from.Owner()], time.Now()
	s := own[session]
	if s == nil || now.Sub(s.used) > sessionIdle {
		if c.sessions == nil {
			c.sessions = make(map[string]map[string]*clientSession)
		}
		if own == nil || len(own) >= maxClientSessions {
			own = make(map[string]*clientSession)
			c.sessions[from.Owner()] = own
		}
		s = new(clientSession)
		own[session] = s
	}
	s.used = now
	do(s)
}

// forget forgets a session that has ended.
func (c *clientSessions) forget(from gateway.Identity, session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions[from.Owner()], session)
}

// announce notes that an actor's client is about to make an MCP call in a session.
func (c *clientSessions) announce(actor string, call announcedCall, session states.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	waiting := unexpired(c.announced[actor], now)
	if len(waiting) >= maxAnnounced {
		waiting = waiting[1:]
	}
	if c.announced == nil {
		c.announced = make(map[string][]announcement)
	}
	c.announced[actor] = append(waiting, announcement{call, session, now.Add(announcedFor)})
}

// join returns the session in which an actor's MCP call was announced, and uses the announcement up. It returns nil
// if nobody announced the call, or equal calls were announced in several sessions.
func (c *clientSessions) join(actor string, call announcedCall) *states.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := unexpired(c.announced[actor], time.Now())
	first := slices.IndexFunc(waiting, func(a announcement) bool { return a.call == call })
	if first < 0 {
		return nil
	}
	session := waiting[first].session
	unlike := func(a announcement) bool { return a.call == call && a.session.Key() != session.Key() }
	if slices.ContainsFunc(waiting, unlike) {
		c.announced[actor] = slices.DeleteFunc(waiting, func(a announcement) bool { return a.call == call })
		return nil
	}
	c.announced[actor] = slices.Delete(waiting, first, first+1)
	return &session
}

// unexpired returns the announcements that still wait.
func unexpired(waiting []announcement, now time.Time) []announcement {
	for len(waiting) > 0 && now.After(waiting[0].until) {
		waiting = waiting[1:]
	}
	return waiting
}
