package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const hooked = minimal + `approvals:
  hooks:
    - {url: "https://chat.example.com/h", secret: "${env:HOOK_SECRET}"}
    - {url: "http://127.0.0.1:9000/h", secret: "literal-literal-literal-1", events: [decided]}
`

func loadHooked(t *testing.T) *Loaded {
	t.Helper()
	l, err := Load("c.yaml", openMap(map[string]string{"c.yaml": hooked, "allow.json": "{}"}), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Hooks are no part of what runs are judged by, and only who sends messages needs their secrets.
func TestHooks(t *testing.T) {
	l := loadHooked(t)
	nothing := func(string) (string, bool) { return "", false }
	if _, err := l.Resolve(nothing, openMap(nil)); err != nil {
		t.Errorf("Resolve() = %v, want no need of a hook's secret", err)
	}
	got, err := l.ResolveHooks(lookup(map[string]string{"HOOK_SECRET": "whsec_c2VjcmV0"}), openMap(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := []Hook{
		{"https://chat.example.com/h", "whsec_c2VjcmV0", []string{"requested", "reminder", "decided"}},
		{"http://127.0.0.1:9000/h", "literal-literal-literal-1", []string{"decided"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ResolveHooks (-want +got):\n%s", diff)
	}
	if l.Hooks[0].Secret != "${env:HOOK_SECRET}" {
		t.Error("ResolveHooks wrote a secret into what was loaded")
	}
	plain, err := Load("c.yaml", openMap(map[string]string{"c.yaml": minimal, "allow.json": "{}"}), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := digestOf(t, l), digestOf(t, plain); a != b {
		t.Errorf("hooks change the bundle: %s, %s", a, b)
	}
	_, err = l.ResolveHooks(nothing, openMap(nil))
	if err == nil || !strings.Contains(err.Error(), "approvals.hooks[0].secret needs the variable HOOK_SECRET, which is not set") {
		t.Errorf("ResolveHooks() without the variable = %v", err)
	}
}
