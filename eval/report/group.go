package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgfsm/eval"
	"pgfsm/eval/attack"
)

// groupOf is what files of attacks have in common that belong together: their name up to the word attack. The suites of
// agentdojo-attack-bank.json and agentdojo-attack-mail.json are shown side by side and added up; those of own-attack.json are
// not among them.
func groupOf(name string) string {
	before, _, _ := strings.Cut(name, "attack")
	return before
}

// heading is what a group is called on the page. The group without a name has a heading only where there are others.
func heading(group string, groups int) string {
	if name := strings.TrimRight(group, "-_. "); name != "" {
		return show(name)
	}
	if groups == 1 {
		return ""
	}
	return "attack"
}

// join adds the results of another file of the same group. They must be of the same arms and the same machine: figures of two
// things are no figure.
func join(to, from *attack.Result) error {
	switch {
	case !slices.Equal(to.Arms, from.Arms):
		return errors.New("it has other arms than the files that it belongs with")
	case to.Machine != from.Machine:
		return errors.New("it is of another machine than the files that it belongs with")
	}
	for i := range from.Suites {
		if slices.ContainsFunc(to.Suites, func(s attack.Section) bool { return s.Suite == from.Suites[i].Suite }) {
			return fmt.Errorf("suite %q stands in another file too", show(from.Suites[i].Suite))
		}
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

// perTask is how many there are for each task.
func perTask(n, tasks int) float64 { return float64(n) / float64(max(1, tasks)) }
