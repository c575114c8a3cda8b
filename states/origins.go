package states

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/origin"
)

// Origins say where the arguments of a call come from, and what was looked at to find that out. The members are in
// canonical order.
type Origins struct {
	Earlier   int           `json:"earlier,omitzero"` // how many calls of the requester were sent before, if what they sent was looked at
	Failed    string        `json:"failed,omitzero"`  // why nothing was looked at
	Leaves    []origin.Leaf `json:"leaves"`
	Private   bool          `json:"private,omitzero"` // see [origin.Rules.Private]
	Prompts   int           `json:"prompts,omitzero"` // how many prompts the session has
	Runs      int           `json:"runs,omitzero"`    // how many calls of the session were sent
	Untrusted bool          `json:"untrusted,omitzero"`
}

// HasSession reports whether earlier prompts and calls belong together with the request: those of the client's
// session that a hook told, or else of the request's task, of its session of MCP, or of that which its client named.
func (r *Request) HasSession() bool { return r.SessionKey() != "" || r.Task != "" }

// FindOrigins finds where the arguments of the run's call come from. untrusted: the session had results that nobody
// has seen. The results of the session are named by the first entry of their run.
func (r *Run) FindOrigins(s *origin.Session, untrusted bool) *Origins {
	tool, rules := r.facts.Validated.tool, r.bundle.Origins()
	s.Holds = r.bundle.HoldsItem(r.request.Actor, r.request.Identity)
	found := &Origins{
		Leaves:    rules.Find(s, tool.Server, tool.Name, r.Plan().Args.Bytes(), jsontext.Value(tool.InputSchema)),
		Private:   rules.Private(s),
		Prompts:   len(s.Prompts),
		Runs:      len(s.Results),
		Untrusted: untrusted || rules.Untrusted(s),
	}
	if s.Failed != "" {
		return NoOrigins(s.Failed)
	}
	if found.Leaves == nil {
		found.Leaves = []origin.Leaf{}
	}
	return found
}

// NoOrigins are those of a call whose session cannot be looked at.
func NoOrigins(reason string) *Origins {
	return &Origins{Failed: reason, Leaves: []origin.Leaf{}, Private: true, Untrusted: true}
}

// origins returns where the arguments come from; nil if that was not read.
func (f *AuthorizedFact) origins() *Origins {
	if f == nil || f.history == nil {
		return nil
	}
	return f.history.Origins
}

// Origins returns where the arguments of the run's call come from; nil if that was not read.
func (r *Run) Origins() *Origins { return r.facts.Authorized.origins() }

// forPolicies returns the origins as conditions read them.
func (o *Origins) forPolicies() *policy.Origins {
	if o == nil {
		return nil
	}
	return &policy.Origins{Leaves: o.Leaves, Untrusted: o.Untrusted, Private: o.Private}
}

// digest names the origins; empty if there are none.
func (o *Origins) digest() canonical.Digest {
	if o == nil {
		return ""
	}
	return canonical.Sum("origins", canonical.MustSorted(o))
}

// sameOrigins reports whether the origins that the run read are those that another bundle would read.
func sameOrigins(r *Run, b *policy.Bundle) bool {
	return !r.request.HasSession() || r.Origins() != nil && b.SameLabels(r.bundle)
}

// DecodeOrigins reads origins strictly: only the form in which they are recorded is accepted.
func DecodeOrigins(raw jsontext.Value) (*Origins, error) {
	o := new(Origins)
	if err := canonical.Unmarshal(raw, o); err != nil {
		return nil, err
	}
	if !bytes.Equal(canonical.MustSorted(o), raw) {
		return nil, errors.New("the origins are not in their one form")
	}
	return o, o.check()
}

// check refuses origins that no ledger finds.
func (o *Origins) check() error {
	if o == nil {
		return nil
	}
	if o.Failed != "" && (len(o.Leaves)+o.Prompts+o.Runs+o.Earlier > 0 || !o.Private || !o.Untrusted) {
		return errors.New("origins were found although nothing was looked at")
	}
	if min(o.Prompts, o.Runs, o.Earlier) < 0 {
		return errors.New("a number of prompts or calls is negative")
	}
	if len(o.Leaves) > 2*(origin.MaxLeaves+1) {
		return fmt.Errorf("there are %d leaves", len(o.Leaves))
	}
	for i := range o.Leaves {
		if err := o.checkLeaf(&o.Leaves[i]); err != nil {
			return fmt.Errorf("the argument %s: %w", o.Leaves[i].At, err)
		}
	}
	return nil
}

// checkLeaf checks that the leaf has the evidence of its origin, and that there are sources of its kind.
func (o *Origins) checkLeaf(leaf *origin.Leaf) error {
	if !slices.Contains([]string{"", origin.Target, origin.Amount, origin.Content}, leaf.Role) {
		return fmt.Errorf("the role is %q", leaf.Role)
	}
	sources, inPrompt := o.Runs, leaf.Origin == origin.Request
	switch leaf.Origin {
	case origin.Request:
		sources = o.Prompts
	case origin.Trusted, origin.Own:
	case origin.None:
		if leaf.Source+leaf.Form != "" {
			return errors.New("it has evidence of no origin")
		}
	default:
		return fmt.Errorf("the origin is %q", leaf.Origin)
	}
	if leaf.Origin != origin.None {
		source, err := strconv.ParseInt(leaf.Source, 10, 64)
		if err != nil || strconv.FormatInt(source, 10) != leaf.Source || source < 1 || sources == 0 {
			return fmt.Errorf("its source %q was not looked at", leaf.Source)
		}
	}
	if !inPrompt && (leaf.Start != 0 || leaf.End != 0) || inPrompt && (leaf.Start < 0 || leaf.End <= leaf.Start) ||
		leaf.Place != "" && leaf.Origin != origin.Trusted && leaf.Origin != origin.Own {
		return errors.New("its place is not one of its origin")
	}
	return nil
}
