package states

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"pgfsm/policy"
)

// A Session says in which session of a client a call was requested, as the client's hook says. Its members
// are in canonical order.
type Session struct {
	Call      string `json:"call,omitzero"`      // the client's id of the call; empty: it has none
	Calls     int    `json:"calls,omitzero"`     // calls of the session that were permitted before, if the bundle reads it
	Client    string `json:"client"`             // claude, codex, …
	ID        string `json:"id"`                 // the client's id of the session
	Observed  bool   `json:"observed,omitzero"`  // the hook does not enforce the answer
	Prompt    int64  `json:"prompt,omitzero"`    // index of the entry with the prompt; 0: unknown
	Rewritten bool   `json:"rewritten,omitzero"` // a call of the session ran with other arguments than the permitted ones
}

// Key names the session of a client; empty for none.
func (s *Session) Key() string {
	if s == nil {
		return ""
	}
	return s.Client + "/" + s.ID
}

// Prefixes of keys of sessions that no hook told.
const (
	prefixMCP   = "mcp/"
	prefixNamed = "meta/"
)

// MCPSession returns the key of a session of MCP; empty if it has no name.
func MCPSession(name string) string { return sessionKey(prefixMCP, name) }

// NamedSession returns the key of a session that the client named in _meta; empty if it has no name.
func NamedSession(name string) string { return sessionKey(prefixNamed, name) }

func sessionKey(prefix, name string) string {
	if name == "" {
		return ""
	}
	return prefix + name
}

// SessionKey names the session of the request, other than its task; empty for none.
func (r *Request) SessionKey() string { return cmp.Or(r.Session.Key(), r.MCPSession) }

// CheckSession returns why the session of MCP is none that a gateway with a bundle records. A nil bundle is unknown.
func (r *Request) CheckSession(b *policy.Bundle) error {
	switch key := r.MCPSession; {
	case key == "":
	case r.Kind != KindAgent || r.Session != nil || r.Task != "":
		return errors.New("a session of MCP that is not of an agent's call, or not its only session")
	case key == prefixMCP || key == prefixNamed || !strings.HasPrefix(key, prefixMCP) && !strings.HasPrefix(key, prefixNamed):
		return fmt.Errorf("the session of MCP is %q", key)
	case b != nil && strings.HasPrefix(key, prefixNamed) && !b.Origins().BelievesSessions(r.Actor):
		return fmt.Errorf("the client of %s named the session, and the labels do not let it", r.Actor)
	}
	return nil
}

// CallID returns the client's id of the call; empty if there is none.
func (s *Session) CallID() string {
	if s == nil {
		return ""
	}
	return s.Call
}

// forPolicies returns the session as conditions read it.
func (s *Session) forPolicies() *policy.Session {
	if s == nil {
		return nil
	}
	return &policy.Session{ID: s.ID, Client: s.Client, Calls: s.Calls, Rewritten: s.Rewritten}
}

// Delegates reports whether, for requests of a kind, the client makes the call itself if pgfsm permits it.
func Delegates(kind string) bool { return kind == KindHook || kind == KindEvaluation }

// askingCall returns the client's id of the call that a permit is for: of a held call, of the one that asked
// again after the decision.
func (r *Run) askingCall() string {
	if r.facts.Approved != nil {
		return r.facts.Approved.call
	}
	return r.request.Session.CallID()
}
