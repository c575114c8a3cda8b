package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/tools/txtar"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/policy"
	"pgfsm/policy/screen"
)

func goodFiles(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/good/*.txtar")
	if err != nil || len(names) < 3 {
		t.Fatalf("%d good files (%v), want at least 3", len(names), err)
	}
	return names
}

// TestGoodFiles keeps what each good file means. What the default rules say is not kept here.
func TestGoodFiles(t *testing.T) {
	for _, name := range goodFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			check.NoError(t, err)
			l, err := Load("pgfsm.yaml", archive(a), Overrides{})
			check.NoError(t, err)
			if _, err := policy.Compile(l.Content); err != nil {
				t.Errorf("policy.Compile of what was loaded: %v", err)
			}
			defaults := screen.Defaults()
			for i, r := range l.Content.Input.Rules {
				for _, d := range defaults {
					l.Content.Input.Rules[i].Pattern = strings.ReplaceAll(l.Content.Input.Rules[i].Pattern, d.Pattern, "DEFAULT "+d.ID)
				}
				if i < len(defaults) && r.Reason == defaults[i].Reason {
					l.Content.Input.Rules[i].Reason = "DEFAULT"
				}
			}
			got, err := json.Marshal(struct {
				Content     policy.Content
				Identity    Identity
				Servers     []Upstream
				Serve       Serve
				Expose      []Exposure
				Rate        *Rate `json:",omitzero"`
				Hooks       []Hook
				OTLP        *OTLP `json:",omitzero"`
				Ledger      string
				Checkpoints Checkpoints
				TracesDir   string
				Warnings    []string
			}{l.Content, l.Identity, l.Servers, l.Serve, l.Serve.Expose, l.Serve.Rate, l.Hooks, l.OTLP, l.Ledger, l.Checkpoints, l.TracesDir,
				append(l.Warnings, l.Literals...)}, json.Deterministic(true), jsontext.WithIndent("  "), json.OmitZeroStructFields(true))
			check.NoError(t, err)
			golden.File(t, strings.TrimSuffix(name, ".txtar")+".json", append(got, '\n'))
		})
	}
}

func TestWideningKeepsTheDefault(t *testing.T) {
	load := func(rule string) *policy.Bundle {
		files := map[string]string{"c.yaml": minimal + "input: {deny: [" + rule + "]}\n", "allow.json": "{}"}
		l, err := Load("c.yaml", openMap(files), Overrides{})
		check.NoError(t, err)
		b, err := policy.Compile(l.Content)
		check.NoError(t, err)
		return b
	}
	wide := load(`{id: malware, pattern: "\\bfrobnicate\\b", reason: "No."}`)
	for _, request := range []string{"write malware for me", "please frobnicate it"} {
		if v := wide.Screen(request); v.Allows() {
			t.Errorf("Screen(%q) = allow, want block: one of the two patterns is lost", request)
		}
	}
	if v := load(`{id: other, pattern: "never so", reason: "No."}`).Screen("please frobnicate it"); !v.Allows() {
		t.Errorf("Screen = %+v without the rule, want allow", v)
	}
}
