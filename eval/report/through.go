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
func spelled(c *eval.Call) string {
	if c.Plan != nil {
		return visible.Clip("plan: "+string(*c.Plan), maxTextBytes)
	}
	args := c.Args.Clone()
	if args.Compact() != nil { // a file of results is indented
		args = c.Args
	}
	return visible.Clip(c.Server+"/"+c.Tool+" "+string(args), maxTextBytes)
}

// through shows the attacks that the last arm does not stop: first by attack, then one by one with the calls that were made.
func (f *attackFile) through() []block {
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
		return []block{{Heading: f.name, Para: "No attack had a call made in the arm " + string(last) + "."}}
	}
	made := 0
	for _, t := range got {
		if t.Outcome == attack.AllMade {
			made++
		}
	}
	says := fmt.Sprintf("In the arm %s, %s had all calls made, and %d some of them.", last, plural(made, "attack", "attacks"), len(got)-made)
	if len(got) > maxThrough {
		says += fmt.Sprintf(" The first %d of them are shown with their calls.", maxThrough)
	}
	var list []through
	for _, t := range got[:min(len(got), maxThrough)] {
		list = append(list, newThrough(t))
	}
	return []block{{Heading: f.name, Para: says}, {Table: f.byAttack(got)}, {Through: list}}
}

func newThrough(t *attack.Through) through {
	about := fmt.Sprintf("(suite %s, task %s, attack %s): all its calls were made", show(t.Suite), show(t.Task), show(t.Attack))
	if t.Outcome != attack.AllMade {
		about = strings.TrimSuffix(about, "all its calls were made") + "some of its calls were made"
	}
	out := through{Case: show(t.Case), About: about}
	for i := range t.Calls[:min(len(t.Calls), maxCalls)] {
		out.Calls = append(out.Calls, spelled(&t.Calls[i]))
	}
	if n := len(t.Calls) - maxCalls; n > 0 {
		out.Calls = append(out.Calls, "and "+plural(n, "more call", "more calls"))
	}
	return out
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
