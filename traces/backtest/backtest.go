// Package backtest judges recorded calls by two sets of policies and reports which calls they
// decide differently.
package backtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"pgfsm/internal/config"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/traces"
)

// ReadJudge reads a policy file, or a folder with policy.yaml and perhaps risk.yaml. Without
// risk.yaml each call is judged with the risk rules that it was recorded with.
func ReadJudge(path string, open config.Open) (*ruling.Judge, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var rated *risk.Content
	var claims []string
	if info.IsDir() {
		name := filepath.Join(path, "risk.yaml")
		path = filepath.Join(path, "policy.yaml")
		if _, err := os.Lstat(name); err == nil {
			text, err := open(name)
			if err != nil {
				return nil, err
			}
			claims = claimsIn(text)
			if rated, _, err = config.ReadRisk(name, text, claims...); err != nil {
				return nil, err
			}
		}
	}

	text, err := open(path)
	if err != nil {
		return nil, err
	}
	claims = append(claims, claimsIn(text)...)
	p, _, err := config.ReadPolicy(path, text, claimsIn(text)...)
	return ruling.NewJudge(p, rated, claims...), err
}

var claimName = regexp.MustCompile(regexp.QuoteMeta(condition.ClaimPrefix) + `([A-Za-z_][A-Za-z0-9_]*)`)

// claimsIn returns the claims that a file names. No configuration could name them here: a claim
// that a run did not record is unknown.
func claimsIn(text []byte) (claims []string) {
	for _, m := range claimName.FindAllSubmatch(text, -1) {
		claims = append(claims, string(m[1]))
	}
	slices.Sort(claims)
	return slices.Compact(claims)
}

// A Call is a recorded call with the decisions of both judges.
type Call struct {
	Path   string         `json:"path"`
	RunID  string         `json:"run_id"`
	Tool   string         `json:"tool"` // server and tool
	Old    string         `json:"old"`
	New    string         `json:"new"`
	By     string         `json:"by"` // the new policy that decided
	Kinds  []string       `json:"kinds"`
	Before *ruling.Ruling `json:"before"` // nil: the call did not reach the policy gate
	After  *ruling.Ruling `json:"after"`
	// Unknown lists what a judge reads of the identity or the session and the run did not record.
	// The call is not compared then.
	Unknown []string `json:"unknown,omitempty"`
	Err     error    `json:"-"` // why the trace cannot be used
}

// A Comparer compares the decisions of two judges. It is safe for concurrent use.
type Comparer struct {
	Old, New *ruling.Judge
	Replayer *traces.Replayer
}

// Compare executes the trace of a call again and has both judges decide it. err is the error of
// reading the trace.
func (c *Comparer) Compare(path string, t *traces.Trace, err error) (call Call) {
	call = Call{Path: filepath.ToSlash(path), Err: err}
	if err != nil {
		return call
	}
	call.RunID = t.Header.RunID
	run, err := c.Replayer.Replay(t)
	if err != nil {
		call.Err = err
		return call
	}
	q, ok := run.Question()
	if !ok {
		return call
	}

	oldRuling, err := c.Old.Judge(run.Bundle(), q)
	if err != nil {
		call.Err = err
		return call
	}
	if call.After, err = c.New.Judge(run.Bundle(), q); err != nil {
		call.Err = err
		return call
	}

	call.Before, call.Tool = oldRuling, q.Server+" "+q.Tool.Name
	call.Unknown = slices.Concat(oldRuling.Unknown, call.After.Unknown)
	slices.Sort(call.Unknown)
	if call.Unknown = slices.Compact(call.Unknown); len(call.Unknown) > 0 {
		return call
	}

	call.Kinds = ruling.Changes(oldRuling, call.After)
	call.Old, call.New, call.By = oldRuling.Decision, call.After.Decision, call.After.Policy
	return call
}

// A Report sums up calls.
type Report struct {
	Traces    int             `json:"traces"`
	Judged    int             `json:"judged"` // calls that reached the policy gate
	Unusable  int             `json:"unusable"`
	Unknown   []Call          `json:"unknown,omitempty"` // calls with unknown facts, which are neither judged nor unusable
	Errors    []TraceError    `json:"errors"`
	Decisions []DecisionCount `json:"decisions"` // every pair of decisions
	Kinds     []KindCount     `json:"kinds"`     // every kind of change
	Changed   []Call          `json:"changed"`
}

// A TraceError says why a trace cannot be used.
type TraceError struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// A DecisionCount counts calls by both decisions.
type DecisionCount struct {
	Old   string `json:"old"`
	New   string `json:"new"`
	Calls int    `json:"calls"`
}

// A KindCount counts calls by a kind of change.
type KindCount struct {
	Kind  string `json:"kind"`
	Calls int    `json:"calls"`
}

// NewReport sums up calls, in their order.
func NewReport(calls []Call) *Report {
	r := &Report{Traces: len(calls)}
	for _, oldDecision := range []string{rules.Allow, rules.Pending, rules.Deny} {
		for _, newDecision := range []string{rules.Allow, rules.Pending, rules.Deny} {
			r.Decisions = append(r.Decisions, DecisionCount{Old: oldDecision, New: newDecision})
		}
	}
	for _, kind := range ruling.Kinds() {
		r.Kinds = append(r.Kinds, KindCount{Kind: kind})
	}

	for _, c := range calls {
		switch {
		case c.Err != nil:
			r.Unusable++
			r.Errors = append(r.Errors, TraceError{c.Path, c.Err.Error()})
			continue
		case c.Before == nil:
			continue
		case len(c.Unknown) > 0:
			r.Unknown = append(r.Unknown, c)
			continue
		}

		r.Judged++
		pair := slices.IndexFunc(r.Decisions, func(d DecisionCount) bool { return d.Old == c.Old && d.New == c.New })
		r.Decisions[pair].Calls++
		for i := range r.Kinds {
			if slices.Contains(c.Kinds, r.Kinds[i].Kind) {
				r.Kinds[i].Calls++
			}
		}
		if len(c.Kinds) > 0 {
			r.Changed = append(r.Changed, c)
		}
	}
	return r
}

// HasChange reports whether a call changed by one of some kinds.
func (r *Report) HasChange(kinds []string) bool {
	return slices.ContainsFunc(r.Kinds, func(k KindCount) bool { return k.Calls > 0 && slices.Contains(kinds, k.Kind) })
}
