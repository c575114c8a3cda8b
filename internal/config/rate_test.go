package config

import "testing"

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
