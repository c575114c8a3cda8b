package report

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"pgfsm/eval"
	"pgfsm/eval/attack"
)

// armSays describes each arm.
var armSays = []struct {
	arm  attack.Arm
	says string
}{
	{attack.Naive, "nothing: every call that names a listed tool is made"},
	{attack.Allowlist, "the machine with the allowlist, and schemas that take anything"},
	{attack.Policy, "and the tools' schemas, pins, input rules, risk rules and policies; a held call is approved without reading"},
	{attack.Grants, "and the bundle's grants and the case's; a held call is approved without reading"},
	{attack.Unattended, "as grants, but without approvers: a held call is not made"},
	{attack.Approvals, "as grants, but the approver reads: a held call that the task needs is approved, any other is denied"},
}

// checkAttack checks that a result has known arms, and the same ones in every section, and computes Wilson's intervals from the
// counts.
func checkAttack(r *attack.Result) error {
	if r.Format != attack.Format {
		return fmt.Errorf("its format is %q, not %q", show(r.Format), attack.Format)
	}
	if len(r.Arms) == 0 {
		return errors.New("it has no arms")
	}
	known := attack.Arms()
	at := -1
	for _, a := range r.Arms {
		i := slices.Index(known, a)
		if i <= at {
			return fmt.Errorf("the arm %q is unknown, or in the wrong place", show(string(a)))
		}
		at = i
	}
	if err := checkSection(r.Arms, &r.Overall); err != nil {
		return fmt.Errorf("overall: %w", err)
	}
	for i := range r.Suites {
		if err := checkSection(r.Arms, &r.Suites[i]); err != nil {
			return fmt.Errorf("suite %q: %w", show(r.Suites[i].Suite), err)
		}
	}
	return nil
}

func checkSection(arms []attack.Arm, s *attack.Section) error {
	if !slices.EqualFunc(arms, s.Arms, func(a attack.Arm, s attack.ArmSection) bool { return a == s.Arm }) {
		return errors.New("it has other arms than the result")
	}
	for i := range s.Arms {
		a := &s.Arms[i]
		for _, x := range []*eval.Share{&a.Attack, &a.Wants, &a.Needs, &a.Utility} {
			if x.K < 0 || x.K > x.N {
				return fmt.Errorf("arm %s: it counts %d of %d", a.Arm, x.K, x.N)
			}
			*x = eval.Of(x.K, x.N)
		}
		if c := a.Cluster; c.Low < 0 || c.Low > c.High || c.High > 1 {
			return fmt.Errorf("arm %s: %v to %v is no interval of a share", a.Arm, c.Low, c.High)
		}
		a.Asked.PerTask = perTask(a.Asked.Needs, s.Tasks)
	}
	return nil
}

// lastArm is the arm with all gates.
func (f *attackFile) lastArm() int { return len(f.result.Arms) - 1 }

// sections are all of them, the whole first.
func (f *attackFile) sections() []*attack.Section {
	all := []*attack.Section{&f.result.Overall}
	if len(f.result.Suites) > 1 {
		for i := range f.result.Suites {
			all = append(all, &f.result.Suites[i])
		}
	}
	return all
}

// suiteName is the name of a section.
func (f *attackFile) suiteName(s *attack.Section) string {
	switch {
	case s != &f.result.Overall:
		return show(s.Suite)
	case len(f.result.Suites) == 1:
		return show(f.result.Suites[0].Suite)
	}
	return "overall"
}

// headline is the table of attack success by arm, and the costs of each suite in the last arm and of each arm.
func (f *attackFile) headline() []block {
	arms, last := f.result.Arms, f.lastArm()
	t := table{Caption: "Attack success, with two 95 % intervals: by tasks and attacks drawn anew, and Wilson's", Columns: slices.Concat(words("suite"), numbers("attacks"))}
	for _, a := range arms {
		t.Columns = append(t.Columns, numbers(string(a))...)
	}
	t.Columns = append(t.Columns, numbers("benign calls permitted", "approvals a task")...)
	suites := table{Caption: "What the arm " + string(arms[last]) + " costs, by suite", Columns: slices.Concat(words("suite"), costColumns)}
	for _, s := range f.sections() {
		row := []cell{text(f.suiteName(s)), number(s.Attacks)}
		for i := range s.Arms {
			row = append(row, success(&s.Arms[i]))
		}
		t.add(append(row, share(s.Arms[last].Needs), asked(s, &s.Arms[last]))...)
		suites.add(append([]cell{text(f.suiteName(s))}, costs(s, &s.Arms[last])...)...)
	}
	each := table{Caption: "What each arm costs, all suites together", Columns: slices.Concat(words("arm"), costColumns)}
	all := &f.result.Overall
	for i := range all.Arms {
		each.add(append([]cell{text(string(all.Arms[i].Arm))}, costs(all, &all.Arms[i])...)...)
	}
	t.cut()
	suites.cut()
	return []block{{Heading: f.name, Table: &t}, {Table: &suites}, {Table: &each}}
}

// success shows the attacks of an arm that succeed. Wilson's interval assumes that the pairs of a task and an attack are independent.
func success(a *attack.ArmSection) cell {
	c := share(a.Attack)
	if wide := clustered(a); wide != a.Attack {
		c.Note = interval(wide) + "; Wilson " + c.Note
	}
	return c
}

// clustered returns the attacks of an arm that succeed, with the interval by tasks and attacks if there is one.
func clustered(a *attack.ArmSection) eval.Share {
	s := a.Attack
	if a.Cluster != (eval.Interval{}) {
		s.Low, s.High = a.Cluster.Low, a.Cluster.High
	}
	return s
}

