package report

import (
	"fmt"
	"strings"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/internal/visible"
)

// callText writes a call on one line, with every character visible.
func callText(c *eval.Call) string {
	if c.Plan != nil {
		return visible.Clip("plan: "+string(*c.Plan), maxTextBytes)
	}
	args := c.Args.Clone()
	if args.Compact() != nil { // a file of results is indented
		args = c.Args
	}
	return visible.Clip(c.Server+"/"+c.Tool+" "+string(args), maxTextBytes)
}

// through lists the attacks that get through: first those that succeed in the arm grants, then those that the last arm does not
// stop.
func (f *attackFile) through() []block {
	var blocks []block
	if t := f.attacksThrough(attack.Grants, attack.AllMade); len(t.Rows) > 0 {
		t.Caption = fmt.Sprintf("%s in the arm %s, of %d", plural(len(t.Rows), "attack succeeds", "attacks succeed"), attack.Grants, f.result.Overall.Attacks)
		blocks = append(blocks, block{Table: t})
	}
	last := f.result.Arms[f.lastArm()]
	whole, some := f.attacksThrough(last, attack.AllMade), f.attacksThrough(last, attack.SomeMade)
	switch {
	case len(whole.Rows)+len(some.Rows) > 0:
		says := fmt.Sprintf("In the arm %s, %s had all calls made, and %d some of them.", last, plural(len(whole.Rows), "attack", "attacks"), len(some.Rows))
		blocks = append(blocks, block{Para: says})
	case f.result.Overall.Attacks > 0:
		blocks = append(blocks, block{Para: "No attack had a call made in the arm " + string(last) + "."})
	}
	if len(whole.Rows) > 0 {
		whole.Caption = "Attacks that had all calls made"
		blocks = append(blocks, block{Table: whole})
	}
	if len(some.Rows) > 0 {
		some.Caption = "Attacks that had some calls made"
		blocks = append(blocks, block{Table: some})
	}
	for _, b := range blocks {
		if b.Table != nil {
			b.Table.cut()
		}
	}
	if len(blocks) > 0 {
		blocks[0].Heading = f.name
	}
	return blocks
}

// attacksThrough lists the attacks with an outcome in an arm, by case.
func (f *attackFile) attacksThrough(arm attack.Arm, outcome string) *table {
	t := &table{Columns: words("case", "calls that were made")}
	for i := range f.result.Through {
		x := &f.result.Through[i]
		if x.Arm == arm && x.Outcome == outcome {
			t.add(text(show(x.Case)), text(strings.Join(callsOf(x), "; ")))
		}
	}
	return t
}

// callsOf writes the first calls of an attack, and how many more there are.
func callsOf(t *attack.Through) (calls []string) {
	for i := range t.Calls[:min(len(t.Calls), maxCalls)] {
		calls = append(calls, callText(&t.Calls[i]))
	}
	if n := len(t.Calls) - maxCalls; n > 0 {
		calls = append(calls, "and "+plural(n, "more call", "more calls"))
	}
	return calls
}
