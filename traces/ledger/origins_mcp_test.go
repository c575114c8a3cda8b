package ledger_test

import (
	"testing"

	labels "pgfsm/policy/origin"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// of moves the client to a session of MCP, or to one that it names.
func (s *clientSession) of(key string) {
	s.content.Labels.Sessions = []string{"ann"}
	s.request.Session, s.request.MCPSession = nil, key
}

// TestOriginsInASessionOfMCP: what was in the session of MCP, or in the one that the client named, decides, and both verifiers find the same
// again.
func TestOriginsInASessionOfMCP(t *testing.T) {
	for _, c := range []struct {
		name   string
		before func(*clientSession)
		want   ledger.Status
	}{
		{"of-mcp", func(s *clientSession) {
			s.of(states.MCPSession("s-1"))
			s.call(contacts, "{}", contactsFound)
		}, ledger.Executed},
		{"another-of-mcp", func(s *clientSession) {
			s.of(states.MCPSession("s-1"))
			s.call(contacts, "{}", contactsFound)
			s.of(states.MCPSession("s-2"))
		}, ledger.Pending},
		{"named", func(s *clientSession) {
			s.of(states.NamedSession("s-1"))
			s.call(contacts, "{}", contactsFound)
		}, ledger.Executed},
		{"another-named", func(s *clientSession) {
			s.of(states.NamedSession("s-1"))
			s.call(contacts, "{}", contactsFound)
			s.of(states.NamedSession("s-2"))
		}, ledger.Pending},
		{"of-mcp-with-the-name-of-a-named-one", func(s *clientSession) {
			s.of(states.NamedSession("s-1"))
			s.call(contacts, "{}", contactsFound)
			s.of(states.MCPSession("s-1"))
		}, ledger.Pending},
		{"for-somebody-else", func(s *clientSession) {
			s.asksInATask(issuer + "#fay")
			s.request.Task, s.request.MCPSession = "", states.MCPSession("s-1")
			s.call(contacts, "{}", contactsFound)
			s.asksInATask(eve)
			s.request.Task = ""
		}, ledger.Pending},
		{"an-echo", func(s *clientSession) {
			s.of(states.MCPSession("s-1"))
			s.call(contacts, `{"query":"bob@example.com"}`, contactsFound)
		}, ledger.Pending},
		{"a-prompt-of-a-hook's-session-of-that-name", func(s *clientSession) {
			s.request.Session.ID = "s-1"
			s.prompt("Send it to bob@example.com.")
			s.of(states.NamedSession("s-1"))
		}, ledger.Pending},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, newFixture(t))
			c.before(s)
			if status := s.sends("bob@example.com"); status != c.want {
				t.Errorf("the call is %s, want %s", status, c.want)
			}
			s.sound()
			(&forgery{"nothing-changed", unedited, ""}).run(t, s.fixture)
		})
	}
}

// TestVerifyJudgesSessions: both verifiers refuse a session of MCP that no gateway records.
func TestVerifyJudgesSessions(t *testing.T) {
	s := newSession(t, newFixture(t))
	s.of(states.NamedSession("s-1"))
	s.call(contacts, `{}`, contactsFound)
	s.sends("bob@example.com")
	asked := func(from, to string) edit { return first(ledger.RequestCreated, from, to) }
	s.forge(t,
		forgery{"nothing-changed", unedited, ""},
		forgery{"another-session", asked(`meta/s-1`, `meta/s-2`), "of its session were before it"},
		forgery{"a-session-of-mcp", asked(`meta/s-1`, `mcp/s-1`), "of its session were before it"},
		forgery{"of-no-kind", asked(`meta/s-1`, `claude/s-1`), "session of MCP"},
		forgery{"without-a-name", asked(`meta/s-1`, `meta/`), "session of MCP"},
		forgery{"beside-a-task", asked(`"mcp_session":"meta/s-1"`, `"mcp_session":"meta/s-1","task":"t-1"`), "only session"},
		forgery{"beside-a-session", asked(`"mcp_session":"meta/s-1"`, `"mcp_session":"meta/s-1","session":{"client":"claude","id":"s-1"}`), "only session"},
		forgery{"of-a-question", asked(`"kind":"agent","mcp_session"`, `"kind":"call","mcp_session"`), "only session"},
	)

	s = newSession(t, newFixture(t))
	s.of(states.NamedSession("s-1"))
	s.content.Labels = &labels.Labels{Tools: s.content.Labels.Tools, Roles: s.content.Labels.Roles, Sessions: []string{"bob"}}
	s.call(contacts, `{}`, contactsFound)
	(&forgery{"named-by-a-client-that-may-not", unedited, "the labels do not let"}).run(t, s.fixture)
}
