package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger"
)

const openLook = `version: 1
policies:
  - {id: free, match: {tool: look}, effect: allow, reason: "Anybody may look."}
`

const denyLook = `version: 1
policies:
  - {id: closed, match: {tool: look}, effect: deny, reason: "Nobody may look."}
`

// reloads asks the gateway to reload, as an administrator, and wants the exit code.
func (o *office) reloads(t *testing.T, admin string, code int) clitest.Result {
	t.Helper()
	got := command(t.Context(), map[string]string{"PGFSM_TOKEN": admin}, "reload", "--json", "--url", o.admin, "-c", o.config)
	got.Want(t, code)
	return got
}

// activations are the entries of the log about bundles, as texts.
func activations(t *testing.T, dir string) (all []string) {
	t.Helper()
	for _, e := range events(t, dir, ledger.BundleActivated) {
		all = append(all, string(e.Payload))
	}
	return all
}

// compact is JSON without white space.
func compact(text string) string { return strings.Join(strings.Fields(text), "") }

// replaces writes a file in one step.
func (o *office) replaces(t *testing.T, name, text string) {
	t.Helper()
	o.writes(t, name+".new", text)
	check.NoError(t, os.Rename(filepath.Join(o.dir, name+".new"), filepath.Join(o.dir, name)))
}

// TestReload: pgfsm reload makes another policy active, says what changed, and the log has who asked.
func TestReload(t *testing.T) {
	t.Parallel()
	o := newOffice(t, openLook, "")
	admin := makeToken(t, o.config, "admin", "root")
	a := o.agent("/mcp", o.ci)
	a.gets(t, "echo__look", `{"n":1}`, "hi")
	o.replaces(t, "policy.yaml", denyLook)
	a.gets(t, "echo__look", `{"n":1}`, "hi")
	got := o.reloads(t, admin, exitYes)
	for pointer, want := range map[string]string{ // in any order
		"/changed": `["policy"]`, "/restart": "[]", "/compared/calls": "2", "/compared/decided_otherwise": "2",
		"/compared/kinds": `{"newly-denied":2,"policy-changed":2}`, "/compared/runs/0/after": "deny", "/compared/runs/0/by": "closed",
	} {
		if is := compact(got.Member(pointer)); is != want {
			t.Errorf("%s is %s, want %s", pointer, is, want)
		}
	}
	a.gets(t, "echo__look", `{"n":1}`, "policy_denied")
	o.u.Reached(t, 2)
	log := activations(t, o.dir)
	if len(log) != 2 || !strings.Contains(log[0], `"cause":"start"`) || !strings.Contains(log[1], `"actor":"root"`) ||
		!strings.Contains(log[1], `"bundle":"`+got.Member("/bundle")+`"`) || !strings.Contains(log[1], `"previous":"`+got.Member("/previous")+`"`) {
		t.Errorf("the log has %q, the answer is %s", log, got.Stdout)
	}
	if _, body := o.served.gets(t, "/metrics", ""); !strings.Contains(body, `pgfsm_bundle_info{digest="`+got.Member("/bundle")+`"} 1`) || strings.Contains(body, got.Member("/previous")) {
		t.Errorf("the metrics name another bundle: %s", body)
	}
	again := o.reloads(t, admin, exitYes)
	if again.Member("/changed") != "[]" || again.Member("/bundle") != got.Member("/bundle") || len(activations(t, o.dir)) != 2 {
		t.Errorf("a second reload says %s", again.Stdout)
	}
	if all := recorded(t, o.dir); len(all) != 3 || string(all[2].Bundle) != got.Member("/bundle") || string(all[1].Bundle) != got.Member("/previous") {
		t.Errorf("the runs are %+v", all)
	}
	verifies(t, o.dir)
}

// TestReloadRecordsClaims: the log names the claims that were proved for the bundle.
func TestReloadRecordsClaims(t *testing.T) {
	t.Parallel()
	o := newOffice(t, openLook, "")
	config, err := os.ReadFile(o.config)
	check.NoError(t, err)
	o.writes(t, "claims.yaml", "version: 1\nclaims:\n  - {id: nobody-looks, never: allow}\n")
	o.replaces(t, "pgfsm.yaml", string(config)+"claims: claims.yaml\n")
	o.replaces(t, "policy.yaml", denyLook)
	admin := makeToken(t, o.config, "admin", "root")
	o.reloads(t, admin, exitYes)
	if log := activations(t, o.dir); len(log) != 2 || strings.Contains(log[0], "proved") || !strings.Contains(log[1], `"proved":["nobody-looks"]`) {
		t.Errorf("the log has %q", log)
	}

	// Claims alone change: the bundle stays, and the log names what is proved for it now.
	o.writes(t, "claims.yaml", "version: 1\nclaims:\n  - {id: looks-are-denied, never: allow}\n")
	o.reloads(t, admin, exitYes)
	if log := activations(t, o.dir); len(log) != 3 || !strings.Contains(log[2], `"proved":["looks-are-denied"]`) ||
		!strings.Contains(log[2], `"changed":["claims"]`) {
		t.Errorf("after a reload of claims alone, the log has %q", log)
	}
	verifies(t, o.dir)
}

