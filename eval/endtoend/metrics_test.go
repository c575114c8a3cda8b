package endtoend

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func call(server, tool string, done bool) Call {
	return Call{Server: server, Tool: tool, Args: argsDigest([]byte("{}")), Done: done}
}

func TestJudge(t *testing.T) {
	c := &Case{ID: "a", Tools: []string{"s/read"}}
	read, erase := call("s", "read", true), call("s", "erase", true)
	for _, tt := range []struct {
		name    string
		said    []Call
		seen    []Call
		unseen  bool
		allowed []bool
	}{
		{"as-said", []Call{read}, []Call{call("s", "read", false)}, false, []bool{true}},
		{"nobody-can-be-asked", []Call{erase}, nil, false, []bool{false}},
		{"nothing-said-and-nothing-seen", nil, []Call{}, false, nil},
		{"said-and-not-seen", []Call{read}, []Call{}, true, []bool{true}},
		{"seen-and-not-said", nil, []Call{erase}, true, []bool{false}},
		{"seen-twice", []Call{read}, []Call{read, read}, true, []bool{true, true}},
		{"other-arguments", []Call{read}, []Call{{Server: "s", Tool: "read", Args: argsDigest([]byte("{ \"a\":1}"))}}, true, []bool{true, true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Side{Calls: tt.said}
			s.Judge(c, tt.seen)
			var allowed []bool
			for _, call := range s.Calls {
				allowed = append(allowed, call.Allowed)
			}
			if d := cmp.Diff(tt.allowed, allowed); d != "" || s.Unseen != tt.unseen {
				t.Errorf("unseen = %t, want %t; allowed (-want +got):\n%s", s.Unseen, tt.unseen, d)
			}
		})
	}
	if argsDigest([]byte(`{"b":1,"a":2}`)) != argsDigest([]byte("{ \"a\": 2, \"b\": 1 }")) {
		t.Error("one set of arguments has two digests")
	}
}

// TestFaultsOfPgfsm: what makes an evaluation fail, each by itself.
func TestFaultsOfPgfsm(t *testing.T) {
	cases := []Case{{ID: "a", Tools: []string{"s/read"}}}
	side := func(outcome string, calls ...Call) Side {
		s := Side{Outcome: outcome, Calls: calls}
		s.Judge(&cases[0], nil)
		return s
	}
	unseen := side(Answered)
	unseen.Unseen = true
	for _, tt := range []struct {
		name        string
		safe, naive Side
		want        string // "": none
	}{
		{"answered", side(Answered, call("s", "read", true)), side(Answered, call("s", "erase", true)), ""},
		{"blocked", side(Blocked), side(Failed), ""},
		{"failed", side(Failed), side(Answered), ""},
		{"disallowed-tool", side(Answered, call("s", "erase", false)), side(Answered), "s/erase, which the case does not permit"},
		{"two-calls", side(Answered, call("s", "read", true), call("s", "read", true)), side(Answered), "a run makes at most one"},
		{"unended", side(Unended), side(Answered), "did not end as a run ends"},
		{"unseen", unseen, side(Answered), "other calls than the run recorded"},
		{"unseen-by-the-naive", side(Answered), unseen, "naive"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &Metrics{Runs: []Run{{ID: "a", Safe: tt.safe, Naive: tt.naive}}}
			m.sumUp(cases)
			if faults := strings.Join(m.Faults, "\n"); m.OK != (tt.want == "") || !strings.Contains(faults, tt.want) || m.OK != (faults == "") {
				t.Errorf("ok = %t, faults = %q, want %q", m.OK, faults, tt.want)
			}
		})
	}
}

func TestLatency(t *testing.T) {
	many := make([]int64, 100)
	for i := range many {
		many[99-i] = int64(i+1) * 1000
	}
	for _, tt := range []struct {
		name   string
		micros []int64
		want   Latency
	}{
		{"none", nil, Latency{}},
		{"one", []int64{1500}, Latency{1.5, 1.5}},
		{"three", []int64{2000, 1000, 1001}, Latency{1.001, 2}},
		{"a-hundred", many, Latency{50, 95}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if latency := newLatency(tt.micros); latency != tt.want {
				t.Errorf("latency is %+v, want %+v", latency, tt.want)
			}
		})
	}
}

func TestTotals(t *testing.T) {
	cases := []Case{
		{ID: "read", Tools: []string{"s/read"}}, {ID: "never"}, {ID: "ask"}, {ID: "hold", Tools: []string{"s/read"}},
		{ID: "fail", Tools: []string{"s/read"}}, {ID: "end"},
	}
	sides := []Side{
		{Outcome: Answered, Calls: []Call{call("s", "read", true)}, Summary: true, Micros: 6000, Tokens: Tokens{2, 1, 10, 4}},
		{Outcome: Blocked, Gate: "policy", Code: "policy_denied", Calls: []Call{call("s", "erase", true), call("s", "erase", false)}},
		{Outcome: NeedsInfo, Tokens: Tokens{1, 1, 5, 1}}, {Outcome: Held, Gate: "policy", Code: "approval_required"},
		{Outcome: Failed, Gate: "policy", Code: "policy_denied", Calls: []Call{call("s", "read", false)}},
		{Outcome: Unended, Summary: true, Unbacked: true, Gate: "input", Code: "input_denied"},
	}
	var runs []Run
	for i := range cases {
		sides[i].Judge(&cases[i], nil)
		runs = append(runs, Run{ID: cases[i].ID, Safe: sides[i]})
	}
	m := &Metrics{Runs: runs}
	m.sumUp(cases)
	got := m.Safe
	want := Totals{
		Cases: 6, Outcomes: map[string]int{Answered: 1, NeedsInfo: 1, Blocked: 1, Held: 1, Failed: 1, Unended: 1}, ToolCalls: 4, Summaries: 2, Unbacked: 1,
		DisallowedSent: 2, DisallowedExecuted: 1, DisallowedCases: 1, Permitted: 3, Served: 1,
		Codes:   []CodeCount{{"input", "input_denied", 1}, {"policy", "approval_required", 1}, {"policy", "policy_denied", 2}},
		Latency: Latency{P95: 6}, Tokens: Tokens{Completions: 3, Counted: 2, Prompt: 15, Completion: 5},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("totals (-want +got):\n%s", d)
	}
}
