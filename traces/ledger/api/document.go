package api

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
	"pgfsm/traces/ledger"
)

// schemaVersion is that of the answers.
const schemaVersion = 1

// A request is how one run stands. Every member is always there; what does not apply is empty.
type request struct {
	Run        string           `json:"run"`
	Status     ledger.Status    `json:"status"`
	State      string           `json:"state"`
	At         string           `json:"at"`
	Updated    string           `json:"updated"`
	Kind       string           `json:"kind"`
	Actor      string           `json:"actor"`
	Task       string           `json:"task"`
	Env        string           `json:"env"`
	Server     string           `json:"server"`
	Tool       string           `json:"tool"`
	Arguments  canonical.Digest `json:"arguments"`
	Definition canonical.Digest `json:"definition"`
	Bundle     canonical.Digest `json:"bundle"`
	RiskMode   string           `json:"risk_mode"`
	RiskScore  int              `json:"risk_score"`
	Policy     string           `json:"policy"`
	Code       string           `json:"code"`
	Reason     string           `json:"reason"`
	Binding    canonical.Digest `json:"binding"`
	Approvers  []string         `json:"approvers"`
	Quorum     int              `json:"quorum"`
	Agreed     int              `json:"agreed"`
	Expires    string           `json:"expires"`
	Sent       string           `json:"sent"`
	Ended      string           `json:"ended"`
	Head       canonical.Digest `json:"head"`
}

func newRequest(q *ledger.Request) request {
	return request{
		Run: q.RunID, Status: q.Status, State: string(q.State), At: q.At, Updated: q.Updated, Kind: q.Kind, Actor: q.Actor, Task: q.Task,
		Env: q.Env, Server: q.Server, Tool: q.Tool, Arguments: q.Arguments, Definition: q.Definition, Bundle: q.Bundle, RiskMode: q.Mode,
		RiskScore: q.Score, Policy: q.Policy, Code: q.Code, Reason: q.Reason, Binding: q.Binding,
		Approvers: append([]string{}, q.Approvers...), Quorum: q.Quorum, Agreed: q.Agreed, Expires: q.Expires, Sent: q.Sent, Ended: q.Ended,
		Head: q.Head,
	}
}

type page struct {
	SchemaVersion int       `json:"schema_version"`
	Requests      []request `json:"requests"`
	Next          string    `json:"next"` // what after takes for the next page; empty behind the last
}

// A status is all that an approver has to see.
type status struct {
	SchemaVersion int            `json:"schema_version"`
	Request       request        `json:"request"`
	Args          jsontext.Value `json:"args"`    // as they would be sent; null if it came to no call
	Display       string         `json:"display"` // the same for people: indented, with everything visible that could deceive
	RiskRules     []string       `json:"risk_rules"`
	Votes         []vote         `json:"votes"`
	Result        jsontext.Value `json:"result"`      // for auditors: as the agent gets it; null if there is none
	ResultNote    string         `json:"result_note"` // why there is none, if the call has one
}

type vote struct {
	At      string           `json:"at"`
	Binding canonical.Digest `json:"binding"`
	By      string           `json:"by"`
	Outcome string           `json:"outcome"`
	Reason  string           `json:"reason"`
}

func newStatus(r ledger.Reader, q *ledger.Request) (status, error) {
	s := status{SchemaVersion: schemaVersion, Request: newRequest(q), Args: jsontext.Value("null"), Result: jsontext.Value("null"), RiskRules: []string{}}
	args, err := q.Call(r)
	if err != nil {
		return s, err
	}
	if args != nil {
		s.Args = args
		if s.Display, err = display(args); err != nil {
			return s, err
		}
	}
	votes, err := ledger.Votes(r, q.RunID)
	if err != nil {
		return s, err
	}
	s.Votes = newVotes(votes)
	for e, err := range r.EventsOf(q.RunID) {
		if err != nil {
			return s, err
		}
		if e.Type != ledger.RiskScored {
			continue
		}
		said, err := e.Whole(r)
		if err != nil {
			return s, err
		}
		for name, value := range canonical.Members(said) {
			if name != "rules" {
				continue
			}
			if err := canonical.Unmarshal(value, &s.RiskRules); err != nil {
				return s, fmt.Errorf("event %d: %w", e.Seq, err)
			}
		}
	}
	return s, nil
}

func newVotes(all []policy.Vote) []vote {
	out := []vote{}
	for _, v := range all {
		out = append(out, vote{At: v.At, Binding: v.Binding, By: v.By, Outcome: string(v.Outcome), Reason: v.Reason})
	}
	return out
}

// display writes arguments so that what people read is what is there.
func display(args jsontext.Value) (string, error) {
	text := args.Clone()
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		return "", err
	}
	return visible.Lines(string(text)), nil
}

// A voted document is the answer to a ballot that counted: how the request stood with it.
type voted struct {
	SchemaVersion int     `json:"schema_version"`
	Request       request `json:"request"`
}

type health struct {
	SchemaVersion int    `json:"schema_version"`
	Status        string `json:"status"`
}
