package runner

import (
	"sync"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/mcp/gateway"
	"pgfsm/states"
)

const (
	// maxClientSessions bounds the sessions of clients that are remembered. If there are more, all are forgotten.
	maxClientSessions = 4 << 10
	// maxPrompts bounds the prompts that are recorded of one session.
	maxPrompts = 256
	// sessionIdle is the time after which an unused session is forgotten.
	sessionIdle = 30 * time.Minute
	// announcedFor is how long a hook's announcement of an MCP call waits for the call.
	announcedFor = time.Minute
)

// A sessionKey names a session of a client: clients choose its id, so it belongs to one principal.
type sessionKey struct{ owner, session string }

// A clientSession is what this gateway remembers of a session.
type clientSession struct {
	prompts int   // how many prompts were recorded
	prompt  int64 // index of the entry with the last prompt; 0: none
	used    time.Time
}

// An announcedCall is an MCP call that a hook announced.
type announcedCall struct {
	owner, server, tool string
	arguments           canonical.Digest
}

type announcement struct {
	session states.Session
	until   time.Time
}

// clientSessions remembers the sessions of clients whose hooks ask this gateway. The zero value has none.
type clientSessions struct {
	mu        sync.Mutex
	sessions  map[sessionKey]*clientSession
	announced map[announcedCall][]announcement
}

// use returns a session, which it may change until it is told to stop.
func (c *clientSessions) use(from gateway.Identity, session string, do func(*clientSession)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key, now := sessionKey{from.Owner(), session}, time.Now()
	s := c.sessions[key]
	if s == nil || now.Sub(s.used) > sessionIdle {
		if c.sessions == nil || len(c.sessions) >= maxClientSessions {
			c.sessions = make(map[sessionKey]*clientSession)
		}
		s = new(clientSession)
		c.sessions[key] = s
	}
	s.used = now
	do(s)
}

// forget forgets a session that has ended.
func (c *clientSessions) forget(from gateway.Identity, session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, sessionKey{from.Owner(), session})
}

// announce notes that a client is about to make an MCP call in a session.
func (c *clientSessions) announce(call announcedCall, session states.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.announced == nil || len(c.announced) >= maxClientSessions {
		c.announced = make(map[announcedCall][]announcement)
	}
	waiting := c.announced[call]
	if len(waiting) < maxPrompts {
		c.announced[call] = append(waiting, announcement{session, time.Now().Add(announcedFor)})
	}
}

// join returns the session in which an MCP call was announced, and uses the announcement up. It returns nil if
// nobody announced the call, or equal calls were announced in several sessions.
func (c *clientSessions) join(call announcedCall) *states.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.announced[call]
	now := time.Now()
	for len(waiting) > 0 && now.After(waiting[0].until) {
		waiting = waiting[1:]
	}
	if len(waiting) == 0 {
		delete(c.announced, call)
		return nil
	}
	first := waiting[0].session
	for _, other := range waiting[1:] {
		if other.session.Key() != first.Key() {
			delete(c.announced, call)
			return nil
		}
	}
	if waiting = waiting[1:]; len(waiting) == 0 {
		delete(c.announced, call)
	} else {
		c.announced[call] = waiting
	}
	return &first
}
