package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgfsm/eval"
	"pgfsm/eval/attack"
)

// groupOf is the group of a file of attacks: its name up to the word attack. So agentdojo-attack-bank.json and
// agentdojo-attack-mail.json are one group, which is added up, and own-attack.json is another. A file without that word is a group
// of its own.
func groupOf(name string) string {
	before, _, found := strings.Cut(name, "attack")
	if !found {
		return strings.TrimSuffix(name, ".json")
	}
	return before
}

// nameGroups gives every group its heading. If two names differ only in the punctuation at their end, each group has the name of
// its first file.
func (r *Results) nameGroups() {
	for i := range r.attacks {
		r.attacks[i].name = heading(r.attacks[i].group, len(r.attacks))
	}
	names := make(map[string]int) // looked up, never ranged over
	for i := range r.attacks {
		names[r.attacks[i].name]++
	}
	for i := range r.attacks {
		if f := &r.attacks[i]; names[f.name] > 1 {
			f.name = f.sources[0].name
		}
	}
}

// heading is the heading of a group. The group without a name has one only if there are other groups.
func heading(group string, groups int) string {
	if name := strings.TrimRight(group, "-_. "); name != "" {
		return show(name)
	}
	if groups == 1 {
		return ""
	}
	return "attack"
}

// take adds the results of a file to its group.
func (f *attackFile) take(src source, result *attack.Result) error {
	for i := range result.Suites {
		suite := result.Suites[i].Suite
		if other, ok := f.suites[suite]; ok {
			return fmt.Errorf("%s and %s both hold the suite %q, and would be added up: remove one of them from the folder", other, src.name, show(suite))
		}
	}
	if f.result == nil {
		f.result = result
	} else if err := join(f.result, result); err != nil {
		return faulty(src.name, err)
	}
	f.sources = append(f.sources, src)
	for i := range result.Suites {
		f.suites[result.Suites[i].Suite] = src.name
	}
	return nil
}

// join adds the results of another file of the same group, which must have the same arms and the same machine.
func join(to, from *attack.Result) error {
	switch {
	case !slices.Equal(to.Arms, from.Arms):
		return errors.New("it has other arms than the other files of its group")
	case to.Machine != from.Machine:
		return errors.New("it is of another machine than the other files of its group")
	}
	addSection(&to.Overall, &from.Overall)
	to.Suites = append(to.Suites, from.Suites...)
	to.Through = append(to.Through, from.Through...)
	to.Slips = append(to.Slips, from.Slips...)
	to.Broken = append(to.Broken, from.Broken...)
	to.Tasks = append(to.Tasks, from.Tasks...)
	to.Cases = append(to.Cases, from.Cases...)
	return nil
}

// addSection adds up two sections with the same arms.
func addSection(to, from *attack.Section) {
	to.Cases, to.Attacks, to.Tasks = to.Cases+from.Cases, to.Attacks+from.Attacks, to.Tasks+from.Tasks
	sum := func(a *eval.Share, b eval.Share) { *a = eval.Of(a.K+b.K, a.N+b.N) }
	for i := range to.Arms {
		a, b := &to.Arms[i], &from.Arms[i]
		sum(&a.Attack, b.Attack)
		a.Cluster = eval.Interval{} // the files do not say which tasks they share
		sum(&a.Wants, b.Wants)
		sum(&a.Needs, b.Needs)
		sum(&a.Utility, b.Utility)
		a.Partly += b.Partly
		a.Asked.Needs, a.Asked.Tasks, a.Asked.Wants = a.Asked.Needs+b.Asked.Needs, a.Asked.Tasks+b.Asked.Tasks, a.Asked.Wants+b.Asked.Wants
		a.Asked.PerTask = perTask(a.Asked.Needs, to.Tasks)
		a.Stopped = addStopped(a.Stopped, b.Stopped)
		a.Edges.Needs, a.Edges.Wants = append(a.Edges.Needs, b.Edges.Needs...), append(a.Edges.Wants, b.Edges.Wants...) // added up where they are drawn
	}
}

// addStopped adds up by gate and code, most calls of attacks first.
func addStopped(to, from []attack.Stopped) []attack.Stopped {
	for _, s := range from {
		i := slices.IndexFunc(to, func(o attack.Stopped) bool { return o.Gate == s.Gate && o.Code == s.Code })
		if i < 0 {
			to = append(to, s)
			continue
		}
		to[i].Needs, to[i].Wants = to[i].Needs+s.Needs, to[i].Wants+s.Wants
	}
	slices.SortStableFunc(to, func(a, b attack.Stopped) int { return b.Wants - a.Wants })
	return to
}

// perTask is the average for a task.
func perTask(n, tasks int) float64 { return float64(n) / float64(max(1, tasks)) }
