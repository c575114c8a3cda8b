package setup_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/runner"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/test/check"
)

// base is a configuration that each case changes at one place.
const base = `version: 1
env: dev
servers:
  docs: {type: http, url: "http://127.0.0.1:1/mcp", headers: {X-Key: "${file:key.txt}"}}
  agent: {kind: client, tools: tools.json}
allowlist: {default: allowlist.json, groups: {oncall: oncall.json}}
grants: [grant.yaml]
risk: risk.yaml
policy: policy.yaml
claims: claims.yaml
labels: labels.yaml
roles: {lead: [alice]}
input: {max_bytes: 1000}
planner: {routes: []}
outputs: {docs: {read: output.json}}
summary: {mode: asked}
traces: {dir: traces}
ledger: "sqlite:pgfsm.db"
checkpoints: {key: log.key, dir: checkpoints}
approvals: {hold: 1s, on_pending: result, remind_before: 1m, hooks: []}
identity:
  required: false
  scopes: [mcp]
  issuers: [{issuer: "https://login.example.com", groups: /groups, claims: {team: /team}}]
  may: {approve: [alice]}
  same: [[alice, bob]]
serve: {listen: "127.0.0.1:1", admin: "127.0.0.1:2", public_url: "https://a.example.com", admin_url: "https://b.example.com",
  denials: explain, record: keep, hosts: [a.example.com], decide_url: "https://b.example.com/{run_id}", sessions: 10}
catalog_max_age: 1m
limits: {run_timeout: 1m}
`

var files = map[string]string{
	"pgfsm.yaml": base, "key.txt": "the-first-key", "allowlist.json": `{"docs": ["read"]}`, "oncall.json": `{"docs": ["write"]}`,
	"grant.yaml": "version: 1\ntools: {docs: {read: {calls: 2}}}\n", "risk.yaml": "version: 1\nmodes: {low: 1}\ninitial: low\n",
	"policy.yaml": "version: 1\npolicies:\n  - {id: free, effect: allow}\n", "output.json": `{"type": "object"}`,
	"claims.yaml": "version: 1\nclaims:\n  - {id: none, never: pending}\n  - {id: narrower, implies: older.yaml}\n",
	"tools.json":  `{"tools": [{"name": "run", "inputSchema": {"type": "object"}}]}`,
	"labels.yaml": "version: 1\n",
	"older.yaml":  "version: 1\npolicies:\n  - {id: free, effect: allow}\n",
}

