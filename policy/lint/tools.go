package lint

import (
	"slices"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/rules"
)

// A tool is one on the allowlist.
type tool struct {
	place
	server, name string
	pinned       bool
	live         *policy.Tool // as the server declares it; nil if that is not known
	shape        *condition.Shape
}

// learn looks up the tools on the allowlist.
func (l *linter) learn(catalog *policy.Catalog) {
	for i, a := range l.content.Allowlist {
		for _, name := range a.Tools {
			t := tool{place: place{Allowlist, i, ""}, server: a.Server, name: name}
			t.pinned = slices.ContainsFunc(l.content.Pins, func(p policy.Pin) bool {
				return p.Server == a.Server && p.Tool == name
			})
			t.find(catalog)
			l.tools = append(l.tools, t)
		}
	}
}

// find looks the tool up in the catalog. Of one that is not there, or cannot be called as it is declared now, nothing is
// known: a catalog of pinned definitions does not have all tools.
func (t *tool) find(catalog *policy.Catalog) {
	if catalog == nil {
		return
	}
	for _, s := range catalog.Servers {
		if s.Server != t.server || s.Status != policy.ServerUp {
			continue
		}
		for _, live := range s.Tools {
			if live.Name == t.name && live.Code == "" {
				t.live, t.shape = live, shapeOf(live.InputSchema)
				return
			}
		}
	}
}

// perTool asks of each tool on the allowlist what the policies do with it.
func (l *linter) perTool(entries []*entry) {
	for i := range l.tools {
		t := &l.tools[i]
		spoken, elsewhere := false, false
		for _, e := range entries {
			if !e.shadow && e.server.Match(t.server) && e.tool.Match(t.name) {
				elsewhere = true
				spoken = spoken || e.env.Match(l.content.Env)
			}
		}
		switch {
		case !elsewhere:
			l.about(t, ToolUnmentioned, "write a policy for it, or take it off the allowlist",
				"no policy speaks of the tool %q of server %q, so every call of it is denied", clip(t.name), clip(t.server))
		case !spoken:
			l.about(t, ToolUnmentioned, "write a policy for it, or take it off the allowlist",
				"no policy speaks of the tool %q of server %q in the environment %q, so every call of it is denied",
				clip(t.name), clip(t.server), clip(l.content.Env))
		}
		l.destructive(t, entries)
	}
}

func (l *linter) about(t *tool, code, remedy, format string, args ...any) {
	f := l.add(t.place, "", code, remedy, format, args...)
	f.Server, f.Tool = t.server, t.name
}

// destructive finds the first policy that allows a call of a tool that is not read-only without a person. It goes
// through the policies as a call of the tool would, with what is known of such a call.
func (l *linter) destructive(t *tool, entries []*entry) {
	if t.live == nil || isTrue(t.live.Annotations.ReadOnly) {
		return
	}
	call := &condition.Input{Server: t.server, Tool: t.name, Env: l.content.Env, Pinned: t.pinned,
		Annotations: condition.Annotations(t.live.Annotations)}
	for _, e := range entries {
		if e.shadow || !e.server.Match(t.server) || !e.tool.Match(t.name) || !e.env.Match(l.content.Env) {
			continue
		}
		when := e.when.of(call, canTrue)
		if when&canTrue != 0 && e.Effect == rules.Allow {
			// A condition that may ask for a person is trusted to ask where it should.
			asks, denies := e.ask.of(call, canFalse)&canTrue != 0, e.deny.of(call, canFalse)&canFalse == 0
			fails := e.ask.of(call, canFalse)&^canFail == 0
			if !asks && !denies && !fails {
				l.reportDestructive(t, e)
				return
			}
		}
		if when&canFalse == 0 && (e.strict || when&canFail == 0) {
			return // no call gets further
		}
	}
}

func isTrue(hint *bool) bool { return hint != nil && *hint }

func (l *linter) reportDestructive(t *tool, e *entry) {
	code, says := WriteAllowed, "does not say that it is read-only"
	if isTrue(t.live.Annotations.Destructive) {
		code, says = DestructiveAllowed, "says that it may destroy"
	}
	f := l.add(e.place, "effect", code,
		"write require_approval_if or effect: pending, or leave the tool to another policy",
		"it allows the tool %q of server %q, which %s, without a person", clip(t.name), clip(t.server), says)
	f.Server, f.Tool = t.server, t.name
}

// of returns what the expression can come to for calls of which some things are known; unwritten is what it stands for
// where it is not written.
func (s *study) of(call *condition.Input, unwritten condition.Outcomes) condition.Outcomes {
	if s == nil {
		return unwritten
	}
	return s.reading.Outcomes(call)
}

// matchesNoTool finds policies that are about nothing that can be called.
func (l *linter) matchesNoTool(e *entry) {
	if len(l.tools) == 0 {
		return
	}
	if !slices.ContainsFunc(l.tools, func(t tool) bool { return e.server.Match(t.server) && e.tool.Match(t.name) }) {
		l.add(e.place, "match", MatchesNoTool, "compare the names with the allowlist; case counts",
			"no tool on the allowlist is matched by server %q and tool %q", e.server, e.tool)
	}
}
