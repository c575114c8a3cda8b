package bench

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
)

// readyWithin is how long pgfsm may take until it is ready.
const readyWithin = 60 * time.Second

// A setup is how pgfsm is set up for a measurement.
type setup struct {
	record   record
	servers  int    // how many there are; all are the same upstream
	database string // URL of the ledger; empty: it is a file
}

// A record says where the gateway records, and who calls.
type record int

const (
	nowhere  record = iota // serve.record: none
	byItself               // in the ledger of a configuration that names none; callers have no token
	inLedger               // in the ledger that the configuration names; callers have a token
)

// A gateway is a pgfsm that runs.
type gateway struct {
	*process
	folder string
	token  string // of an agent; empty: callers have none
}

// joined is the place with all servers, single that of the first server alone.
func (g *gateway) joined() place {
	return place{door: door{host: g.host, path: "/mcp", token: g.token, joined: serverName + "__"}, process: g.process}
}

func (g *gateway) single() place {
	return place{door: door{host: g.host, path: "/servers/" + serverName + "/mcp", token: g.token}, process: g.process}
}

// serve starts pgfsm in front of the upstream and waits until it is ready.
func (s setup) serve(t testing.TB, upstream *process) *gateway {
	t.Helper()
	folder, err := os.MkdirTemp(*dir, "bench-")
	check.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	for name, content := range s.files(upstream.host) { // one file each, in any order
		check.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	command := exec.Command(*program, "serve", "-c", filepath.Join(folder, "pgfsm.yaml"))
	command.Dir = folder
	p, stdout := start(t, command)
	g := &gateway{process: p, folder: folder}
	var admin string
	for i, what := range []string{"mcp http://%s", "admin http://%s"} {
		line, err := stdout.ReadString('\n')
		if err == nil {
			_, err = fmt.Sscanf(line, what, []*string{&p.host, &admin}[i])
		}
		if err != nil {
			t.Fatalf("pgfsm serve did not say where it listens: %q, %v\n%s", line, err, p.said.String())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	p.host = strings.TrimSuffix(p.host, "/mcp")
	if s.record == inLedger {
		g.token = g.agent(t, "agent")
	}
	g.await(t, "http://"+admin+"/readyz")
	return g
}

// agent makes a token.
func (g *gateway) agent(t testing.TB, name string) string {
	t.Helper()
	out, err := exec.Command(g.Path, "token", "create", "-c", filepath.Join(g.folder, "pgfsm.yaml"), "--role", "agent", "--name", name).Output()
	if err != nil {
		t.Fatalf("pgfsm token create: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// await asks until the answer is 200.
func (g *gateway) await(t testing.TB, url string) {
	t.Helper()
	for end := time.Now().Add(readyWithin); ; {
		select {
		case err := <-g.over:
			g.over <- err
			t.Fatalf("pgfsm serve ended: %v\n%s", err, g.said.String())
		case <-time.After(20 * time.Millisecond):
		}
		answer, err := http.Get(url)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("status %d", answer.StatusCode)
		}
		if time.Now().After(end) {
			t.Fatalf("pgfsm serve was not ready within %v: %v\n%s", readyWithin, err, g.said.String())
		}
	}
}

// files are what pgfsm is configured with: every gate of a call has something to do.
func (s setup) files(upstream string) map[string]string {
	var servers, allowed strings.Builder
	for i := range s.servers {
		name := serverName
		if i > 0 {
			name = fmt.Sprintf("other%d", i)
			allowed.WriteString(",\n")
		}
		fmt.Fprintf(&servers, "  %s: {type: http, url: \"http://%s/mcp\"}\n", name, upstream)
		fmt.Fprintf(&allowed, "  %q: [\"echo\", \"blob\", \"refused\", \"stuck\"]", name)
	}
	record := "keep"
	if s.record == nowhere {
		record = "none"
	}
	config := fmt.Sprintf("version: 1\nenv: prod\nserve: {listen: \"127.0.0.1:0\", admin: \"127.0.0.1:0\", record: %s}\nservers:\n%s"+
		"allowlist: allowlist.json\nrisk: risk.yaml\npolicy: policy.yaml\n", record, servers.String())
	if s.record == inLedger {
		config += fmt.Sprintf("ledger: %q\n", cmp.Or(s.database, "sqlite:ledger.db"))
	}
	return map[string]string{
		"pgfsm.yaml":     config,
		"allowlist.json": "{\n" + allowed.String() + "\n}\n",
		"risk.yaml":      risk,
		"policy.yaml":    policies(100),
	}
}

// risk rates the calls: one rule that looks at an argument, and one that computes.
const risk = `version: 1
modes: {safe: 0, review: 50, danger: 90}
rules:
  - id: secrets
    when: {tool: "*", args: {message: {contains: password, exists: true}}}
    set_mode: danger
    reason: A password may leave.
  - id: large
    when: {tool: blob}
    score_expr: "math.greatest(score, args.size > 16777216 ? 60.0 : 10.0)"
    reason: Much is asked for.
`

// policies are n of them. The last ones decide: one refuses, and the very last allows if its condition is true.
// What stands before speaks of other tools.
func policies(n int) string {
	last := []string{
		"  - id: refused\n    match: {server: \"*\", tool: refused}\n    effect: deny\n    reason: Not this one.\n",
		"  - id: work\n    match: {server: \"*\", tool: \"*\"}\n    when: risk.mode == \"safe\" && actor.id != \"mallory\"\n    effect: allow\n",
	}
	last = last[max(0, len(last)-n):]
	b := strings.Builder{}
	b.WriteString("version: 1\npolicies:\n")
	for i := range n - len(last) {
		fmt.Fprintf(&b, "  - id: other%d\n    match: {server: \"erp%d\", tool: \"export_*\"}\n    when: risk.mode != \"safe\"\n    effect: deny\n", i, i)
	}
	return b.String() + strings.Join(last, "")
}
