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
}

// warnAt adds a warning about a value of the configuration.
func (l *loader) warnAt(p path, format string, args ...any) {
	l.warn(l.file, l.find(p).value.at, format, args...)
}
