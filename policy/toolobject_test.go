package policy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/schema"
	"pgfsm/states/statestest"
)

// oddTools is the corpus of tool objects. TestInteropOddTools of e2e gives it to the clients of the TypeScript SDK. A verdict is kept, refused (pgfsm
// cannot use its inputSchema), sdk (the SDK rejects it, MCP does not), sdk-old (likewise, before Node 23), cautious (the gateway takes it for sdk,
// and the SDK accepts it) or not-mcp.
func oddTools(t *testing.T) (corpus []struct {
	Verdict string         `json:"verdict"`
	Tool    jsontext.Value `json:"tool"`
}) {
	t.Helper()
	text, err := os.ReadFile("../interop/fixtures/odd-tools.json")
	if err == nil {
		err = json.Unmarshal(text, &corpus)
	}
	check.NoError(t, err)
	return corpus
}

func TestOddTools(t *testing.T) {
	for _, odd := range oddTools(t) {
		listings := statestest.Listings(page(string(odd.Tool)))
		s := statestest.MustBundle(statestest.Content(), nil).Catalog(canonical.Sum("catalog", odd.Tool), listings).Servers[0]
		got := "not-mcp"
		if len(s.Tools) == 1 {
			got = "kept"
			if code, _ := s.Tools[0].Refused(); code == policy.CodeSchemaRefused {
				got = "refused"
			} else if s.Tools[0].SDKFaults() != "" {
				got = "sdk"
			}
		}
		want := odd.Verdict
		if want == "cautious" || want == "sdk-old" {
			want = "sdk"
		}
		if got != want {
			t.Errorf("%s is %s, want %s; left out: %+v", odd.Tool, got, want, s.LeftOut)
		}
	}
}

// TestJoinedNames: a tool whose joined name is long says so.
func TestJoinedNames(t *testing.T) {
	for _, tc := range []struct {
		length int
		want   string
	}{{64, ""}, {65, "its name on /mcp has 65 bytes"}, {128, "its name on /mcp has 128 bytes"}, {129, "not on /mcp: its name there would have 129 bytes"}} {
		name := strings.Repeat("x", tc.length-len(statestest.Server+"__"))
		tool := catalog(t, page(`{"name":"`+name+`","inputSchema":{"type":"object"}}`)).Servers[0].Tools[0]
		if got := tool.Joined(); !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("a name of %d bytes: %q, want %q", tc.length, got, tc.want)
		}
	}
}

// TestLargePatternsAreNotRead: a server chooses its patterns, and a parser takes many times their size.
func TestLargePatternsAreNotRead(t *testing.T) {
	limits := schema.DefaultLimits()
	for _, tc := range []struct {
		size int
		want string
	}{{limits.PatternBytes, ""}, {limits.PatternBytes + 1, "is not one of ECMA 262"}, {limits.Bytes, "it has more than"}} {
		tool := catalog(t, page(`{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"x":{"type":"string","pattern":"`+
			strings.Repeat("a", tc.size)+`"}}}}`)).Servers[0].Tools[0]
		if got := tool.SDKFaults(); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("a pattern of %d bytes: %.200q, want %q", tc.size, got, tc.want)
		}
	}
}
