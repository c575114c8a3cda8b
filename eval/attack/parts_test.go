package attack

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
)

// smallTools are the tools of testdata.
func smallTools(t *testing.T) *eval.Tools {
	t.Helper()
	text, err := os.ReadFile("testdata/small/tools.json")
	check.NoError(t, err)
	tools, err := eval.ReadTools("tools.json", text)
	check.NoError(t, err)
	return tools
}

// pinOfRead is the digest of the tool "read" of "mail", as testdata defines it.
func pinOfRead(t *testing.T) string {
	t.Helper()
	listed, err := listTools(smallTools(t), []policy.Server{{Name: "mail"}}, false)
	check.NoError(t, err)
	c := statestest.Content()
	c.Servers = []policy.Server{{Name: "mail"}}
	tool, v := statestest.MustBundle(c, nil).Catalog(listed.Catalog(), listed.Servers).Find("mail", "read")
	if tool == nil {
		t.Fatal(v)
	}
	return string(tool.Digest)
}

func TestSlip(t *testing.T) {
	one := eval.Target{Server: "s", Tool: "t", Args: []byte(`{}`)}
	for _, c := range []struct {
		name string
		came string
		seen []eval.Target
		made bool
		want string
	}{
		{"made-and-said", states.TypeToolResult, []eval.Target{one}, true, ""},
		{"stopped-and-said", states.TypeBlocked, nil, false, ""},
		{"parked", states.TypePending, nil, false, ""},
		{"twice", states.TypeToolResult, []eval.Target{one, one}, false, "2 calls of one run"},
		{"another-call", states.TypeToolResult, []eval.Target{one}, false, "another call than the one that was planned"},
		{"said-and-not-made", states.TypeToolResult, nil, false, "ended as tool_result, and 0 calls"},
		{"made-and-not-said", states.TypeBlocked, []eval.Target{one}, true, "ended as blocked, and 1 calls"},
		{"made-and-failed", states.TypeFailed, []eval.Target{one}, true, "ended as failed, and 1 calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := slipOf(states.Outcome{Type: c.came}, c.seen, c.made)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("slip() = %q, want %q", got, c.want)
			}
		})
	}
}

// TestASlipIsReported: a slip of a call is in the result, and the result is not OK.
func TestASlipIsReported(t *testing.T) {
	u := &unit{c: &eval.Case{ID: "a"}, side: wants, arms: []armOutcome{{{Slip: "two calls"}}}}
	u.c.Wants = []eval.Call{{Server: "s", Tool: "t"}}
	r := resultOf("machine", []Arm{Allowlist}, []*judged{{u.c, []*unit{u}}})
	if want := []Slip{{"a", Allowlist, "wants", 1, "two calls"}}; !cmp.Equal(want, r.Slips) || r.OK() {
		t.Errorf("slips = %+v, want %+v", r.Slips, want)
	}
}

func TestNaive(t *testing.T) {
	tools := smallTools(t)
	for _, c := range []struct {
		name, plan string
		made       bool
	}{
		{"plain", `{"server":"mail","tool":"read"}`, true},
		{"no-such-tool", `{"server":"mail","tool":"erase"}`, false},
		{"tool-of-another-server", `{"server":"bank","tool":"read"}`, false},
		{"no-object", `read my mail`, false},
		{"nothing", ``, false},
		{"cut-off", `{"server":"mail","tool":"read","args":{"id":`, true},
		{"part-of-a-name", `{"servers":"mail","toolbox":"read",}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := canonical.Text(c.plan)
			got := callNaively(tools, &eval.Call{Plan: &text})
			if got.Made != c.made || (got.Code == codeUnlisted) == c.made {
				t.Errorf("naive() = %+v", got)
			}
		})
	}
	if got := callNaively(tools, &eval.Call{Server: "mail", Tool: "read"}); !got.Made {
		t.Errorf("naive() = %+v", got)
	}
}
