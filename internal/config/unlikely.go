package config

import (
	"slices"

	"pgfsm/policy"
)

// unlikely warns of settings that can hardly be meant.
func (l *loader) unlikely(allowlist string) {
	names := func(a policy.Allowance) bool { return len(a.Tools) > 0 }
	if l.out.Closed == nil && !slices.ContainsFunc(l.out.Content.Allowlist, names) {
		src, at := l.file.src, l.file.root.get("allowlist").at
		if allowlist != "" { // another file than the configuration names
			src, at = &source{name: allowlist}, place{1, 1}
		}
		l.warn(src, at, "the allowlist names no tool, so every call is refused: pgfsm allow SERVER TOOL adds one")
	}
	l.unpinnedSchemas()
	l.unlikelyTimeouts()
	l.unlikelyWaits()
	l.unlikelySizes()
	l.unlikelySessions()
	l.unlikelyRate()
}

// unlikelySessions warns of fewer processes than stdio servers: a list of the tools of all servers needs one of each.
func (l *loader) unlikelySessions() {
	limits, stdio := l.file.root.get("limits"), 0
	for i := range l.out.Servers {
		if l.out.Servers[i].Type == TypeStdio {
			stdio++
		}
	}
	if l.out.Serve.ServerSessions < stdio {
		at := l.file.root.get("servers").at
		if limits.writes("server_sessions") {
			at = limits.get("server_sessions").at
		}
		l.warn(l.file.src, at, "limits.server_sessions is %d, and there are %d stdio servers, so the tools of all servers cannot be listed at the same time",
			l.out.Serve.ServerSessions, stdio)
	}
}

// unpinnedSchemas warns of schemas in place of those of tools that no call can reach, because the tools are not pinned.
func (l *loader) unpinnedSchemas() {
	for _, s := range l.out.Content.Schemas {
		if l.out.Closed == nil && policy.PinOf(l.out.Content.Pins, s.Server, s.Tool) == "" {
			at := l.file.root.get("servers").get(s.Server).get("schemas").get(s.Tool)
			l.warn(l.file.src, at.at, "this schema is for %s, which is not pinned, so every call is refused: pgfsm allow allows and pins a tool, "+
				"pgfsm pins approve pins one that is allowed", quote(s.Tool))
		}
	}
}

// unlikelyTimeouts warns of parts of a run that may take longer than the run. The call itself has its own time.
func (l *loader) unlikelyTimeouts() {
	root, run := l.file.root, l.out.Content.Limits.RunTimeout
	longer := func(src *source, n *node, key, what string) {
		ms := n.millis(key)
		if ms <= run {
			return
		}
		at := n.get(key).at
		if !n.writes(key) {
			src, at = l.file.src, root.get("limits").get("run_timeout").at
		}
		l.warn(src, at, "%s is %s, longer than limits.run_timeout, which ends a run after %s", what, writeDuration(ms), writeDuration(run))
	}
	for i, from := range l.out.origins {
		longer(from.file.src, from.node, "connect_timeout", "connect_timeout of the server "+l.out.Servers[i].Name)
	}
	if llm := root.get("planner").get("llm"); llm != nil {
		longer(l.file.src, llm, "timeout", "planner.llm.timeout")
	}
}

// unlikelyWaits warns of times of a held call that no held call reaches, because it expires before.
func (l *loader) unlikelyWaits() {
	var longest int64
	if p := l.out.Content.Policy; p != nil {
		for i := range p.Policies {
			longest = max(longest, p.Policies[i].Expires)
		}
	}
	approvals := l.file.root.get("approvals")
	if longest == 0 || approvals == nil {
		return // no call is ever held
	}
	if ms := approvals.millis("hold"); ms > longest {
		l.warn(l.file.src, approvals.get("hold").at, "approvals.hold is %s, and every held call expires after %s at the latest",
			writeDuration(ms), writeDuration(longest))
	}
	reminded := func(h Hook) bool { return slices.Contains(h.Events, HookReminder) }
	if ms := approvals.millis("remind_before"); ms >= longest && approvals.writes("remind_before") && slices.ContainsFunc(l.out.Hooks, reminded) {
		l.warn(l.file.src, approvals.get("remind_before").at,
			"approvals.remind_before is %s, and every held call expires after %s at the latest, so there is never a reminder",
			writeDuration(ms), writeDuration(longest))
	}
}

// unlikelySizes warns of a size of calls that an input rule does not let through.
func (l *loader) unlikelySizes() {
	c, limits := &l.out.Content, l.file.root.get("limits")
	judged := func(r policy.InputRule) bool {
		return slices.Contains(r.On, policy.KindCall) && slices.Contains(r.On, policy.KindAgent)
	}
	if c.Limits.ArgumentsBytes > c.Input.MaxBytes && limits.writes("arguments_bytes") && slices.ContainsFunc(c.Input.Rules, judged) {
		l.warn(l.file.src, limits.get("arguments_bytes").at,
			"limits.arguments_bytes is %d, and input.max_bytes lets no call through with more than %d: an input rule judges calls",
			c.Limits.ArgumentsBytes, c.Input.MaxBytes)
	}
}

// writes reports whether the file itself has a key of an object. A default stands at the place of its object.
func (n *node) writes(key string) bool {
	v := n.get(key)
	return v != nil && v.at != n.at
}
