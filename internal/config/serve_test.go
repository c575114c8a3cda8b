package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
)

// loadServe loads a configuration of one server with more lines behind it.
func loadServe(t *testing.T, more string) (*Loaded, error) {
	t.Helper()
	return Load("c.yaml", openMap(map[string]string{"c.yaml": minimal + more, "allow.json": "{}"}), Overrides{})
}

var byDefault = []string{"tools", "progress", "cancellation", "logging"}

// TestServe: what nobody writes has its default, what is written holds, and none of it changes what calls are judged by.
func TestServe(t *testing.T) {
	plain, err := loadServe(t, "")
	if err != nil {
		t.Fatal(err)
	}
	want := Serve{
		Listen: "127.0.0.1:8787", Admin: "127.0.0.1:9464", Denials: "explain", Record: "keep", Sessions: 1000,
		OnPending: "result", RemindBefore: 900_000, CatalogMaxAge: 60_000, Expose: []Exposure{{"docs", byDefault, SessionsIdentity}},
		ServerSessions: 48, Held: 50,
	}
	if diff := cmp.Diff(want, plain.Serve); diff != "" {
		t.Errorf("Serve without any key (-want +got):\n%s", diff)
	}
	written, err := loadServe(t, `serve: {listen: "[::1]:0", admin: "localhost:0", denials: opaque, record: none, sessions: 10000,
  hosts: [mcp.example.com, "mcp.example.com:8443", "[::1]"], decide_url: "https://a.example.com/#/runs/{run_id}?of={run_id}"}
approvals: {hold: 10m, on_pending: error, remind_before: 0s}
catalog_max_age: 0s
limits: {server_sessions: 3, held: 2}
`)
	if err != nil {
		t.Fatal(err)
	}
	want = Serve{
		Listen: "[::1]:0", Admin: "localhost:0", Denials: "opaque", Record: "none", Sessions: 10000,
		Hosts: []string{"mcp.example.com", "mcp.example.com:8443", "[::1]"}, DecideURL: "https://a.example.com/#/runs/{run_id}?of={run_id}",
		Hold: 600_000, OnPending: "error", Expose: []Exposure{{"docs", byDefault, SessionsIdentity}},
		ServerSessions: 3, Held: 2,
	}
	if diff := cmp.Diff(want, written.Serve); diff != "" {
		t.Errorf("Serve as written (-want +got):\n%s", diff)
	}
	if a, b := digestOf(t, plain), digestOf(t, written); a != b {
		t.Errorf("how the gateway works changes the bundle: %s, %s", a, b)
	}
	if got, want := written.Serve.DecideAt("r1"), "https://a.example.com/#/runs/r1?of=r1"; got != want {
		t.Errorf("DecideAt = %q, want %q", got, want)
	}
	if got := plain.Serve.DecideAt("r1"); got != "" {
		t.Errorf("DecideAt without a decide_url = %q, want nothing", got)
	}
}