func folder(t *testing.T) (dir string, put func(name, text string)) {
	t.Helper()
	dir = t.TempDir()
	put = func(name, text string) {
		t.Helper()
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for name, text := range files { // in any order
		put(name, text)
	}
	return dir, put
}

func reloader(t *testing.T, dir string) *setup.Reloader {
	t.Helper()
	o := setup.Options{Config: filepath.Join(dir, "pgfsm.yaml"), Getenv: func(string) (string, bool) { return "", false }}
	loaded, from, err := setup.Load(o)
	check.NoError(t, err)
	s, err := setup.Open(o, loaded, from)
	check.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return setup.NewReloader(s, setup.Identity(loaded, nil))
}

// TestReloadKeys: each key of the configuration is taken by a reload, or named as one that needs a restart.
func TestReloadKeys(t *testing.T) {
	for _, tt := range []struct{ file, from, to, changed, restart string }{
		{"pgfsm.yaml", "env: dev", "env: prod", "env", ""},
		{"pgfsm.yaml", "/mcp\"", "/other\"", "servers", ""},
		{"pgfsm.yaml", "type: http,", "type: http, expose: all,", "servers", ""},
		{"key.txt", "first", "other", "servers", ""},
		{"tools.json", `"run"`, `"walk"`, "servers", ""},
		{"allowlist.json", `"read"`, `"read", "look"`, "allowlist", ""},
		{"oncall.json", `"write"`, `"look"`, "allowlist", ""},
		{"pgfsm.yaml", "groups: {oncall:", "groups: {others:", "allowlist", ""},
		{"grant.yaml", "calls: 2", "calls: 3", "grants", ""},
		{"risk.yaml", "low: 1", "low: 2", "risk", ""},
		{"policy.yaml", "allow}", "deny}", "policy", ""},
		{"pgfsm.yaml", "[alice]}\ninput", "[bob]}\ninput", "roles", ""},
		{"pgfsm.yaml", "max_bytes: 1000", "max_bytes: 1001", "input", ""},
		{"pgfsm.yaml", "routes: []", `routes: [{id: r, pattern: "^a$", server: docs, tool: read}]`, "planner", ""},
		{"output.json", `"object"`, `"object", "title": "T"`, "outputs", ""},
		{"pgfsm.yaml", "mode: asked", "mode: never", "summary", ""},
		{"pgfsm.yaml", "dir: traces", "dir: others", "", "traces.dir"},
		{"pgfsm.yaml", "pgfsm.db", "other.db", "", "ledger"},
		{"pgfsm.yaml", "dir: checkpoints", "dir: others", "", "checkpoints"},
		{"pgfsm.yaml", "hold: 1s", "hold: 2s", "approvals", ""},
		{"pgfsm.yaml", "remind_before: 1m", "remind_before: 2m", "", "approvals.remind_before"},
		{"pgfsm.yaml", "hooks: []", `hooks: [{url: "https://c.example.com", secret: "0123456789abcdef01234567"}]`, "", "approvals.hooks"},
		{"pgfsm.yaml", "required: false", "required: true", "identity", ""},
		{"pgfsm.yaml", "groups: /groups", "groups: /others", "", "identity.issuers"},
		{"pgfsm.yaml", "{team: /team}", "{unit: /team}", "identity", "identity.issuers"},
		{"pgfsm.yaml", "approve: [alice]", "approve: [bob]", "identity", ""},
		{"pgfsm.yaml", "[[alice, bob]]", "[[alice, carol]]", "identity", ""},
		{"pgfsm.yaml", "127.0.0.1:1\", admin", "127.0.0.1:3\", admin", "", "serve.listen"},
		{"pgfsm.yaml", "127.0.0.1:2", "127.0.0.1:3", "", "serve.admin"},
		{"pgfsm.yaml", "https://a.", "https://c.", "", "serve.public_url"},
		{"pgfsm.yaml", "admin_url: \"https://b.", "admin_url: \"https://c.", "", "serve.admin_url"},
		{"pgfsm.yaml", "serve: {", "serve: {tls: {cert: a, key: b}, ", "", "serve.tls"},
		{"pgfsm.yaml", "serve: {", "serve: {socket: a.sock, ", "", "serve.socket"},
		{"pgfsm.yaml", "explain", "opaque", "serve.denials", ""},
		{"pgfsm.yaml", "keep", "none", "", "serve.record"},
		{"pgfsm.yaml", "hosts: [a.", "hosts: [c.", "", "serve.hosts"},
		{"pgfsm.yaml", "/{run_id}", "/runs/{run_id}", "serve.decide_url", ""},
		{"pgfsm.yaml", "sessions: 10", "sessions: 11", "", "serve.sessions"},
		{"pgfsm.yaml", "catalog_max_age: 1m", "catalog_max_age: 2m", "catalog_max_age", ""},
		{"pgfsm.yaml", "run_timeout: 1m", "run_timeout: 2m", "limits", ""},
		{"pgfsm.yaml", "catalog_max_age", "telemetry: {otlp: {endpoint: \"http://127.0.0.1:4318\"}}\ncatalog_max_age", "", "telemetry.otlp"},
		{"pgfsm.yaml", "run_timeout: 1m", "rate: {identity: {per_minute: 60}}", "limits", ""},
		{"pgfsm.yaml", "run_timeout: 1m", "run_timeout: 1m, held: 3", "limits", ""},
		{"pgfsm.yaml", "run_timeout: 1m", "run_timeout: 1m, server_sessions: 9", "limits", ""},
		{"pgfsm.yaml", "env: dev", "env: dev # still", "", ""},
		{"claims.yaml", "id: none", "id: no-hold", "claims", ""},
		{"older.yaml", "id: free", "id: open", "claims", ""},
		{"labels.yaml", "version: 1", "version: 1\nprompts: {sdk: true}", "labels", ""},
		{"claims.yaml", "claims:", "claims: # still\n", "", ""},
	} {
		t.Run(strings.Trim(regexp.MustCompile(`[^a-z]+`).ReplaceAllString(tt.file+" "+tt.to, "-"), "-"), func(t *testing.T) {
			dir, put := folder(t)
			r := reloader(t, dir)
			if strings.Count(files[tt.file], tt.from) != 1 {
				t.Fatalf("%s does not have %q once", tt.file, tt.from)
			}
			put(tt.file, strings.Replace(files[tt.file], tt.from, tt.to, 1))
			next, err := r.Read()
			check.NoError(t, err)
			want := func(key string) (keys []string) {
				if key != "" {
					keys = []string{key}
				}
				return keys
			}
			if !slices.Equal(next.Changed, want(tt.changed)) || !slices.Equal(next.Restart, want(tt.restart)) {
				t.Errorf("changed %q, restart %q", next.Changed, next.Restart)
			}
			restarts[tt.restart] = true
		})
	}
	page, err := os.ReadFile("../../../docs/operate/reload.md")
	check.NoError(t, err)
	_, list, _ := strings.Cut(string(page), "<!-- restart -->")
	list, _, _ = strings.Cut(list, "<!-- end restart -->")
	var told, have []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list, -1) {
		told = append(told, m[1])
	}
	for key := range restarts { // sorted below
		if key != "" {
			have = append(have, key)
		}
	}
	slices.Sort(have)
	if d := cmp.Diff(have, told); d != "" {
		t.Errorf("the manual's keys that need a restart (-want +got):\n%s", d)
	}
}

