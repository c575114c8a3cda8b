package lint

import (
	"slices"
	"strings"

	"pgfsm/internal/glob"
	"pgfsm/policy/condition"
)

// The names that a match has globs for, as indexes of [match].
const (
	toolName = iota // first: it differs most between policies
	serverName
	envName
	nameCount
)

var nameOf = [nameCount]string{"tool", "server", "env"}

// A match holds the globs of a policy or rule.
type match [nameCount]*glob.Glob

// newMatch compiles globs that are known to compile; empty is `*`.
func newMatch(tool, server, env string) (m match) {
	for i, text := range []string{toolName: tool, serverName: server, envName: env} {
		if text == "" {
			text = "*"
		}
		m[i], _ = glob.Compile(text)
	}
	return m
}

// any reports whether the match covers every call.
func (m *match) any() bool { return m[toolName].Any() && m[serverName].Any() && m[envName].Any() }

// includes reports whether m covers every call that o covers.
func (m *match) includes(o *match) bool {
	return glob.Includes(m[toolName], o[toolName]) && glob.Includes(m[serverName], o[serverName]) && glob.Includes(m[envName], o[envName])
}

// overlaps reports whether a call matches both.
func (m *match) overlaps(o *match) bool {
	return overlaps(m[toolName], o[toolName]) && overlaps(m[serverName], o[serverName]) && overlaps(m[envName], o[envName])
}

// overlaps is [glob.Overlaps], without its search for the pairs that are most frequent among thousands of policies.
func overlaps(a, b *glob.Glob) bool {
	if text, ok := a.Literal(); ok {
		return b.Match(text)
	}
	if text, ok := b.Literal(); ok {
		return a.Match(text)
	}
	return (strings.HasPrefix(a.Prefix(), b.Prefix()) || strings.HasPrefix(b.Prefix(), a.Prefix())) && glob.Overlaps(a, b)
}

// fits reports whether the match fits the names of a call.
func (m *match) fits(names *[nameCount]string) bool {
	return m[toolName].Match(names[toolName]) && m[serverName].Match(names[serverName]) && m[envName].Match(names[envName])
}

// globOf returns the glob of a condition's texts, or nil: a text with a wildcard in it has none.
func globOf(t condition.Texts) *glob.Glob {
	text := t.Part
	if strings.ContainsAny(text, "*?") {
		return nil
	}
	if t.Before {
		text = "*" + text
	}
	if t.More {
		text += "*"
	}
	g, _ := glob.Compile(text)
	return g
}

// samples returns names that a glob matches: those that some globs write out, and the glob's own with nothing, little or much
// in the place of each `*`.
func samples(g *glob.Glob, others []*glob.Glob) (names []string) {
	const stranger = "\x7f" // hardly a name has it
	for _, o := range append([]*glob.Glob{g}, others...) {
		for _, fill := range []string{"", stranger, strings.Repeat(stranger, 64)} {
			name := strings.NewReplacer("?", stranger, "*", fill).Replace(o.String())
			if g.Match(name) && len(name) <= condition.MaxName && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// eachName calls visit for combinations of samples until it returns true.
func eachName(of [nameCount][]string, visit func(*[nameCount]string) bool) bool {
	for _, tool := range of[toolName] {
		for _, server := range of[serverName] {
			for _, env := range of[envName] {
				if visit(&[nameCount]string{toolName: tool, serverName: server, envName: env}) {
					return true
				}
			}
		}
	}
	return false
}
