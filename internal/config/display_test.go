package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestShown: what names a secret is shown, what may be one is not.
func TestShown(t *testing.T) {
	for _, c := range []struct{ name, entry, want, warning string }{
		{"reference", `{"url": "https://h.example/", "headers": {"X-Trace": "${AWS_SECRET_ACCESS_KEY}"}}`,
			"https://h.example/ (headers: X-Trace=${env:AWS_SECRET_ACCESS_KEY})", ""},
		{"literal", `{"command": "a", "env": {"A": "hidden", "B": ""}}`, "a (env: A=…, B=…)", ""},
		{"both", `{"command": "a", "env": {"A": "hidden ${B} hidden ${env:C}${D}"}}`,
			"a (env: A=…${env:B}…${env:C}${env:D})", ""},
		{"reference-that-is-refused", `{"command": "a", "env": {"A": "${A:-hidden}", "B": "$${hidden}", "C": "${hidden"}}`,
			"a (env: A=…, B=…, C=…)", ""},
		{"reference-to-a-file", `{"command": "a", "env": {"A": "${file:hidden}"}}`, "a (env: A=…)", ""},
		{"no-text", `{"command": "a", "env": {"A": 1, "B": ["${C}"], "D": null}}`, "a (env: A=…, B=…, D=…)", ""},
		{"odd-name", `{"command": "a", "env": {"A=\u001b, B": "${C}"}}`, `a (env: "A=\x1b, B"=${env:C})`, ""},
		{"runs-other-code", `{"command": "a", "env": {"NODE_OPTIONS": "hidden", "A": "x", "path": "x", "LD_X\n": "x"}}`,
			`a (env: NODE_OPTIONS=…, A=…, path=…, "LD_X\n"=…)`,
			`sets NODE_OPTIONS, path, "LD_X\n", which can run other code`},
		{"filler-in-a-name", `{"command": "a", "env": {"LD_\u3164": "x"}}`, `a (env: "LD_\u3164"=…)`,
			`sets "LD_\u3164", which can run other code`},
		{"header-of-that-name", `{"url": "https://h.example/", "headers": {"PATH": "x"}}`,
			"https://h.example/ (headers: PATH=…)", ""},
		{"nothing", `{}`, "nothing", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers, err := ReadClient("m.json", []byte(`{"mcpServers": {"a": `+c.entry+`}}`))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.want, c.warning}, []string{servers[0].Runs, servers[0].Warning}); diff != "" {
				t.Errorf("ReadClient(%s) shows (-want +got):\n%s", c.entry, diff)
			}
			written := string(Imported("m.json", servers))
			if strings.Contains(written, "hidden") || servers[0].Refused == "" && !strings.Contains(written, c.warning) {
				t.Errorf("Imported(%s) = %s, want the warning and no text of a value", c.entry, written)
			}
		})
	}
}

func TestCanRunCode(t *testing.T) {
	for _, name := range []string{"LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP",
		"PERL5OPT", "RUBYOPT", "JAVA_TOOL_OPTIONS", "BASH_ENV", "ENV", "PATH", "Path", "GIT_SSH_COMMAND",
		"npm_config_registry", "UV_INDEX_URL", "BASH_FUNC_ls%%"} {
		if !canRunCode(name) {
			t.Errorf("canRunCode(%s) = false, want true", name)
		}
	}
	for _, name := range []string{"", "TOKEN", "LD", "MYPATH", "PATHS", "ENVIRONMENT", "API_KEY", "GITHUB_TOKEN", "NODE_ENV"} {
		if canRunCode(name) {
			t.Errorf("canRunCode(%s) = true, want false", name)
		}
	}
}
