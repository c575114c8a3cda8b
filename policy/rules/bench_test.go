package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cedar-policy/cedar-go"

	"pgfsm/internal/glob"
	"pgfsm/policy/condition"
)

// benched is n policies of which only the last fits the benchmark's call: the others fail on the server's glob (narrow)
// or, where that is *, on the tool's (wide).
func benched(shape string, n int) []Policy {
	policies := make([]Policy, n)
	for i := range policies {
		name := fmt.Sprintf("team-%d-*", i)
		policies[i] = Policy{ID: fmt.Sprint("p", i), Match: Match{Server: name, Tool: "*", Env: "*"}, Effect: Allow, Reason: "It may."}
		if shape == "wide" {
			policies[i].Match = Match{Server: "*", Tool: name, Env: "*"}
		}
	}
	policies[n-1].Match = Match{Server: "billing-*", Tool: "pay_*", Env: "*"}
	policies[n-1].When = benchedCondition
	return policies
}

const benchedCondition = "args.amount <= 1000 && risk.mode != 'danger'"

var benchedCall = condition.Input{Server: "billing-eu", Tool: "pay_invoice", Env: "prod", Now: "2026-11-21T00:00:00Z",
	Args: []byte(`{"amount":250,"currency":"EUR","invoice":"2026-117"}`), Risk: condition.Risk{Score: 50, Mode: "review"}}

// A contestant decides about the benchmark's call by n policies. If ready, the arguments were decoded before; otherwise
// they are decoded for each call, as they must be when each is another.
type contestant func(tb testing.TB, shape string, n int, ready bool) func() bool

// subjects returns what gives each call its subject.
func subjects(ready bool) func() *condition.Subject {
	in := benchedCall
	kept := condition.NewSubject(&in)
	return func() *condition.Subject {
		if ready {
			return kept.WithBudget(condition.MaxDecision, condition.MaxTrial)
		}
		return condition.NewSubject(&in)
	}
}

func ours(tb testing.TB, shape string, n int, ready bool) func() bool {
	s, subject := mustCompile(tb, benched(shape, n)...), subjects(ready)
	return func() bool { return s.Decide(subject()).Effect == Allow }
}

// byHand is what one would write for these policies and no others: a loop over globs, and one CEL program.
func byHand(tb testing.TB, shape string, n int, ready bool) func() bool {
	type rule struct {
		server, tool, env *glob.Glob
		when              *condition.Program
	}
	env, err := condition.PolicyEnv()
	if err != nil {
		tb.Fatal(err)
	}
	compile := func(pattern string) *glob.Glob {
		g, err := glob.Compile(pattern)
		if err != nil {
			tb.Fatal(err)
		}
		return g
	}
	var rules []rule
	for _, p := range benched(shape, n) {
		r := rule{server: compile(p.Match.Server), tool: compile(p.Match.Tool), env: compile(p.Match.Env)}
		if p.When != "" {
			if r.when, err = env.Bool(p.When); err != nil {
				tb.Fatal(err)
			}
		}
		rules = append(rules, r)
	}
	in, subject := benchedCall, subjects(ready)
	return func() bool {
		sub := subject()
		for i := range rules {
			r := &rules[i]
			if !r.server.Match(in.Server) || !r.tool.Match(in.Tool) || !r.env.Match(in.Env) {
				continue
			}
			if r.when == nil {
				return true
			}
			if yes, err := r.when.True(sub); yes && err == nil {
				return true
			}
		}
		return false
	}
}

