package config

import (
	"slices"

	"pgfsm/policy"
)

// unlikely warns of settings that can hardly be meant.
func (l *loader) unlikely() {
	root, c := l.file.root, &l.out.Content
	names := func(a policy.Allowance) bool { return len(a.Tools) > 0 }
	if l.out.Closed == nil && !slices.ContainsFunc(c.Allowlist, names) {
		l.warn(l.file.src, root.get("allowlist").at, "the allowlist names no tool, so every call is refused: pgfsm allow SERVER TOOL adds one")
	}
	longer := func(what string, ms int64) {
		if ms > c.Limits.RunTimeout {
			l.warn(l.file.src, root.get("limits").get("run_timeout").at, "%s is %s, longer than limits.run_timeout, which ends a run after %s",
				what, writeDuration(ms), writeDuration(c.Limits.RunTimeout))
		}
	}
	for i := range l.out.Servers {
		longer("connect_timeout of the server "+l.out.Servers[i].Name, l.out.Servers[i].ConnectTimeout)
	}
	if llm := root.get("planner").get("llm"); llm != nil {
		longer("planner.llm.timeout", llm.millis("timeout"))
	}
}
