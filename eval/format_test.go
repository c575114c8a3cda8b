package eval

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
)

const twoServers = `{"servers":{"b":{"tools":[{"name":"t","inputSchema":{"type":"object"},"_meta":{"x":1}}]},"a":{"tools":[]}}}`

func TestReadTools(t *testing.T) {
	tools, err := ReadTools("tools.json", []byte(twoServers))
	check.NoError(t, err)
	sent, ok := tools.ToolsOf("b")
	if !ok || len(sent) != 1 || string(sent[0]) != `{"name":"t","inputSchema":{"type":"object"},"_meta":{"x":1}}` {
		t.Errorf("Of(b) = %s, %v; want the bytes as they stand", sent, ok)
	}
	if none, ok := tools.ToolsOf("a"); !ok || len(none) != 0 {
		t.Errorf("Of(a) = %s, %v", none, ok)
	}
	if _, ok := tools.ToolsOf("c"); ok || !tools.Lists("b", "t") || tools.Lists("a", "t") || tools.Lists("b", "T") {
		t.Error("a tool is listed where it is not, or is not where it is")
	}
	spaced, err := ReadTools("tools.json", []byte(" "+strings.ReplaceAll(twoServers, ":", ": ")))
	if err != nil || spaced.Digest() != tools.Digest() {
		t.Errorf("another spelling has the digest %s, %v", spaced.Digest(), err)
	}
}

func TestReadToolsRefuses(t *testing.T) {
	servers := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"s%d":{"tools":[]}`, i))
		}
		return `{"servers":{` + strings.Join(all, ",") + `}}`
	}
	tools := func(n int) string {
		return `{"servers":{"s":{"tools":[` + strings.TrimSuffix(strings.Repeat(`{"name":"t"},`, n), ",") + `]}}}`
	}
	for _, c := range []struct{ name, text, want string }{
		{"no-json", `{`, "tools.json: it is no strict JSON"},
		{"no-servers", `{"servers":{}}`, "it names 0 servers"},
		{"unknown-member", `{"servers":{"s":{"tools":[],"x":1}}}`, "it is no tools file"},
		{"server-twice", `{"servers":{"s":{"tools":[]},"s":{"tools":[]}}}`, "no strict JSON"},
		{"no-name", `{"servers":{"s":{"tools":[{"title":"x"}]}}}`, `server "s": tool 1 is no object with a name`},
		{"tool-is-a-text", `{"servers":{"s":{"tools":["x"]}}}`, `server "s": tool 1 is no object with a name`},
		{"server-without-a-name", `{"servers":{"":{"tools":[]}}}`, `server "": its name must have`},
		{"first-fault-in-order", `{"servers":{"z":{"tools":["x"]},"a":{"tools":["x"]}}}`, `server "a"`},
		{"too-deep", `{"servers":{"s":{"tools":[{"name":"t","x":` + strings.Repeat("[", MaxToolsDepth) + strings.Repeat("]", MaxToolsDepth) + `}]}}}`, "too deep"},
		{"one-server-too-many", servers(MaxServers + 1), "it names 65 servers"},
		{"servers-at-the-limit", servers(MaxServers), ""},
		{"one-tool-too-many", tools(MaxTools + 1), "at most 1024 are read"},
		{"tools-at-the-limit", tools(MaxTools), ""},
		{"too-large", strings.Repeat(" ", MaxToolsBytes) + twoServers, "at most 16777216 are read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadTools("tools.json", []byte(c.text))
			var f *Fault
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &f) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error = %v, want %q", err, c.want)
			}
		})
	}
}

func TestCallTarget(t *testing.T) {
	text := func(s string) *canonical.Text { return (*canonical.Text)(new([]byte(s))) }
	for _, c := range []struct {
		name string
		call Call
		want Target
		ok   bool
	}{
		{"a-call", Call{Server: "s", Tool: "t", Args: []byte(`{"a":1}`)}, Target{"s", "t", []byte(`{"a":1}`)}, true},
		{"a-plan", Call{Plan: text(`{"type":"call_tool","server":"s","tool":"t","args":{ "b":2,"a":1 }}`)}, Target{"s", "t", []byte(`{"a":1,"b":2}`)}, true},
		{"a-question", Call{Plan: text(`{"type":"final_answer","answer":"Which?","needs_more_info":true}`)}, Target{}, false},
		{"no-plan", Call{Plan: text("```")}, Target{}, false},
		{"no-words", Call{Plan: text("")}, Target{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := c.call.Target(policy.DefaultLimits())
			if diff := cmp.Diff(c.want, got); diff != "" || ok != c.ok {
				t.Errorf("Target() = %v, %v", got, ok)
			}
			if !ok {
				return
			}
			again := Call{Plan: text(string(c.call.Text()))} // what the planner says means the same
			if back, ok := again.Target(policy.DefaultLimits()); !ok || !back.Equal(got) {
				t.Errorf("Text() = %s", c.call.Text())
			}
		})
	}
	one := Target{"s", "t", []byte(`{"a":1}`)}
	for _, other := range []Target{{"S", "t", one.Args}, {"s", "T", one.Args}, {"s", "t", []byte(`{"a":1.0}`)}} {
		if one.Equal(other) {
			t.Errorf("%v is the same as %v", one, other)
		}
	}
}

// TestWilson holds the interval to published values: R. G. Newcombe, "Two-Sided Confidence Intervals for the Single Proportion",
// Statistics in Medicine 17, 1998, table I, method 3.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}, {29, 29, 0.8830, 1}, {0, 0, 0, 1}, {3, 2, 0, 1}} {
		low, high := Wilson(c.k, c.n)
		if math.Abs(low-c.low) > 5e-5 || math.Abs(high-c.high) > 5e-5 {
			t.Errorf("Wilson(%d, %d) = %.4f, %.4f, want %.4f, %.4f", c.k, c.n, low, high, c.low, c.high)
		}
	}
	if diff := cmp.Diff(Share{K: 1, N: 3, Rate: 0.333333, Low: 0.061492, High: 0.79234}, NewShare(1, 3)); diff != "" {
		t.Errorf("Of(1, 3) (-want +got):\n%s", diff)
	}
	for n := 1; n <= 60; n++ {
		for k := range n + 1 {
			s := NewShare(k, n)
			if m := NewShare(n-k, n); s.Low > s.Rate || s.High < s.Rate || math.Abs(s.Low+m.High-1) > 2e-6 {
				t.Fatalf("Of(%d, %d) = %+v, and its mirror %+v", k, n, s, m)
			}
		}
	}
}
