package states

import "pgfsm/policy"

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