// TestServeBounds has each key at its limit and one past it.
func TestServeBounds(t *testing.T) {
	host := func(n int) string { return strings.Repeat("a", n) }
	hosts := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("h%d", i))
		}
		return strings.Join(all, ", ")
	}
	path := func(n int) string { return "https://h/" + strings.Repeat("a", n-len("https://h/")) }
	for _, c := range []struct{ name, good, bad, says string }{
		{"sessions", "serve: {sessions: 1}", "serve: {sessions: 0}", "it must be 1 to 10000"},
		{"sessions-most", "serve: {sessions: 10000}", "serve: {sessions: 10001}", "it must be 1 to 10000"},
		{"hold", "approvals: {hold: 10m}", "approvals: {hold: 10m1ms}", "it must be 0s to 10m"},
		{"remind-before", "approvals: {remind_before: 24h}", "approvals: {remind_before: 24h1s}", "it must be 0s to 24h"},
		{"hold-least", "approvals: {hold: 0s}", "approvals: {hold: -1s}", "is not a duration"},
		{"catalog-age", "catalog_max_age: 1h", "catalog_max_age: 1h1ms", "it must be 0s to 1h"},
		{"hosts", "serve: {hosts: [" + hosts(64) + "]}", "serve: {hosts: [" + hosts(65) + "]}", "at most 64"},
		{"host", "serve: {hosts: [" + host(253) + "]}", "serve: {hosts: [" + host(254) + "]}", "is not a host name"},
		{"host-and-port", "serve: {hosts: [\"" + host(253) + ":65535\"]}", "serve: {hosts: [\"" + host(254) + ":65535\"]}", "at most 259"},
		{"decide-url", "serve: {decide_url: \"" + path(2048) + "\"}", "serve: {decide_url: \"" + path(2049) + "\"}", "at most 2048"},
		{"port", "serve: {listen: \"127.0.0.1:65535\"}", "serve: {listen: \"127.0.0.1:65536\"}", "is not HOST:PORT"},
		{"port-least", "serve: {listen: \"127.0.0.1:0\"}", "serve: {listen: \"127.0.0.1:-1\"}", "is not HOST:PORT"},
		{"ports-that-differ", "serve: {listen: \"127.0.0.1:7000\", admin: \"127.0.0.1:7001\"}",
			"serve: {listen: \"127.0.0.1:7000\", admin: \"127.0.0.1:7000\"}", "are one address"},
		{"free-ports", "serve: {listen: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}",
			"serve: {admin: \"127.0.0.1:8787\"}", "are one address"},
		{"addresses-that-differ", "serve: {listen: \"127.0.0.1:7000\", admin: \"[::1]:7000\"}",
			"serve: {listen: \"127.0.0.1:7000\", admin: \"LOCALHOST:7000\"}", "are one address"},
		{"tls", `serve: {listen: "0.0.0.0:1", public_url: "https://mcp.example.com", tls: {cert: c, key: k}}`,
			`serve: {listen: "0.0.0.0:1", public_url: "https://mcp.example.com"}`, "serve.listen is refused: it can be reached from other machines"},
		{"tls-of-admin", `serve: {admin: "0.0.0.0:1", admin_url: "https://mcp.example.com:1", tls: {cert: c, key: k, client_ca: a}}`,
			`serve: {admin: "0.0.0.0:1", public_url: "https://mcp.example.com", tls: {cert: c, key: k}}`, "serve.admin_url is missing"},
		{"tls-on-this-machine", "serve: {tls: {cert: c, key: k}}", "serve: {tls: {cert: c}}", "key"},
		{"public-url", `serve: {public_url: "http://localhost:1"}`, `serve: {public_url: "http://mcp.example.com"}`, "is http and leaves this machine"},
		{"public-url-alone", `serve: {public_url: "https://[::1]"}`, `serve: {public_url: "https://mcp.example.com/"}`, "has more than a scheme, a host and a port"},
		{"admin-url", `serve: {admin_url: "https://h:65535"}`, `serve: {admin_url: "https://u:p@h"}`, "user name or password"},
		{"decide-url-of-this-machine", "serve: {decide_url: \"http://127.0.0.1:9464/{run_id}\"}",
			"serve: {decide_url: \"http://192.0.2.1:9464/{run_id}\"}", "leaves this machine"},
		{"decide-url-with-a-dollar", "serve: {decide_url: \"https://h/$/{run_id}\"}", "serve: {decide_url: \"https://h/${run_id}\"}",
			"has braces that are not those of {run_id}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := loadServe(t, c.good+"\n"); err != nil {
				t.Errorf("Load at the limit: %v", err)
			}
			if _, err := loadServe(t, c.bad+"\n"); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Load one past = %v, want %q in it", err, c.says)
			}
		})
	}
}

