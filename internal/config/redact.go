package config

import (
	"cmp"
	"slices"

	"pgfsm/internal/glob"
	"pgfsm/policy/redact"
)

// checkRedact refuses redact rules that cannot be compiled, and those for servers that are not configured.
func (c *configFile) checkRedact() {
	at := path{"redact"}
	c.checkUnique(at, "rule", "id")
	var names []string
	for _, s := range c.Servers {
		if s.Value.Kind == "" { // pgfsm never sees the results of coding agents' own tools
			names = append(names, s.Name)
		}
	}
	for i, rule := range c.Redact {
		if !slices.ContainsFunc(names, func(name string) bool { return matchesGlob(rule.Server, name) }) {
			c.addFault(at.item(i).child("server"), nearestOr(rule.Server, names, "name an MCP server of the configuration"),
				"no MCP server is configured that matches %s", quote(rule.Server))
		}
	}
	if _, err := redact.Compile(c.Redact); err != nil && len(c.faults) == 0 {
		c.addFault(at, "write shorter patterns, or fewer", "the rules are refused: %s", err)
	}
}

// matchesGlob reports whether a checked glob matches a name. An empty one does.
func matchesGlob(text, name string) bool {
	g, err := glob.Compile(cmp.Or(text, "*"))
	return err == nil && g.Match(name)
}

// checkRedactedTools refuses a rule whose tool no allowlist file names: with a misspelled name, the rule
// would remove nothing. Call it after the allowlist files are read.
func (l *loader) checkRedactedTools(allowlist string) {
	if allowlist != "" || l.out.Closed != nil {
		return
	}
	for i, rule := range l.Redact {
		var names []string
		for _, a := range l.out.Content.Allowlist {
			if matchesGlob(rule.Server, a.Server) {
				names = append(names, a.Tools...)
			}
		}
		if rule.Tool != "" && !slices.ContainsFunc(names, func(name string) bool { return matchesGlob(rule.Tool, name) }) {
			l.addFault(path{"redact"}.item(i).child("tool"), nearestOr(rule.Tool, names, "allow the tool, or leave the rule out"),
				"no allowlist file allows a tool that matches %s", quote(rule.Tool))
		}
	}
}
