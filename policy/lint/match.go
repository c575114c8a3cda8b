package lint

import (
	"pgfsm/internal/glob"
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

// coversTool reports whether the match covers a tool in some environment.
func (m *match) coversTool(t *tool) bool {
	return m[serverName].Match(t.server) && m[toolName].Match(t.name)
}

// coversAll reports whether the match covers every call.
func (m *match) coversAll() bool {
	return m[toolName].MatchesAll() && m[serverName].MatchesAll() && m[envName].MatchesAll()
}
