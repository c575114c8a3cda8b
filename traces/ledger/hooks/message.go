package hooks

import (
	"errors"
	"fmt"
	"slices"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// A message is one message to a receiver.
type message struct {
	id   string // the same in every attempt
	body []byte
}

// document is the body of a message in the form of Standard Webhooks: type, timestamp and data.
type document struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"` // time of the event
	Data      any    `json:"data"`      // a [data], or a [prunedData]
}

// prunedData is what a message says about a prune.
type prunedData struct {
	SchemaVersion int `json:"schema_version"`
	ledger.Prune
}

// data holds the call, without its arguments, and the decision. Its values do not change later, so
// that a repeated message is the same.
type data struct {
	SchemaVersion int `json:"schema_version"`
	present.Call
	Decide  string        `json:"decide"`  // the URL where approvers decide; empty if the service has none
	Outcome string        `json:"outcome"` // approved, denied or expired; empty until there is a decision
	Votes   []policy.Vote `json:"votes"`
}

// outcomes maps the events that can decide to their outcomes.
var outcomes = map[ledger.Type]string{
	ledger.ApprovalApproved: "approved", ledger.ApprovalDenied: "denied", ledger.ApprovalExpired: "expired",
}

// kindOf returns the kind of message about an event; empty if there is none.
func kindOf(t ledger.Type) string {
	switch {
	case t == ledger.ApprovalRequested:
		return Requested
	case outcomes[t] != "":
		return Decided
	case t == ledger.LedgerPruned:
		return Pruned
	}
	return ""
}

// newMessage returns the message about an event; nil for an event that decides nothing.
func (s *Sender) newMessage(r ledger.Reader, e *ledger.Event) (*message, error) {
	if e.Type == ledger.LedgerPruned {
		p, err := ledger.PruneOf(r, e)
		if err != nil {
			return nil, err
		}
		body := canonical.MustSorted(&document{Type: string(e.Type), Timestamp: e.At, Data: prunedData{present.SchemaVersion, p}})
		return &message{id: fmt.Sprintf("msg_pruned_%d", e.Index), body: body}, nil
	}
	if e.Type == ledger.ApprovalApproved && !completesQuorum(e) {
		return nil, nil
	}
	q, err := r.Run(e.RunID)
	if errors.Is(err, ledger.ErrNotFound) { // pruned meanwhile
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := s.newData(&q)
	d.Outcome = outcomes[e.Type]
	if d.Outcome != "" {
		votes, err := ledger.Votes(r, q.RunID)
		if err != nil {
			return nil, err
		}
		d.Votes = append(d.Votes, votes...)
	}
	body := canonical.MustSorted(&document{Type: "approval." + kindOf(e.Type), Timestamp: e.At, Data: d})
	return &message{id: fmt.Sprintf("msg_%s_%d", e.RunID, e.Index), body: body}, nil
}

// newData returns the members that every message about a call has.
func (s *Sender) newData(q *ledger.RunRow) data {
	return data{
		SchemaVersion: present.SchemaVersion,
		Call:          present.NewCall(q),
		Decide:        s.options.DecideAt(q.RunID),
		Votes:         []policy.Vote{},
	}
}

// completesQuorum reports whether an approval completed the quorum.
func completesQuorum(e *ledger.Event) bool {
	for name, value := range canonical.Members(e.Payload) {
		if name == "decides" {
			return string(value) == "true"
		}
	}
	return false
}

// subscribesTo reports whether a receiver gets messages of a kind.
func (r *receiver) subscribesTo(kind string) bool { return slices.Contains(r.events, kind) }