// TestReloadSendsNoTokenInClear: the token of an admin crosses no network without TLS.
func TestReloadSendsNoTokenInClear(t *testing.T) {
	t.Parallel()
	got := command(t.Context(), map[string]string{"PGFSM_TOKEN": "pgfsm_x"}, "reload", "--url", "http://gateway.example")
	if got.Want(t, exitCould); !strings.Contains(got.Stderr, "use https") {
		t.Errorf("reload says %s", got.Stderr)
	}
}

// TestReloadRefused: a configuration that cannot be used changes nothing, and the answer names the place.
func TestReloadRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t, openLook, "")
	admin := makeToken(t, o.config, "admin", "root")
	a := o.agent("/mcp", o.ci)
	config, err := os.ReadFile(o.config)
	check.NoError(t, err)
	in := func(name string) string { return filepath.Join(o.dir, name) }
	for _, tt := range []struct {
		name   string
		breaks func(t *testing.T)
		says   []string
	}{
		{"not-yaml", func(t *testing.T) { o.replaces(t, "policy.yaml", "version: 1\npolicies: [") }, []string{"policy.yaml:2"}},
		{"others-may-write-it", func(t *testing.T) {
			check.NoError(t, os.Chmod(in("policy.yaml"), 0o666))
		}, []string{"policy.yaml cannot be read", "others may write it"}},
		{"lint", func(t *testing.T) {
			o.replaces(t, "policy.yaml", openLook+"  - {id: late, match: {tool: look}, effect: deny, reason: \"Never.\"}\n")
		}, []string{"lint: [policy_unreachable]", "policy.yaml:4", "late"}},
		{"claims", func(t *testing.T) {
			o.writes(t, "claims.yaml", "version: 1\nclaims:\n  - {id: nobody-looks, never: allow}\n")
			o.replaces(t, "pgfsm.yaml", string(config)+"claims: claims.yaml\n")
		}, []string{"claims.yaml:3", "nobody-looks", "is refuted: the call of look of echo"}},
		{"tests", func(t *testing.T) {
			o.writes(t, "tests.yaml", "tests:\n  - {name: Nobody looks, input: {server: echo, tool: look}, expect: deny}\n")
		}, []string{"tests.yaml:2", "Nobody looks", "want deny"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.breaks(t)
			before := len(activations(t, o.dir))
			got := o.reloads(t, admin, exitNo)
			if got.Member("/code") != "reload_refused" {
				t.Errorf("the code is %s", got.Stdout)
			}
			for _, words := range tt.says {
				if !strings.Contains(got.Member("/reason"), words) {
					t.Errorf("the reason lacks %q: %s", words, got.Member("/reason"))
				}
				soon(t, "the log has the reason", func() bool { return strings.Contains(o.stderr.String(), words) })
			}
			if n := len(activations(t, o.dir)); n != before {
				t.Errorf("the log has %d activations, before %d", n, before)
			}
			a.gets(t, "echo__look", `{"n":1}`, "hi")
			for _, name := range []string{"policy.yaml", "tests.yaml", "claims.yaml"} {
				check.NoError(t, os.RemoveAll(in(name)))
			}
			o.replaces(t, "pgfsm.yaml", string(config))
			o.writes(t, "policy.yaml", openLook)
			o.writes(t, "allowlist.json", `{"echo": ["look"]}`)
		})
	}
	for _, tt := range []struct {
		name, token, reason string
		code                int
	}{
		{"of-an-approver", o.bob, "role", exitNo},
		{"of-an-agent", o.ci, "role", exitNo},
		{"of-nobody", "pgfsm_" + strings.Repeat("a", 60), "", exitNo},
		{"missing", "", "", exitCould},
	} {
		t.Run("token-"+tt.name, func(t *testing.T) {
			o.replaces(t, "policy.yaml", denyLook)
			if got := o.reloads(t, tt.token, tt.code); !strings.Contains(got.Stdout, tt.reason) {
				t.Errorf("it says %s", got.Stdout)
			}
			a.gets(t, "echo__look", `{"n":1}`, "hi")
		})
	}
}

// TestServeLogsLint: a policy that denies nothing is an error in the log from the start on.
func TestServeLogsLint(t *testing.T) {
	t.Parallel()
	o := newOffice(t, strings.Replace(denyLook, "tool: look", `tool: "!look"`, 1), "")
	if said := o.stderr.String(); !strings.Contains(said, "code=match_impossible file=") {
		t.Errorf("the log lacks the error of lint:\n%s", said)
	}
}

