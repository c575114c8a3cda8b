package config

import (
	"fmt"
	"slices"
)

// A Hook is a web hook for messages about held calls.
type Hook struct {
	URL    string
	Secret string
	Events []string // [HookRequested], [HookReminder], [HookDecided]
}

// ResolveHooks resolves the references in the hooks' secrets. Only a sender of messages needs them, so [Loaded.Resolve] does not resolve them. The errors
// are those of Resolve.
func (l *Loaded) ResolveHooks(getenv func(string) (string, bool), readFile Open) ([]Hook, error) {
	r := &resolver{getenv: getenv, readFile: readFile, secrets: make(map[string]bool)}
	r.enter(l.file)
	out := slices.Clone(l.Hooks)
	for i, hook := range l.file.root.get("approvals").list("hooks") {
		out[i].Secret = r.value(hook.get("secret"), fmt.Sprintf("approvals.hooks[%d].secret", i))
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return out, nil
}