// TestListenStaysOnThisMachine: an address that is not certainly of this machine is none to listen on.
func TestListenStaysOnThisMachine(t *testing.T) {
	for _, c := range []struct {
		address string
		says    string // of the refusal; empty: accepted
	}{
		{"127.0.0.1:8787", ""}, {"127.255.0.1:1", ""}, {"[::1]:8787", ""}, {"localhost:8787", ""}, {"LocalHost:0", ""},
		{"[::ffff:127.0.0.1]:1", ""},
		{"0.0.0.0:8787", "other machines"}, {"[::]:8787", "other machines"}, {"192.168.0.1:8787", "other machines"},
		{"[::ffff:10.0.0.1]:1", "other machines"}, {"gateway.example.com:8787", "other machines"},
		{"localhost.example.com:1", "other machines"}, {"127.1:80", "other machines"}, {"0x7f000001:80", "other machines"},
		{":8787", "HOST:PORT"}, {"127.0.0.1", "HOST:PORT"}, {"127.0.0.1:", "HOST:PORT"}, {"127.0.0.1:http", "HOST:PORT"},
		{"127.0.0.1:08787", "HOST:PORT"}, {"127.0.0.1:+1", "HOST:PORT"}, {"::1:8787", "HOST:PORT"}, {"[::1:8787", "HOST:PORT"},
		{"[127.0.0.1]:1", "HOST:PORT"}, {"[]:1", "HOST:PORT"}, {"http://127.0.0.1:1", "HOST:PORT"}, {"", "is empty"},
	} {
		_, err := loadServe(t, fmt.Sprintf("serve: {listen: %q, admin: \"127.0.0.1:7999\"}\n", c.address))
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("Load of %q: %v, want %q in it", c.address, err, c.says)
		}
	}
}

// TestOriginsAreNormal: clients compare the URLs of the gateway with those that they use.
func TestOriginsAreNormal(t *testing.T) {
	for from, want := range map[string]string{
		"https://MCP.Example.com:443": "https://mcp.example.com", "https://mcp.example.com:8443": "https://mcp.example.com:8443",
		"http://LOCALHOST:80": "http://localhost", "http://localhost:443": "http://localhost:443", "https://[::1]:443": "https://[::1]",
	} { // in any order
		l, err := loadServe(t, fmt.Sprintf("serve: {public_url: %q, admin_url: %q}\n", from, from))
		if err != nil || l.Serve.PublicURL != want || l.Serve.AdminURL != want {
			t.Errorf("Load of %s = %+v, %v, want %s", from, l.Serve, err, want)
		}
	}
}

// TestExpose: what passes is what this file says, in the file's order of servers, and never what a client's file says.
func TestExpose(t *testing.T) {
	const entry = `{"command": "a", "expose": "all"}`
	digest := canonical.Sum("mcp server", canonicalJSON([]byte(entry)))
	config := fmt.Sprintf(`version: 1
allowlist: allow.json
mcp_servers: m.json
servers:
  zeta: {command: a, expose: all}
  none: {command: a, sessions: one, expose: []}
  some: {command: a, sessions: session, expose: [roots, input_required]}
  unsaid: {command: a}
  theirs: {digest: %[1]q}
  listed: {digest: %[1]q, timeout: 1s, sessions: session, expose: [tools]}
`, digest)
	l, err := Load("c.yaml", openMap(map[string]string{
		"c.yaml": config, "allow.json": "{}", "m.json": `{"mcpServers": {"theirs": ` + entry + `, "listed": ` + entry + `}}`,
	}), Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	want := []Exposure{
		{"zeta", Exposable(), SessionsIdentity}, {"none", []string{}, SessionsOne}, {"some", []string{"roots", "input_required"}, SessionsSession},
		{"unsaid", byDefault, SessionsIdentity}, {"theirs", byDefault, SessionsIdentity}, {"listed", []string{"tools"}, SessionsSession},
	}
	if diff := cmp.Diff(want, l.Serve.Expose); diff != "" {
		t.Errorf("Expose (-want +got):\n%s", diff)
	}
	for i, s := range l.Content.Servers {
		if s.Name != want[i].Server {
			t.Errorf("server %d is %s, and its exposure is of %s", i, s.Name, want[i].Server)
		}
	}
}
