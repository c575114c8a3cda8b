package e2e

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/mcp/wire"
)

// TestInteropOddTools: no tool of a server costs the clients of the TypeScript SDK the tools of other servers. They reject a whole list for each
// tool of the corpus that is not one of MCP, and the first major version for each with the verdict sdk, too. package policy has the same corpus.
func TestInteropOddTools(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	text, err := os.ReadFile(interopFile(t, "fixtures/odd-tools.json"))
	check.NoError(t, err)
	var corpus []struct {
		Verdict string         `json:"verdict"`
		Tool    jsontext.Value `json:"tool"`
	}
	check.NoError(t, json.Unmarshal(text, &corpus))
	var tools []jsontext.Value
	by := make(map[string][]string) // the names, by verdict
	for _, odd := range corpus {
		tools = append(tools, odd.Tool)
		by[odd.Verdict] = append(by[odd.Verdict], wire.TextMember(odd.Tool, "name"))
	}

	var rejected struct{ V1, V2 []string }
	report := in.runs(t, bytes.NewReader(wire.Array(tools)), interopFile(t, "clients/odd-tools.mjs"))
	check.NoError(t, json.Unmarshal(report, &rejected, json.MatchCaseInsensitiveNames(true)))
	isOld := func(name string) bool { return slices.Contains(by["sdk-old"], name) }
	want := slices.Sorted(slices.Values(slices.Concat(by["sdk"], by["not-mcp"])))
	got := slices.Sorted(slices.Values(slices.DeleteFunc(rejected.V1, isOld)))
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("tools that the SDK's first version rejects (-want +got):\n%s", d)
	}
	for _, name := range slices.Concat(by["kept"], by["refused"], by["cautious"]) {
		if slices.Contains(rejected.V2, name) {
			t.Errorf("the SDK's second version rejects %s", name)
		}
	}

	bad := mcptest.New(t, mcptest.Except("tools/list", `{"tools":`+string(wire.Array(tools))+`}`))
	fine := mcptest.New(t, mcptest.Except("tools/list", `{"tools":[{"name":"fine","inputSchema":{"type":"object"}}]}`))
	names, err := json.Marshal(slices.Concat(by["kept"], by["sdk"], by["sdk-old"], by["cautious"], by["refused"], by["not-mcp"]))
	check.NoError(t, err)
	g := serve(t, clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nallowlist: allowlist.json\nservers: {bad: {url: %q}, ok: {url: %q}}\n", bad.URL, fine.URL),
		"allowlist.json", fmt.Sprintf(`{"ok": ["fine"], "bad": %s}`, names)))
	usable := slices.Concat(by["kept"], by["sdk"], by["sdk-old"], by["cautious"])
	for _, c := range []struct {
		name, script, mode, path string
		bad                      []string
	}{
		{"v1", "sdk-v1", "http", "/mcp", by["kept"]},
		{"v2-legacy", "sdk-v2", "legacy", "/mcp", by["kept"]},
		{"v2-auto", "sdk-v2", "auto", "/mcp", usable},
		{"v2-auto-of-one-server", "sdk-v2", "auto", "/servers/bad/mcp", usable},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, server := []string{"ok__fine"}, ""
			if c.path != "/mcp" {
				want, server = nil, "bad"
			}
			for _, name := range c.bad {
				want = append(want, joined(server, "bad", name))
			}
			slices.Sort(want)
			got := in.drive(t, c.script, c.mode, clientOrder{URL: g.base + c.path}).Tools
			slices.Sort(got)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("tools (-want +got):\n%s", d)
			}
		})
	}
}