// TestReloadRestart: keys that need a restart are named, and the rest is taken.
func TestReloadRestart(t *testing.T) {
	t.Parallel()
	o := newOffice(t, openLook, "")
	admin := makeToken(t, o.config, "admin", "root")
	a := o.agent("/mcp", o.ci)
	config, err := os.ReadFile(o.config)
	check.NoError(t, err)
	o.replaces(t, "policy.yaml", denyLook)
	o.replaces(t, "pgfsm.yaml", strings.Replace(string(config), "pgfsm.db", "other.db", 1)+
		"serve: {listen: \"127.0.0.1:1\", hosts: [mcp.example.com], sessions: 7, denials: opaque}\ntraces: {dir: elsewhere}\n")
	for range 2 {
		got := o.reloads(t, admin, exitYes)
		if compact(got.Member("/restart")) != `["ledger","serve.hosts","serve.listen","serve.sessions","traces.dir"]` {
			t.Errorf("it says %s", got.Stdout)
		}
	}
	a.gets(t, "echo__look", `{"n":1}`, "refused")
	if all := recorded(t, o.dir); len(all) != 1 || all[0].Code != "policy_denied" {
		t.Errorf("the former ledger has %+v", all)
	}
	if got := activations(t, o.dir); len(got) != 2 || !strings.Contains(got[1], `"changed":["policy","serve.denials"]`) {
		t.Errorf("the log has %q", got)
	}
}

// TestReloadSignal: SIGHUP and a file behind a changed symbolic link are reloads, too; after a kill, the next start loads the files.
func TestReloadSignal(t *testing.T) {
	t.Parallel()
	u := mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools))
	dir := gatewayFolder(t, u, inOffice)
	// As Kubernetes mounts a ConfigMap: the files are links through ..data, which is a link to a folder that is replaced as a whole.
	publish := func(version, policy string) {
		t.Helper()
		check.NoError(t, os.Mkdir(filepath.Join(dir, version), 0o700))
		clitest.Write(t, filepath.Join(dir, version, "policy.yaml"), policy)
		check.NoError(t, os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		check.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	publish("..one", openLook)
	check.NoError(t, os.Symlink("..data/policy.yaml", filepath.Join(dir, "policy.yaml")))
	s := serve(t, dir, "--watch")
	ci := makeToken(t, s.config, "agent", "ci")
	a := s.agent("/mcp", ci)
	a.gets(t, "echo__look", `{"n":1}`, "hi")
	publish("..two", denyLook)
	a.becomes(t, "echo__look", `{"n":1}`, "hi", "policy_denied")
	publish("..three", "nothing")
	soon(t, "the log says why nothing changed", func() bool {
		return strings.Contains(s.stderr.String(), "reload failed: the former configuration stays active")
	})
	a.gets(t, "echo__look", `{"n":1}`, "policy_denied")
	publish("..four", holdLook)
	a.becomes(t, "echo__look", `{"n":1}`, "policy_denied", "approval_required")
	var causes []string
	for _, entry := range activations(t, dir) {
		cause, _ := clitest.ValueAt([]byte(entry), "/cause")
		causes = append(causes, string(cause))
	}
	same(t, "the causes", []string{`"start"`, `"watch"`, `"watch"`}, causes)
	s.kill()

	clitest.Write(t, filepath.Join(dir, "..four", "policy.yaml"), denyLook) // while nobody watches
	s = serve(t, dir)
	a = s.agent("/mcp", ci)
	a.gets(t, "echo__look", `{"n":2}`, "policy_denied")
	publish("..five", openLook)
	check.NoError(t, s.cmd.Process.Signal(syscall.SIGHUP))
	a.becomes(t, "echo__look", `{"n":2}`, "policy_denied", "hi")
	if log := activations(t, dir); !strings.Contains(log[len(log)-1], `"cause":"signal"`) {
		t.Errorf("the log ends with %s", log[len(log)-1])
	}
	s.stop(t, exitYes)
	verifies(t, dir)
}

// TestReloadSignalAtTheEnd: SIGHUP does not end a gateway that waits for its collector before it ends by itself.
func TestReloadSignalAtTheEnd(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}, 100), make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-answer
	}))
	t.Cleanup(collector.Close)
	o := newOffice(t, openLook, "telemetry: {otlp: {endpoint: "+clitest.Quote(collector.URL)+"}}\n")
	o.agent("/mcp", o.ci).gets(t, "echo__look", `{}`, "hi")
	o.interrupt(t)
	<-asked
	check.NoError(t, o.cmd.Process.Signal(syscall.SIGHUP))
	close(answer)
	o.ends(t, exitYes)
	verifies(t, o.dir)
}
