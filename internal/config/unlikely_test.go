package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsThatCanHardlyBeMeant(t *testing.T) {
	const (
		server = "servers: {s: {url: \"https://s.example\"}}\n"
		hooks  = "ledger: sqlite:x.db\npolicy: policy.yaml\napprovals: {hooks: [{url: \"https://h.example\", secret: \"${env:HOOK}\"}]"
		rule   = "input: {max_bytes: 100, deny: [{id: a, pattern: xx, reason: \"No.\", on: [call, agent]}]}\n"
		llm    = "planner: {llm: {base_url: \"https://l.example\", model: m"
	)
	for _, tt := range []struct{ name, text, allowlist, override, want string }{ // want: empty for no warning
		{"a-tool", server, `{"s": ["x"]}`, "", ""},
		{"no-tool", server, `{"s": []}`, "", "pgfsm.yaml:2:12: the allowlist names no tool"},
		{"no-tool-in-place-of-the-allowlist", server, `{"s": ["x"]}`, `{}`, "other.json:1:1: the allowlist names no tool"},
		{"a-tool-in-place-of-the-allowlist", server, `{}`, `{"s": ["x"]}`, ""},
		{"schema-of-a-pinned-tool", "servers: {s: {url: \"https://s.example\", schemas: {x: x.json}}}\n", `{"s": {"x": {"pin": "sha256:` + strings.Repeat("0", 64) + `"}}}`, "", ""},
		{"schema-of-a-tool-without-a-pin", "servers: {s: {url: \"https://s.example\", schemas: {x: x.json}}}\n", "", "",
			`pgfsm.yaml:3:54: this schema is for "x", which is not pinned`},
		{"connecting-as-long-as-a-run", "servers: {s: {url: \"https://s.example\", connect_timeout: 2m}}\n", "", "", ""},
		{"connecting-longer-than-a-run", "servers: {s: {url: \"https://s.example\", connect_timeout: 121s}}\n", "", "",
			"pgfsm.yaml:3:58: connect_timeout of the server s is 121s, longer than limits.run_timeout, which ends a run after 2m"},
		{"run-shorter-than-connecting", server + "limits: {run_timeout: 5s}\n", "", "",
			"pgfsm.yaml:4:23: connect_timeout of the server s is 10s, longer than limits.run_timeout"},
		{"completion-longer-than-a-run", server + llm + ", timeout: 3m}}\n", "", "",
			"pgfsm.yaml:4:67: planner.llm.timeout is 3m, longer than limits.run_timeout"},
		{"call-longer-than-a-run", "servers: {s: {url: \"https://s.example\", timeout: 9m}}\n", "", "", ""},
		{"hold-as-long-as-a-held-call", server + hooks + ", hold: 5m}\n", "", "", ""},
		{"hold-longer-than-a-held-call", server + hooks + ", hold: 6m}\n", "", "",
			"pgfsm.yaml:6:79: approvals.hold is 6m, and every held call expires after 5m at the latest"},
		{"reminder-in-time", server + hooks + ", remind_before: 4m}\n", "", "", ""},
		{"reminder-never", server + hooks + ", remind_before: 5m}\n", "", "",
			"pgfsm.yaml:6:88: approvals.remind_before is 5m, and every held call expires after 5m at the latest, so there is never a reminder"},
		{"reminder-of-the-default", server + hooks + "}\n", "", "", ""},
		{"arguments-within-the-rules", server + rule + "limits: {arguments_bytes: 100}\n", "", "", ""},
		{"arguments-beyond-the-rules", server + rule + "limits: {arguments_bytes: 101}\n", "", "",
			"pgfsm.yaml:5:27: limits.arguments_bytes is 101, and input.max_bytes lets no call through with more than 100"},
		{"arguments-of-the-default", server + rule, "", "", ""},
		{"as-many-processes-as-servers", "servers: {s: {command: a}, t: {command: b}}\nlimits: {server_sessions: 2}\n", "", "", ""},
		{"fewer-processes-than-servers", "servers: {s: {command: a}, t: {command: b}}\nlimits: {server_sessions: 1}\n", "", "",
			"pgfsm.yaml:4:27: limits.server_sessions is 1, and there are 2 stdio servers"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			files := map[string]string{
				"pgfsm.yaml": "version: 1\nallowlist: allow.json\n" + tt.text, "allow.json": `{"s": ["x"]}`, "other.json": tt.override, "x.json": `{"type": "object"}`,
				"policy.yaml": "version: 1\npolicies: [{id: p, match: {}, effect: pending, reason: \"Hold.\", expires: 5m}]\n",
			}
			if tt.allowlist != "" {
				files["allow.json"] = tt.allowlist
			}
			var over Overrides
			if tt.override != "" {
				over.Allowlist = "other.json"
			}
			l, err := Load("pgfsm.yaml", openMap(files), over)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" {
				if d := cmp.Diff([]string(nil), l.Warnings); d != "" {
					t.Errorf("warnings (-want +got):\n%s", d)
				}
				return
			}
			if len(l.Warnings) != 1 || !strings.HasPrefix(l.Warnings[0], tt.want) {
				t.Errorf("warnings = %q, want %q", l.Warnings, tt.want)
			}
		})
	}
}
