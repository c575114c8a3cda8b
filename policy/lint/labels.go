package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
	"pgfsm/policy/rules"
)

// lintLabels finds labels that do not fit the tools and the policies. The entries are the policies, if they compile.
func (l *linter) lintLabels(labels *origin.Labels, entries []*entry) {
	compiled, _, err := policy.CompileLabels(labels, l.claims...)
	env, envErr := condition.PolicyEnv(l.claims...)
	if err != nil || envErr != nil {
		return
	}

	for i := range labels.Tools {
		if label := &labels.Tools[i]; label.Results == "trusted" || len(label.Trusted) > 0 || label.Items != "" {
			l.findWriters(place{LabelledTools, i, ""}, label, entries)
		}
	}

	types := newArgumentTypes(env)
	for i := range labels.Roles {
		label, at := &labels.Roles[i], place{LabelledRoles, i, ""}
		m := newMatch(label.Tool, label.Server, "")
		for _, list := range []struct {
			key   string
			paths []string
		}{{origin.Target, label.Target}, {origin.Amount, label.Amount}, {origin.Content, label.Content}} {
			for k, path := range list.paths {
				if wrong := l.unknownArgument(origin.SplitPath(path), types, &m); wrong != nil {
					l.add(at, fmt.Sprintf("%s[%d]", list.key, k), ArgumentUnknown, wrong.remedy, "%s", wrong.problem)
				}
			}
		}
		l.findUnlabelled(at, label, compiled)
	}
}

// findWriters finds a tool of the same server that can change what a trusted tool returns, in a call that no person
// approves.
func (l *linter) findWriters(at place, label *origin.ToolLabel, entries []*entry) {
	for i := range l.tools {
		t := &l.tools[i]
		if t.server != label.Server || t.name == label.Tool || t.live == nil || isTrue(t.live.Annotations.ReadOnly) {
			continue
		}
		if l.content.Policy == nil || l.space != nil && l.freeingPolicy(t, entries, true) != nil {
			l.add(at, "", TrustedWritable, "hold the calls that write, or trust only places that they cannot change",
				"its results are trusted, and a call of %q, which does not say that it is read-only, can be made without a person",
				clip(t.name))
			return
		}
	}
}

// findUnlabelled finds enums and booleans without a role in a tool with targets: found() passes over them.
func (l *linter) findUnlabelled(at place, label *origin.RoleLabel, compiled *origin.Rules) {
	i := slices.IndexFunc(l.tools, func(t tool) bool { return t.server == label.Server && t.name == label.Tool && t.live != nil })
	if i < 0 || len(label.Target) == 0 {
		return
	}
	var names []string
	for _, a := range origin.Arguments(l.tools[i].live.InputSchema) {
		if (a.Enum || a.Bool) && compiled.RoleOf(label.Server, label.Tool, a.Path) == "" {
			names = append(names, clip(origin.JoinPath(a.Path)))
		}
	}
	if len(names) > 0 {
		l.add(at, "", ArgumentUnlabelled, "write target if the choice matters, such as who may see something; else content",
			"found() passes over these enums and booleans, which have no role: %s", strings.Join(names, ", "))
	}
}

// lintOrigins finds calls of found and origin that give one answer for every tool that a policy or rule matches.
func (l *linter) lintOrigins(p place, key string, x *expression, of *argumentTypes, m *match) {
	for _, e := range ast.MatchDescendants(ast.NavigateAST(x.ast), ast.KindMatcher(ast.CallKind)) {
		call := e.AsCall()
		if name := call.FunctionName(); name != "found" && name != "origin" {
			continue
		}
		var f *Finding
		if len(call.Args()) == 0 {
			f = l.findNoTarget(p, key, m)
		} else if path, ok := condition.LiteralText(call.Args()[0]); ok {
			if wrong := l.unknownArgument(strings.Split(path, "/"), of, m); wrong != nil {
				f = l.add(p, key, ArgumentUnknown, wrong.remedy, "%s", wrong.problem)
			}
		}
		if f != nil {
			start := x.ast.SourceInfo().GetStartLocation(e.ID())
			f.Line, f.Column = start.Line(), start.Column()+1
		}
	}
}

// findNoTarget finds that no tool has a target, so that found() is always false.
func (l *linter) findNoTarget(p place, key string, m *match) *Finding {
	covered := false
	for _, t := range l.tools {
		if !m.coversTool(&t) {
			continue
		}
		covered = true
		if labels := l.content.Labels; labels != nil && slices.ContainsFunc(labels.Roles, func(r origin.RoleLabel) bool {
			return r.Server == t.server && r.Tool == t.name && len(r.Target) > 0
		}) {
			return nil
		}
	}
	if !covered {
		return nil
	}
	return l.add(p, key, FoundWithoutTarget, "give arguments the role target in labels.yaml: pgfsm labels draft proposes some",
		"found() is always false: no tool that this is about has an argument with the role target")
}

// unknownArgument returns why no tool has an argument, as far as the path names it; nil if one has it, or if it is not
// known.
func (l *linter) unknownArgument(path []string, of *argumentTypes, m *match) *misuse {
	src := "args"
	for _, name := range path {
		if name == "*" {
			break
		}
		src += "[" + strconv.Quote(name) + "]"
	}
	found := l.commonMisuses(src+" == "+src, of, m)
	if len(found) == 0 || !found[0].unknown {
		return nil
	}
	return &found[0]
}

// freeingPolicy returns the first policy that allows a call of a tool without an approval; nil if none does. It follows a
// call of the tool through the policies. A condition that can hold a call is assumed to hold it when it should, unless
// mayAsk is set: then one call that is not held is enough.
func (l *linter) freeingPolicy(t *tool, entries []*entry, mayAsk bool) *entry {
	calls := l.space.Tool(t.live, t.pinned)
	for _, e := range entries {
		if e.shadow || !e.match.coversTool(t) || !e.match[envName].Match(l.content.Env) {
			continue
		}
		when := outcomeOf(calls, e, e.when, 0, true)
		if when.yes && e.Effect == rules.Allow {
			ask, deny := outcomeOf(calls, e, e.ask, 2, false), outcomeOf(calls, e, e.deny, 1, false)
			if (mayAsk || !ask.yes) && ask.no && deny.no {
				return e
			}
		}
		if !when.no && (e.strict || !when.fails) {
			return nil // no call gets further
		}
	}
	return nil
}
