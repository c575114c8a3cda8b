package lint

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy"
)

// A tool is an entry of the allowlist.
type tool struct {
	place
	server, name string
	pinned       bool
	live         *policy.Tool // the server's declaration; nil if it is not known
}

// findTools looks up the tools on the allowlist.
func (l *linter) findTools(catalog *policy.Catalog) {
	for i, a := range l.content.Allowlist {
		for _, name := range a.Tools {
			t := tool{place: place{Allowlist, i, ""}, server: a.Server, name: name}
			t.pinned = slices.ContainsFunc(l.content.Pins, func(p policy.Pin) bool {
				return p.Server == a.Server && p.Tool == name
			})
			t.lookUp(catalog)
			l.tools = append(l.tools, t)
		}
	}
}

// lookUp looks the tool up in the catalog. A tool that is missing, or cannot be called as it is
// declared now, is unknown: a catalog of pinned definitions does not have all tools.
func (t *tool) lookUp(catalog *policy.Catalog) {
	if catalog == nil {
		return
	}
	if live, _ := catalog.Find(t.server, t.name); live != nil && live.Code == "" {
		t.live = live
	}
}

// lintTools finds tools on the allowlist that no policy matches, and those that are allowed without
// an approval.
func (l *linter) lintTools(entries []*entry) {
	for i := range l.tools {
		t := &l.tools[i]
		matched, elsewhere := false, false
		for _, e := range entries {
			if !e.shadow && e.match.coversTool(t) {
				elsewhere = true
				matched = matched || e.match[envName].Match(l.content.Env)
			}
		}
		where := ""
		if elsewhere {
			where = fmt.Sprintf(" in the environment %q", clip(l.content.Env))
		}
		if !matched {
			f := l.add(t.place, "", ToolUnmentioned, "write a policy for it, or take it off the allowlist",
				"no policy matches the tool %q of server %q%s, so every call of it is denied", clip(t.name),
				clip(t.server), where)
			f.Server, f.Tool = t.server, t.name
		}
		l.allowedUnasked(t, entries)
	}
}

// allowedUnasked finds the first policy that allows a call of a tool that is not read-only without
// an approval.
func (l *linter) allowedUnasked(t *tool, entries []*entry) {
	if t.live == nil || isTrue(t.live.Annotations.ReadOnly) {
		return
	}

	if e := l.freeingPolicy(t, entries, false); e != nil {
		l.reportUnasked(t, e)
	}
}

func isTrue(hint *bool) bool { return hint != nil && *hint }

func (l *linter) reportUnasked(t *tool, e *entry) {
	code, says := WriteAllowed, "does not say that it is read-only"
	if isTrue(t.live.Annotations.Destructive) {
		code, says = DestructiveAllowed, "says that it may destroy"
	}
	f := l.add(e.place, "effect", code,
		"write require_approval_if or effect: pending, or leave the tool to another policy",
		"it allows the tool %q of server %q, which %s, without a person", clip(t.name), clip(t.server), says)
	f.Server, f.Tool = t.server, t.name
}

// matchesNoTool finds policies whose match covers no tool on the allowlist.
func (l *linter) matchesNoTool(e *entry) {
	if len(l.tools) > 0 && !slices.ContainsFunc(l.tools, func(t tool) bool { return e.match.coversTool(&t) }) {
		l.add(e.place, "match", MatchesNoTool, "compare the names with the allowlist; case counts",
			"no tool on the allowlist is matched by server %q and tool %q", e.match[serverName], e.match[toolName])
	}
}

// notWildcards are characters that have a meaning in other languages of patterns. In a glob they
// match only themselves.
const notWildcards = "[]{}^$|!"

// matchesNothing finds globs that can match no call, and servers that are not configured. An allow
// that matches nothing is safe, because the default denies; only if the policy or rule stops calls,
// a call could get past it.
func (l *linter) matchesNothing(p place, m *match, stops bool) (found bool) {
	servers, tools := l.serverNames(), make([]string, len(l.tools))
	for i, t := range l.tools {
		tools[i] = t.name
	}

	for i, names := range [nameCount][]string{toolName: tools, serverName: servers, envName: {l.content.Env}} {
		g, key := m[i], "match."+nameOf[i]
		if slices.ContainsFunc(names, g.Match) {
			continue
		}
		// The glob matches nothing here. Report it if it never can, or if a call could get past it.
		literal, one := g.Literal()
		switch {
		case stops && strings.ContainsAny(g.String(), notWildcards):
			l.add(p, key, MatchImpossible, "write one policy or rule for each name; only * and ? are wildcards",
				"the glob %q matches no %s, because %s match only themselves", clip(g.String()), nameOf[i],
				strings.Join(strings.Split(notWildcards, ""), " "))
		case stops && i == toolName && l.containsServer(g.String()):
			l.add(p, key, MatchImpossible, "write the tool's own name, and the server as match.server",
				"the glob %q matches no tool: it contains the name of a server, which only the names on /mcp have",
				clip(g.String()))
		case i == serverName && one:
			l.addUnconfigured(p, key, ServerUnconfigured, "server", literal, listConfigured("servers", servers))
		default:
			continue
		}
		found = true
	}

	return found
}

// containsServer reports whether a name or glob of a tool contains the name of a server, as the
// names on /mcp do.
func (l *linter) containsServer(tool string) bool {
	return slices.ContainsFunc(l.serverNames(), func(server string) bool { return strings.Contains(tool, server+"__") })
}
