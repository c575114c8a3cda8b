// Package session holds what MCP clients have open at the gateway: their sessions, the requests
// under way, the messages they have not read yet, and the memory that these may take.
//
//	t := session.NewTable(session.Limits{})
//	s, err := t.Open(client, endpoint, "2025-11-25") // initialize
//	s = t.Find(id, client, endpoint)                 // Mcp-Session-Id
//
// A session belongs to the identity and the endpoint that opened it; to all others its id is
// unknown. It ends when its client or the client's only connection ends it, when nobody has used it
// for [Limits].SessionIdle, or when the client does not read its stream.
//
// The package knows no transport and no method of MCP. Package front reads requests from
// connections and writes what is queued here.
package session

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"pgfsm/policy"
)

// evictAfter is the time that a session must have been unused before a new session of the same
// client may replace it.
const evictAfter = time.Minute

// Anonymous is the name of a client without credentials.
const Anonymous = policy.Anonymous

// RolePerson is the role of tokens of the ledger that stand for a person.
const RolePerson = "person"

// An Identity is the client as far as the gateway verified it. Sessions, tasks and request states
// are bound to the whole identity. It holds no token of an identity provider, because clients
// replace those every few minutes.
type Identity struct {
	Name       string // name in the ledger's token or the provider's subject; or [Anonymous]
	Token      string // id of the ledger's token; empty without one
	Client     string // the client id to which an identity provider issued the token
	OnBehalfOf string // the person for whom the client acts, as the identity provider says
	Principal  string // the person whose own accounts the client uses, see [policy.Principal]; empty for others
}

// Owner returns a name of the identity, for sessions with servers that no other identity may use.
// It does not depend on the token, because the token may be replaced before an approved call is
// made. The zero identity, which stands for all, has no name.
func (i Identity) Owner() string {
	if i == (Identity{}) {
		return ""
	}
	return fmt.Sprintf("%q %q %q", i.Name, i.Client, i.OnBehalfOf)
}

// MaxName bounds names that clients give to their sessions, prompts and calls, in bytes.
const MaxName = 128

// ValidName reports whether a client may give a name: printable ASCII. PostgreSQL's operators of JSON confuse \u0000 with
// others, so no name has a backslash.
func ValidName(name string) bool {
	return name != "" && len(name) <= MaxName &&
		!strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '\\' })
}

// A Session is one client's session, in the revisions of MCP that have sessions.
type Session struct {
	ID       string // random; the client sends it as Mcp-Session-Id
	Name     string // random; it names the session in the record, because who knows the ID can use it
	Client   Identity
	Endpoint string          // the server's name; empty: all servers
	Protocol string          // the revision that initialize agreed on
	Context  context.Context // ends with the session
	Requests InFlight
	Answers  EventLog // the event streams that answer requests

	table    *Table
	outgoing EventLog // messages that belong to none of the client's requests
	cancel   context.CancelFunc
	used     atomic.Int64 // time at which a request last began or ended, in Unix nanoseconds
	timer    *time.Timer
}

// Touch postpones the end of an unused session.
func (s *Session) Touch() { s.used.Store(time.Now().UnixNano()) }

// idleTime returns how long nobody has used the session; zero while it has a request or a reader.
func (s *Session) idleTime() time.Duration {
	if s.Requests.Count() > 0 || s.hasReader() {
		return 0
	}
	return max(0, time.Since(time.Unix(0, s.used.Load())))
}

// endIfIdle ends the session if it was unused for too long. Otherwise it sets the timer again.
func (s *Session) endIfIdle() {
	limit := s.table.Limits.SessionIdle
	if idle := s.idleTime(); idle < limit {
		s.table.mu.Lock()
		defer s.table.mu.Unlock()
		if s.table.byID[s.ID] == s {
			s.timer.Reset(limit - idle)
		}
		return
	}
	s.End()
}

// Send queues a message for the client that belongs to none of its requests. It does not block.
// Without a reader it drops the oldest messages. A client that has a reader and does not read loses
// its session.
func (s *Session) Send(message []byte) error {
	if s.Context.Err() == nil && !s.outgoing.logMessage(message) {
		s.End()
	}
	return nil
}

// End ends the session and cancels its requests.
func (s *Session) End() {
	s.table.remove(s)
	s.timer.Stop()
	s.cancel()
	s.Answers.close()
	s.outgoing.close()
}
