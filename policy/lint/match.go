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

// coversAll reports whether the match covers every call.
func (m *match) coversAll() bool {
	return m[toolName].MatchesAll() && m[serverName].MatchesAll() && m[envName].MatchesAll()
}

// includes reports whether m covers every call that o covers.
func (m *match) includes(o *match) bool {
	return glob.Includes(m[toolName], o[toolName]) && glob.Includes(m[serverName], o[serverName]) &&
		glob.Includes(m[envName], o[envName])
}

// overlaps reports whether a call matches both.
func (m *match) overlaps(o *match) bool {
	return glob.Overlaps(m[toolName], o[toolName]) && glob.Overlaps(m[serverName], o[serverName]) &&
		glob.Overlaps(m[envName], o[envName])
}

// sampleNames returns names that a glob matches: those that some globs write out, and the glob's
// own with nothing, little or much in the place of each `*`.
func sampleNames(g *glob.Glob, others []*glob.Glob) (names []string) {
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