var restarts = make(map[string]bool)

// TestReloadKeepsWhatNeedsARestart: a configuration that is taken has the former values of such keys, and the next reload names them again.
func TestReloadKeepsWhatNeedsARestart(t *testing.T) {
	dir, put := folder(t)
	r := reloader(t, dir)
	put("pgfsm.yaml", strings.NewReplacer("127.0.0.1:1\", admin", "127.0.0.1:3\", admin", "sessions: 10", "sessions: 11", "explain", "opaque").Replace(base))
	for range 2 {
		next, err := r.Read()
		check.NoError(t, err)
		if c := next.Config.Serve; c.Listen != "127.0.0.1:1" || c.Sessions != 10 || c.Denials != "opaque" {
			t.Errorf("the settings are %+v", c)
		}
		if !slices.Equal(next.Restart, []string{"serve.listen", "serve.sessions"}) {
			t.Errorf("restart %q", next.Restart)
		}
		next.Activated()
	}
	put("pgfsm.yaml", strings.Replace(base, "explain", "opaque", 1))
	if next, err := r.Read(); err != nil || len(next.Restart)+len(next.Changed) > 0 {
		t.Errorf("after the keys were put back: %+v, %v", next, err)
	}
}

// TestReloadKeepsWhatIssuersMustSatisfy: while the tokens of the former issuers are valid, the gateway asks of them what it did before.
func TestReloadKeepsWhatIssuersMustSatisfy(t *testing.T) {
	before, rest, _ := strings.Cut(base, "identity:\n")
	_, after, _ := strings.Cut(rest, "serve: ")
	for _, tt := range []struct{ name, identity string }{
		{"removed", ""},
		{"another-issuer", "identity:\n  issuers: [{issuer: \"https://other.example.com\"}]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, put := folder(t)
			put("pgfsm.yaml", strings.Replace(base, "required: false", "required: true", 1))
			r := reloader(t, dir)
			put("pgfsm.yaml", before+tt.identity+"serve: "+after)
			next, err := r.Read()
			check.NoError(t, err)
			if !next.Config.Required || !slices.Equal(next.Config.Identity.Scopes, []string{"mcp"}) || !slices.Contains(next.Restart, "identity.issuers") {
				t.Errorf("required %v, scopes %q, restart %q", next.Config.Required, next.Config.Identity.Scopes, next.Restart)
			}
		})
	}
}

