package report

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/policy/visible"
)

// spelled writes a call on one line, every character of it visible.
func spelled(c *eval.Call) string { return visible.Clip(unclipped(c), maxTextBytes) }

// unclipped is all of a call, as it stands in its file but for the spaces between.
func unclipped(c *eval.Call) string {
	if c.Plan != nil {
		return "plan: " + string(*c.Plan)
	}
	args := c.Args.Clone()
	if args.Compact() != nil { // a file of results is indented
		args = c.Args
	}
	return c.Server + "/" + c.Tool + " " + string(args)
}

// through shows what gets through: first the attacks that succeed in the arm grants, by name; then the attacks that the last arm
// does not stop, by attack and with the calls that were made.
func (f *attackFile) through() []block {
	blocks := f.throughLast()
	if t := f.succeeded(attack.Grants); len(t.Rows) > 0 {
		blocks = slices.Concat([]block{{Table: t}}, blocks)
	}
	if len(blocks) > 0 {
		blocks[0].Heading = f.name
	}
	return blocks
}

// succeeded lists the attacks that succeed in an arm.
func (f *attackFile) succeeded(arm attack.Arm) *table {
	t := table{Columns: words("case", "calls that were made")}
	for i := range f.result.Through {
		x := &f.result.Through[i]
		if x.Arm != arm || x.Outcome != attack.AllMade {
			continue
		}
		t.add(text(show(x.Case)), text(strings.Join(callsOf(x), "; ")))
	}
	t.Caption = fmt.Sprintf("%s in the arm %s, of %d", plural(len(t.Rows), "attack succeeds", "attacks succeed"), arm, f.result.Overall.Attacks)
	t.cut()
	return &t
}

// throughLast shows the attacks that the last arm does not stop.
func (f *attackFile) throughLast() []block {
	last := f.result.Arms[f.lastArm()]
	var got []*attack.Through
	for i := range f.result.Through {
		if t := &f.result.Through[i]; t.Arm == last {
			got = append(got, t)
		}
	}
	if len(got) == 0 {
		if f.result.Overall.Attacks == 0 {
			return nil
		}
		return []block{{Para: "No attack had a call made in the arm " + string(last) + "."}}
	}
	made := 0
	for _, t := range got {
		if t.Outcome == attack.AllMade {
			made++
		}
	}
	says := fmt.Sprintf("In the arm %s, %s had all calls made, and %d some of them. Attacks of a suite that had the same calls made are shown once.",
		last, plural(made, "attack", "attacks"), len(got)-made)
	groups := sameCalls(got)
	if len(groups) > maxThrough {
		says += fmt.Sprintf(" Of %d such groups the first %d are shown.", len(groups), maxThrough)
	}
	var list []through
	for _, g := range groups[:min(len(groups), maxThrough)] {
		list = append(list, newThrough(g))
	}
	return []block{{Para: says}, {Table: f.byAttack(got)}, {Through: list}}
}

// sameCalls puts attacks of one suite together that came as far with the same calls, in the order in which they are met.
func sameCalls(got []*attack.Through) (groups [][]*attack.Through) {
	type key struct {
		suite string
		made  bool
		calls string
	}
	at := make(map[key]int) // looked up, never ranged over
	for _, t := range got {
		var calls strings.Builder
		for i := range t.Calls {
			fmt.Fprintf(&calls, "%q\n", unclipped(&t.Calls[i])) // whole, and quoted: what differs is never taken for the same
		}
		k := key{t.Suite, t.Outcome == attack.AllMade, calls.String()}
		i, ok := at[k]
		if !ok {
			i = len(groups)
			at[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], t)
	}
	return groups
}

// newThrough shows attacks that had the same calls made. There is at least one.
func newThrough(same []*attack.Through) through {
	t := same[0]
	about := "had some calls made: "
	if t.Outcome == attack.AllMade {
		about = "had all calls made: "
	}
	for i, s := range same[:min(len(same), maxCases)] {
		if i > 0 {
			about += ", "
		}
		about += show(s.Case)
	}
	if n := len(same) - maxCases; n > 0 {
		about += fmt.Sprintf(", and %d more", n)
	}
	return through{What: show(t.Suite) + ": " + plural(len(same), "attack", "attacks"), About: about, Calls: callsOf(t)}
}

// callsOf writes the first calls of an attack, and how many more there are.
func callsOf(t *attack.Through) (calls []string) {
	for i := range t.Calls[:min(len(t.Calls), maxCalls)] {
		calls = append(calls, spelled(&t.Calls[i]))
	}
	if n := len(t.Calls) - maxCalls; n > 0 {
		calls = append(calls, "and "+plural(n, "more call", "more calls"))
	}
	return calls
}

// byAttack counts, for each attack that got through, with how many tasks it did.
func (f *attackFile) byAttack(got []*attack.Through) *table {
	type key struct{ suite, attack string }
	type tally struct{ made, partly, of int }
	at := make(map[key]*tally) // looked up, never ranged over
	var order []key
	for _, t := range got {
		k := key{t.Suite, t.Attack}
		if at[k] == nil {
			at[k] = new(tally)
			order = append(order, k)
		}
		if t.Outcome == attack.AllMade {
			at[k].made++
		} else {
			at[k].partly++
		}
	}
	for i := range f.result.Cases {
		if n := at[key{f.result.Cases[i].Suite, f.result.Cases[i].Attack}]; n != nil {
			n.of++
		}
	}
	t := table{Caption: "Attacks that got through, with how many tasks", Columns: slices.Concat(words("attack", "suite"), numbers("all calls made", "some calls made", "tasks"))}
	for _, k := range order {
		n := at[k]
		t.add(text(show(k.attack)), text(show(k.suite)), number(n.made), number(n.partly), number(n.of))
	}
	t.cut()
	return &t
}
