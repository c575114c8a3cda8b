package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// loadRate loads a configuration of two servers with limits.rate.
func loadRate(t *testing.T, rate string, over Overrides) (*Loaded, error) {
	t.Helper()
	return Load("c.yaml", openMap(map[string]string{
		"c.yaml": `version: 1
servers: {crm: {url: "https://crm.example.com/mcp"}, docs: {url: "https://docs.example.com/mcp"}}
allowlist: {default: allow.json, groups: {oncall: oncall.json}}
` + rate,
		"allow.json": `{"crm": ["read"]}`, "oncall.json": `{"crm": ["delete"]}`, "other.json": `{"crm": ["read"]}`, "broken.json": `{`,
	}), over)
}

// TestRate: a key that is not written limits nothing, the burst is that of a minute, and the order of groups is that of the file.
func TestRate(t *testing.T) {
	for _, tt := range []struct {
		name, written string
		want          *Rate
	}{
		{"none", "limits: {plan_bytes: 100}\n", nil},
		{"empty", "limits: {rate: {}}\n", &Rate{Identity: RateLimit{NoLimit, NoLimit, NoLimit}}},
		{"each-kind", `limits:
  rate:
    identity: {per_minute: 60, burst: 10, at_once: 4}
    groups: {oncall: {per_minute: 600}, batch: {at_once: 1}}
    servers: {docs: {per_minute: 1000000, burst: 1}, crm: {per_minute: 300, at_once: 10000}}
    tools: {crm: {delete: {per_minute: 1}, read: {per_minute: 5, burst: 1000000}}}
`, &Rate{
			Identity: RateLimit{60, 10, 4},
			Groups:   []GroupRate{{"oncall", RateLimit{600, 600, NoLimit}}, {"batch", RateLimit{NoLimit, NoLimit, 1}}},
			Servers:  []ServerRate{{"docs", RateLimit{1_000_000, 1, NoLimit}}, {"crm", RateLimit{300, 300, 10_000}}},
			Tools:    []ToolRate{{"crm", "delete", RateLimit{1, 1, NoLimit}}, {"crm", "read", RateLimit{5, 1_000_000, NoLimit}}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := loadRate(t, tt.written, Overrides{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, l.Serve.Rate); diff != "" {
				t.Errorf("Serve.Rate (-want +got):\n%s", diff)
			}
			if len(l.Warnings) > 0 {
				t.Errorf("warnings: %q", l.Warnings)
			}
		})
	}
}

// TestRateOfATool: the allowlist of the configuration has the names of tools, unless it cannot be read or a flag names another one.
func TestRateOfATool(t *testing.T) {
	const limit = "limits: {rate: {tools: {crm: {delete: {per_minute: 5}}}}}\n"
	for _, tt := range []struct {
		name, written string
		over          Overrides
		good          bool
	}{
		{"allowed-to-a-group", limit, Overrides{}, true},
		{"of-another-server", "limits: {rate: {tools: {docs: {delete: {per_minute: 5}}}}}\n", Overrides{}, false},
		{"another-allowlist", limit, Overrides{Allowlist: "other.json"}, true},
		{"another-allowlist-that-is-broken", limit, Overrides{Allowlist: "broken.json", Closed: true}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := loadRate(t, tt.written, tt.over); (err == nil) != tt.good {
				t.Errorf("Load: %v", err)
			}
		})
	}
}

// TestRateAboveAnother: a tool's limit that its server's limit never lets it reach can hardly be meant.
func TestRateAboveAnother(t *testing.T) {
	for _, tt := range []struct {
		name, written string
		want          []string
	}{
		{"equal", "limits: {rate: {servers: {crm: {per_minute: 5, at_once: 2}}, tools: {crm: {read: {per_minute: 5, at_once: 2}}}}}\n", nil},
		{"only-the-server's", "limits: {rate: {servers: {crm: {per_minute: 5}}, tools: {crm: {read: {at_once: 2}}}}}\n", nil},
		{"another-server's", "limits: {rate: {servers: {docs: {per_minute: 5}}, tools: {crm: {read: {per_minute: 6}}}}}\n", nil},
		{"above", "limits: {rate: {servers: {crm: {per_minute: 5, at_once: 2}}, tools: {crm: {read: {per_minute: 6, at_once: 3}}}}}\n",
			[]string{`c.yaml:4:82: the limit of the tool "read" of "crm" is above that of its server: per_minute, at_once`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := loadRate(t, tt.written, Overrides{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, l.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
