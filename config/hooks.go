package config

import (
	"fmt"
	"slices"
)

// A Hook is a web hook that is told what happens to held calls.
type Hook struct {
	URL    string
	Secret string
	Events []string // [HookRequested], [HookDecided]
}

// ResolveHooks puts the values of references into the hooks' secrets. Only who sends messages needs them, so
// [Loaded.Resolve] asks for none. The error is as there.
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
