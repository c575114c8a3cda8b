package config

import (
	"slices"

	"pgfsm/policy"
)

// unlikely warns about settings that are probably mistakes.
func (l *loader) unlikely(allowlist string) {
	names := func(a policy.Allowance) bool { return len(a.Tools) > 0 }
	if l.out.Closed == nil && !slices.ContainsFunc(l.out.Content.Allowlist, names) {
		f, at := l.file, l.find(path{"allowlist"}).value.at
		if allowlist != "" { // it overrides the file that the configuration names
			f, at = &file{name: allowlist}, place{1, 1}
		}
		l.warn(f, at, "the allowlist names no tool, so every call is refused: pgfsm allow SERVER TOOL adds one")
	}
	for _, s := range l.out.Content.Schemas {
		if l.out.Closed == nil && policy.PinOf(l.out.Content.Pins, s.Server, s.Tool) == "" {
			l.warnAt(path{"servers", s.Server, "schemas", s.Tool}, "this schema is for %s, which is not pinned, so every call is refused: "+
				"pgfsm allow allows and pins a tool, pgfsm pins approve pins one that is allowed", quote(s.Tool))
		}
	}
	l.unlikelyTimeouts()
	l.unlikelyWaits()
	l.unlikelySizes()
	l.unlikelySessions()
	l.unlikelyRate()
}

// warnAt adds a warning about a value of the configuration.
func (l *loader) warnAt(p path, format string, args ...any) {
	l.warn(l.file, l.find(p).value.at, format, args...)
}

// unlikelySessions warns about fewer processes than stdio servers: listing the tools of all servers needs one process of each.
func (l *loader) unlikelySessions() {
	stdio := 0
	for i := range l.out.Servers {
		if l.out.Servers[i].Type == TypeStdio {
			stdio++
		}
	}
	at := path{"limits", "server_sessions"}
	if !l.writes(at) {
		at = path{"servers"}
	}
	if l.out.Serve.ServerSessions < stdio {
		l.warnAt(at, "limits.server_sessions is %d, and there are %d stdio servers, so the tools of all servers cannot be listed at the same time",
			l.out.Serve.ServerSessions, stdio)
	}
}

// unlikelyTimeouts warns about parts of a run that may take longer than the run. The call itself has its own time.
func (l *loader) unlikelyTimeouts() {
	run := l.Limits.RunTimeout
	warn := func(ms int64, p path, what string) {
		if !l.writes(p) {
			p = path{"limits", "run_timeout"}
		}
		if ms > run {
			l.warnAt(p, "%s is %s, longer than limits.run_timeout, which ends a run after %s", what, writeDuration(ms), writeDuration(run))
		}
	}
	for _, s := range l.out.Servers {
		warn(s.ConnectTimeout, path{"servers", s.Name, "connect_timeout"}, "connect_timeout of the server "+s.Name)
	}
	if llm := l.Planner.LLM; llm != nil {
		warn(llm.Timeout, path{"planner", "llm", "timeout"}, "planner.llm.timeout")
	}
}

// unlikelyWaits warns about times that no held call reaches, because it expires before.
func (l *loader) unlikelyWaits() {
	var longest int64
	if p := l.out.Content.Policy; p != nil {
		for i := range p.Policies {
			longest = max(longest, p.Policies[i].Expires)
		}
	}
	if longest == 0 {
		return // without policies, no call is ever held
	}
	if ms := l.Approvals.Hold; ms > longest {
		l.warnAt(path{"approvals", "hold"}, "approvals.hold is %s, and every held call expires after %s at the latest",
			writeDuration(ms), writeDuration(longest))
	}
	at := path{"approvals", "remind_before"}
	reminded := func(h Hook) bool { return slices.Contains(h.Events, HookReminder) }
	if ms := l.Approvals.RemindBefore; ms >= longest && l.writes(at) && slices.ContainsFunc(l.out.Hooks, reminded) {
		l.warnAt(at, "approvals.remind_before is %s, and every held call expires after %s at the latest, so there is never a reminder",
			writeDuration(ms), writeDuration(longest))
	}
}

// unlikelySizes warns about a size limit above the sizes that an input rule lets through.
func (l *loader) unlikelySizes() {
	c, at := &l.out.Content, path{"limits", "arguments_bytes"}
	judged := func(r policy.InputRule) bool {
		return slices.Contains(r.On, policy.KindCall) && slices.Contains(r.On, policy.KindAgent)
	}
	if c.Limits.ArgumentsBytes > c.Input.MaxBytes && l.writes(at) && slices.ContainsFunc(c.Input.Rules, judged) {
		l.warnAt(at, "limits.arguments_bytes is %d, and input.max_bytes lets no call through with more than %d: an input rule judges calls",
			c.Limits.ArgumentsBytes, c.Input.MaxBytes)
	}
}