// inCedar is the same policies in Cedar, without `like "*"`, which would only cost it time.
func inCedar(tb testing.TB, shape string, n int, ready bool) func() bool {
	var text strings.Builder
	for _, p := range benched(shape, n) {
		var all []string
		for _, one := range [][2]string{{"server", p.Match.Server}, {"tool", p.Match.Tool}, {"env", p.Match.Env}} {
			if one[1] != "*" {
				all = append(all, fmt.Sprintf("context.%s like %q", one[0], one[1]))
			}
		}
		if p.When != "" {
			all = append(all, `context.args.amount <= 1000 && context.mode != "danger"`)
		}
		fmt.Fprintf(&text, "permit (principal, action, resource) when { %s };\n", strings.Join(all, " && "))
	}
	policies, err := cedar.NewPolicySetFromBytes("bench.cedar", []byte(text.String()))
	if err != nil {
		tb.Fatal(err)
	}
	request := func() cedar.Request {
		var args cedar.Record
		if err := args.UnmarshalJSON(benchedCall.Args); err != nil {
			tb.Fatal(err)
		}
		return cedar.Request{Principal: cedar.NewEntityUID("Actor", "a"), Action: cedar.NewEntityUID("Action", "call"),
			Resource: cedar.NewEntityUID("Tool", "pay_invoice"), Context: cedar.NewRecord(cedar.RecordMap{
				"server": cedar.String(benchedCall.Server), "tool": cedar.String(benchedCall.Tool),
				"env":  cedar.String(benchedCall.Env),
				"mode": cedar.String(benchedCall.Risk.Mode), "args": args,
			})}
	}
	req, entities := request(), cedar.EntityMap{}
	return func() bool {
		if !ready {
			req = request()
		}
		decision, _ := cedar.Authorize(policies, entities, req)
		return decision == cedar.Allow
	}
}

// BenchmarkRatios measures in turns, so that a machine whose speed drifts does not change the ratios, and takes the
// median turn of each, so that neither do others who use the machine: 50 policies of which the first 49 fail on their
// globs and the last has a condition, against a loop written for them and against Cedar; and 1,000 such policies
// against 50. The bars are 1.5, 0.6 and 3.
func BenchmarkRatios(b *testing.B) {
	for _, shape := range []string{"narrow", "wide"} {
		for _, ready := range []bool{true, false} {
			name := shape + "/args-in-bytes"
			if ready {
				name = shape + "/args-decoded"
			}
			b.Run(name, func(b *testing.B) {
				contestants := []func() bool{ours(b, shape, 50, ready), byHand(b, shape, 50, ready),
					inCedar(b, shape, 50, ready), ours(b, shape, 1000, ready)}
				took := make([][]time.Duration, len(contestants))
				const turns = 50
				for b.Loop() {
					for i, decide := range contestants {
						start := time.Now()
						for range turns {
							if !decide() {
								b.Fatalf("contestant %d did not allow the call", i)
							}
						}
						took[i] = append(took[i], time.Since(start))
					}
				}
				median := func(i int) float64 {
					slices.Sort(took[i])
					return float64(took[i][len(took[i])/2])
				}
				ratio := func(i, j int) float64 { return median(i) / median(j) }
				b.ReportMetric(median(0)/turns, "ns/50")
				b.ReportMetric(ratio(0, 1), "50/loop")
				b.ReportMetric(ratio(0, 2), "50/cedar")
				b.ReportMetric(ratio(3, 0), "1000/50")
			})
		}
	}
}

// The contestants agree, so that the same is measured: on the benchmark's call, and that another one is denied.
func TestBenchmarkContestantsAgree(t *testing.T) {
	before := benchedCall
	defer func() { benchedCall = before }()
	for _, tc := range []struct {
		name   string
		change func(*condition.Input)
		want   bool
	}{
		{"as-it-is", func(*condition.Input) {}, true},
		{"too-much", func(in *condition.Input) { in.Args = []byte(`{"amount":1001}`) }, false},
		{"danger", func(in *condition.Input) { in.Risk.Mode = "danger" }, false},
		{"another-server", func(in *condition.Input) { in.Server = "sales" }, false},
		{"another-tool", func(in *condition.Input) { in.Tool = "refund" }, false},
	} {
		benchedCall = before
		tc.change(&benchedCall)
		for _, shape := range []string{"narrow", "wide"} {
			for i, c := range []contestant{ours, byHand, inCedar} {
				for _, ready := range []bool{false, true} {
					if got := c(t, shape, 50, ready)(); got != tc.want {
						t.Errorf("%s, %s: contestant %d says %t, want %t", tc.name, shape, i, got, tc.want)
					}
				}
			}
		}
	}
}
