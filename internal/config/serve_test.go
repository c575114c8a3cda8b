package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
)

// loadServe loads a configuration of one server with more lines behind it.
func loadServe(t *testing.T, more string) (*Loaded, error) {
	t.Helper()
	return Load("c.yaml", openMap(map[string]string{"c.yaml": minimal + more, "allow.json": "{}"}), Overrides{})
}

// TestServeBounds has addresses and URLs that are just accepted, and such that are just refused.
func TestServeBounds(t *testing.T) {
	for _, c := range []struct{ name, good, bad, says string }{
		{"port", "serve: {listen: \"127.0.0.1:65535\"}", "serve: {listen: \"127.0.0.1:65536\"}", "is not HOST:PORT"},
		{"port-least", "serve: {listen: \"127.0.0.1:0\"}", "serve: {listen: \"127.0.0.1:-1\"}", "is not HOST:PORT"},
		{"free-ports", "serve: {listen: \"127.0.0.1:0\", admin: \"127.0.0.1:0\"}",
			"serve: {admin: \"127.0.0.1:8787\"}", "are one address"},
		{"addresses-that-differ", "serve: {listen: \"127.0.0.1:7000\", admin: \"[::1]:7000\"}",
			"serve: {listen: \"127.0.0.1:7000\", admin: \"LOCALHOST:7000\"}", "are one address"},
		{"tls", `serve: {listen: "0.0.0.0:1", public_url: "https://mcp.example.com", tls: {cert: c, key: k}}`,
			`serve: {listen: "0.0.0.0:1", public_url: "https://mcp.example.com"}`, "serve.listen is refused: it can be reached from other machines"},
		{"tls-of-admin", `serve: {admin: "0.0.0.0:1", admin_url: "https://mcp.example.com:1", tls: {cert: c, key: k, client_ca: a}}`,
			`serve: {admin: "0.0.0.0:1", public_url: "https://mcp.example.com", tls: {cert: c, key: k}}`, "serve.admin_url is missing"},
		{"public-url-alone", `serve: {public_url: "https://[::1]"}`, `serve: {public_url: "https://mcp.example.com/"}`, "is not a URL of a scheme, a host and a port"},
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

// TestReportTime: the time for the report about a call is that of its tool, and otherwise that of the gateway.
func TestReportTime(t *testing.T) {
	c, err := Load("c.yaml", openMap(map[string]string{
		"c.yaml": `version: 1
servers: {claude: {kind: client, tools: builtin, report_within: {Bash: 2h}}, codex: {kind: client, tools: builtin}}
allowlist: allow.json
serve: {report_within: 5m}
`,
		"allow.json": `{"claude": ["Bash", "Read"], "codex": ["Bash"]}`,
	}), Overrides{})
	check.NoError(t, err)
	for _, tt := range []struct {
		server, tool string
		want         time.Duration
	}{
		{"claude", "Bash", 2 * time.Hour},
		{"claude", "Read", 5 * time.Minute},
		{"codex", "Bash", 5 * time.Minute},
	} {
		if got := c.Serve.ReportTime(tt.server, tt.tool); got != tt.want.Milliseconds() {
			t.Errorf("ReportTime(%s, %s) = %d ms, want %s", tt.server, tt.tool, got, tt.want)
		}
	}
}