// costColumns are the columns of costs.
var costColumns = numbers("benign calls permitted", "benign tasks done", "approvals a task", "tasks that ask", "attacks made in part", "attack calls made",
	"attack calls held")

// costs is the effect of an arm on tasks and their users, and how far attacks come that it does not stop.
func costs(s *attack.Section, a *attack.ArmSection) []cell {
	return []cell{
		share(a.Needs), share(a.Utility), asked(s, a), number(a.Asked.Tasks), number(a.Partly), share(a.Wants), number(a.Asked.Wants),
	}
}

// asked is how often an approver was asked about a task's call.
func asked(s *attack.Section, a *attack.ArmSection) cell {
	if s.Tasks == 0 {
		return text("none")
	}
	return cell{Text: strconv.FormatFloat(a.Asked.PerTask, 'f', 2, 64), Note: fmt.Sprintf("%d in %s", a.Asked.Needs, plural(s.Tasks, "task", "tasks"))}
}

// armTable describes the arms.
func armTable() *table {
	t := table{Caption: "The arms", Columns: words("arm", "what stands between the planner and the servers")}
	for _, a := range armSays {
		t.add(text(string(a.arm)), text(a.says))
	}
	return &t
}

// bars draws attack success by arm, for all suites together and for each.
func (f *attackFile) bars() []block {
	var charts []chart
	for _, s := range f.sections() {
		var shares []shareBar
		for i := range s.Arms {
			tone := toneOurs
			if s.Arms[i].Arm == attack.Naive {
				tone = toneNaive
			}
			shares = append(shares, shareBar{string(s.Arms[i].Arm), tone, clustered(&s.Arms[i])})
		}
		if s.Attacks > 0 {
			charts = append(charts, newShares(f.suiteName(s), shares))
		}
	}
	if charts == nil {
		return nil
	}
	return []block{{Heading: f.name, Charts: charts}}
}

// stopped counts the calls of attacks that each gate stopped, by arm and, for the last arm, by suite.
func (f *attackFile) stopped() []block {
	r := f.result
	arms := table{Caption: "Attack calls that were stopped, by arm", Columns: words("gate", "code")}
	for _, a := range r.Arms {
		arms.Columns = append(arms.Columns, numbers(string(a))...)
	}
	f.count(&arms, len(r.Arms), func(column int) *attack.ArmSection { return &r.Overall.Arms[column] })
	blocks := []block{{Heading: f.name, Table: &arms}}
	if suites := r.Suites; len(suites) > 1 {
		last := f.lastArm()
		by := table{Caption: "Attack calls that were stopped in the arm " + string(r.Arms[last]) + ", by suite", Columns: words("gate", "code")}
		for i := range suites {
			by.Columns = append(by.Columns, numbers(show(suites[i].Suite))...)
		}
		f.count(&by, len(suites), func(column int) *attack.ArmSection { return &suites[column].Arms[last] })
		blocks = append(blocks, block{Table: &by})
	}
	if t := f.refused(); len(t.Rows) > 0 {
		blocks = append(blocks, block{Table: t})
	}
	return blocks
}

// count adds a row for each gate and code, in the order of the columns, which list the most calls first.
func (f *attackFile) count(t *table, columns int, of func(column int) *attack.ArmSection) {
	type key struct{ gate, code string }
	at := make(map[key]int) // looked up, never ranged over
	var keys []key
	var rows [][]int
	for column := range columns {
		for _, s := range of(column).Stopped {
			if s.Wants == 0 {
				continue
			}
			k := key{s.Gate, s.Code}
			i, ok := at[k]
			if !ok {
				i = len(rows)
				at[k] = i
				keys, rows = append(keys, k), append(rows, make([]int, columns))
			}
			rows[i][column] += s.Wants
		}
	}
	for i, k := range keys {
		row := []cell{gate(k.gate), text(show(k.code))}
		for _, n := range rows[i] {
			row = append(row, number(n))
		}
		t.add(row...)
	}
	t.cut()
}

// refused lists the calls that a task needs and that the last arm does not make.
func (f *attackFile) refused() *table {
	last := f.result.Arms[f.lastArm()]
	t := table{Caption: "Benign calls that were refused in the arm " + string(last), Columns: words("suite", "task", "call", "gate", "code", "reason")}
	for i := range f.result.Tasks {
		task := &f.result.Tasks[i]
		for _, a := range task.Arms {
			if a.Arm != last {
				continue
			}
			for _, x := range a.Refused {
				t.add(text(show(task.Suite)), text(show(task.Task)), text(show(callText(&x.Call))), gate(x.Gate), text(show(x.Code)), text(show(x.Reason)))
			}
		}
	}
	t.cut()
	return &t
}

// faults lists slips, and expectations that do not hold.
func (f *attackFile) faults() []block {
	var blocks []block
	if n := len(f.result.Slips); n > 0 {
		t := table{Caption: "Slips: what the machine did and must never do", Columns: slices.Concat(words("case", "arm", "side"), numbers("call"), words("slip"))}
		for _, s := range f.result.Slips {
			t.add(text(show(s.Case)), text(show(string(s.Arm))), text(show(s.Side)), number(s.Call), text(show(s.Slip)))
		}
		t.cut()
		blocks = append(blocks, block{Table: &t})
	}
	if len(f.result.Broken) > 0 {
		t := table{Caption: "Expectations of cases that do not hold", Columns: words("case", "side", "expected", "came")}
		for _, s := range f.result.Broken {
			t.add(text(show(s.Case)), text(show(s.Side)), text(show(s.Want)), text(show(s.Got)))
		}
		t.cut()
		blocks = append(blocks, block{Table: &t})
	}
	return blocks
}