// TestReloadSecrets: the values of a configuration are masked when it becomes active, and those of a former one until it is retired, also if a
// later one is. The headers of telemetry.otlp are masked until a restart.
func TestReloadSecrets(t *testing.T) {
	dir, put := folder(t)
	otlp := "telemetry: {otlp: {endpoint: \"http://127.0.0.1:4318\", headers: {X-Key: \"Bearer ${file:otlp.txt}\"}}}\n"
	put("otlp.txt", "the-otlp-key")
	put("pgfsm.yaml", base+otlp)
	r := reloader(t, dir)
	read := func() *runner.Next {
		t.Helper()
		next, err := r.Read()
		check.NoError(t, err)
		return next
	}
	masks := func(n *runner.Next, text string, want bool) {
		t.Helper()
		if got := n.Config.Secrets.String(text) != text; got != want {
			t.Errorf("%s is masked: %v, want %v", text, got, want)
		}
	}
	put("key.txt", "another-key")
	next := read()
	masks(next, "the-first-key", true)
	masks(next, "another-key", false)
	next.Activated()
	masks(next, "the-first-key", true)
	masks(next, "another-key", true)
	put("key.txt", "the-third-key")
	put("otlp.txt", "the-later-otlp-key")
	last := read()
	if !slices.Equal(last.Restart, []string{"telemetry.otlp"}) {
		t.Errorf("another key of the collector: restart %q", last.Restart)
	}
	last.Activated()
	masks(last, "the-first-key", true)
	last.Retired()
	masks(last, "the-first-key", true)
	masks(last, "another-key", false)
	next.Retired()
	masks(last, "the-first-key", false)
	masks(last, "the-third-key", true)
	masks(last, "the-otlp-key", true)
}

// TestWatchTriesAgain: Watch reports a configuration that was read until it is active.
func TestWatchTriesAgain(t *testing.T) {
	dir, put := folder(t)
	r := reloader(t, dir)
	put("policy.yaml", strings.Replace(files["policy.yaml"], "allow}", "deny}", 1))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		tries := 0
		go r.Watch(ctx, func() {
			tries++
			next, err := r.Read()
			if err != nil {
				t.Error(err)
			} else if tries == 3 { // the ledger was full before
				next.Activated()
			}
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		if tries != 3 {
			t.Errorf("there were %d tries, want 3", tries)
		}
	})
}

// TestReloadOfServers: a server whose entry and secrets did not change is shared.
func TestReloadOfServers(t *testing.T) {
	dir, put := folder(t)
	two := strings.Replace(base, "allowlist: {", "  more: {type: http, url: \"http://127.0.0.1:1/more\"}\nallowlist: {", 1)
	put("pgfsm.yaml", two)
	r := reloader(t, dir)
	first, err := r.Read()
	check.NoError(t, err)
	first.Activated()
	put("key.txt", "another-key")
	next, err := r.Read()
	check.NoError(t, err)
	if was, is := first.Config.Upstreams, next.Config.Upstreams; was.Shares(is, "docs") || !was.Shares(is, "more") {
		t.Error("the server with another key is shared, or the other one is not")
	}
	next.Activated()
	put("pgfsm.yaml", strings.Replace(two, "run_timeout: 1m", "result_bytes: 1000", 1))
	last, err := r.Read()
	check.NoError(t, err)
	if next.Config.Upstreams.Shares(last.Config.Upstreams, "more") {
		t.Error("a server is shared under another limit")
	}
}
