// Package prove proves claims about every call that a configuration lets through to its policies.
//
// A claim speaks about all calls of all tools on the allowlist. The package divides what conditions
// ask about each place of a call (an argument, the caller's name, the answer to a query) into cells:
// sets of values that no condition tells apart. A search over the cells then finds a call that
// contradicts the claim, or shows that there is none.
//
// # What a proof means
//
// A proof covers every schema and every annotation that a tool can have, unless the tool is pinned
// and its definition is known. It does not cover calls whose budget for conditions is spent; they
// are denied. A condition of a form that the package does not divide is free: it may be true, false
// or fail. So such a condition never makes a proof false, and can only prevent it.
//
// # What a counterexample means
//
// Each counterexample was judged by the gates of policy and risk themselves, and by those of the
// schema, of the input and of the grants. A bug of this package can prevent a proof, or make one
// false; it cannot make up a counterexample.
package prove

import (
	"context"
	"slices"
	"strings"

	"pgfsm/policy"
)

// Results of a claim.
const (
	Proved  = "proved"
	Refuted = "refuted"
	Unknown = "unknown"
)

// A Result says what was found about a claim.
type Result struct {
	ID     string
	Status string
	Tools  int // the tools whose calls were examined
	Cells  int // the cells of their places together
	// A call that contradicts the claim; for reachable, one that satisfies it. It may be nil.
	Call *Call
	// Why the claim is unknown, and the condition outside of what is analyzed, with its place.
	Reason, Condition, Where string
}

// Options choose what is known of the tools.
type Options struct {
	Catalog *policy.Catalog // the tools as they are declared; nil: not known
	Listing bool            // tools that are not pinned have the schemas of the catalog, too
	Report  func(done, all int)
}

// Prove examines claims about the calls that a bundle decides about. The error is one of the
// claims, or the context's.
func Prove(ctx context.Context, b *policy.Bundle, claims []Claim, o Options) ([]Result, error) {
	atoms := map[string]*atom{}
	newer, err := readSide(b, atoms, nil)
	if err != nil {
		return nil, err
	}
	tools, divided := toolsOf(b, o), newCache()
	results := make([]Result, len(claims))

	for i := range claims {
		c, err := readClaim(&claims[i], newer, atoms)
		if err != nil {
			return nil, err
		}
		sides := []*side{newer}
		if c.Old != nil {
			older, err := readSide(c.Old, atoms, newer)
			if err != nil {
				return nil, err
			}
			sides = append(sides, older)
		}

		results[i] = Result{ID: c.ID, Status: Proved}
		if c.Kind == Reachable {
			results[i].Status = Refuted
		}
		for k, t := range tools {
			if o.Report != nil {
				o.Report(i*len(tools)+k, len(claims)*len(tools))
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if c.globs.Fit(t.input()) {
				results[i].proveTool(t, c, sides, divided)
			}
			if results[i].Call != nil {
				break
			}
		}
	}
	return results, nil
}

// proveTool examines a claim for the calls of a tool.
func (r *Result) proveTool(t *tool, c *claim, sides []*side, divided *cache) {
	r.Tools++
	for i, f := range t.forms() {
		p := newTrial(t, f, c, sides, divided)
		p.search()
		for _, d := range p.domains {
			if i == 0 || strings.HasPrefix(d.name, placeActor) {
				r.Cells += len(d.cells)
			}
		}
		switch found := &p.result; {
		case found.Call != nil:
			r.Call, r.Reason, r.Condition, r.Where = found.Call, "", "", ""
			r.Status = Refuted
			if c.Kind == Reachable {
				r.Status = Proved
			}
			return
		case found.Reason != "" && r.Reason == "":
			r.Status = Unknown
			r.Reason, r.Condition, r.Where = found.Reason, found.Condition, found.Where
		}
		if !p.asksCaller() {
			return // every caller is judged alike
		}
	}
}

// toolsOf returns the tools of the allowlist, each once.
func toolsOf(b *policy.Bundle, o Options) (tools []*tool) {
	content := b.Content()
	for _, a := range content.Allowlist {
		for _, name := range a.Tools {
			i := slices.IndexFunc(tools, func(t *tool) bool { return t.server == a.Server && t.name == name })
			if i < 0 {
				pinned := policy.PinOf(content.Pins, a.Server, name) != ""
				t := &tool{server: a.Server, name: name, env: content.Env, pinned: pinned}
				if pinned || o.Listing {
					t.lookUp(o.Catalog)
				}
				tools, i = append(tools, t), len(tools)
				t.groups = []string{}
			}
			switch t := tools[i]; {
			case a.Group == "":
				t.groups = nil // everybody may call it
			case t.groups != nil:
				t.groups = append(t.groups, a.Group)
			}
		}
	}
	return tools
}

// lookUp finds the declaration of a tool.
func (t *tool) lookUp(c *policy.Catalog) {
	if c == nil {
		return
	}
	live, _ := c.Find(t.server, t.name)
	if live.Effective() {
		t.live, t.root = live, shapeOf(live.Input().Root())
	}
}
