package report

import (
	"slices"

	"pgfsm/eval/attack"
)

// An AttackFile is one file of results of attacks, as the page shows it.
type AttackFile struct {
	Name   string
	Result *attack.Result
}

// LastArm is the arm with most gates.
func (f *AttackFile) LastArm() attack.Arm { return f.Result.Arms[len(f.Result.Arms)-1] }

// Sections are the suites, and all of them together if there are several.
func (f *AttackFile) Sections() []attack.Section {
	if len(f.Result.Suites) == 1 {
		return f.Result.Suites
	}
	overall := f.Result.Overall
	overall.Suite = "all suites"
	return append(slices.Clone(f.Result.Suites), overall)
}

// Last is a section's arm with most gates.
func (f *AttackFile) Last(s attack.Section) attack.ArmSection { return s.Arms[len(s.Arms)-1] }

// A StoppedRow counts the calls of attacks that a gate stopped with a code, in each arm.
type StoppedRow struct {
	Gate, Code string
	Calls      []int
}

// Stopped are the gates and codes that stopped calls of attacks, in the order of the arms.
func (f *AttackFile) Stopped() (rows []*StoppedRow) {
	for column, arm := range f.Result.Overall.Arms {
		for _, s := range arm.Stopped {
			if s.Wants == 0 {
				continue
			}
			i := slices.IndexFunc(rows, func(r *StoppedRow) bool { return r.Gate == s.Gate && r.Code == s.Code })
			if i < 0 {
				i = len(rows)
				rows = append(rows, &StoppedRow{s.Gate, s.Code, make([]int, len(f.Result.Arms))})
			}
			rows[i].Calls[column] += s.Wants
		}
	}
	return rows
}

// Through are the attacks that had calls made in the arms grants and approvals, or in the last arm.
func (f *AttackFile) Through() []attack.Through {
	return slices.DeleteFunc(slices.Clone(f.Result.Through), func(t attack.Through) bool {
		return t.Arm != f.LastArm() && t.Arm != attack.Grants
	})
}

// A RefusedCall is a call that a task needs and that the last arm did not make.
type RefusedCall struct {
	Suite, Task string
	attack.Refused
}

// Refused are the calls that tasks need and that the last arm did not make.
func (f *AttackFile) Refused() (calls []RefusedCall) {
	for _, task := range f.Result.Tasks {
		for _, arm := range task.Arms {
			if arm.Arm != f.LastArm() {
				continue
			}
			for _, r := range arm.Refused {
				calls = append(calls, RefusedCall{task.Suite, task.Task, r})
			}
		}
	}
	return calls
}
