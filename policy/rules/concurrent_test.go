package rules

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/condition"
)

func TestDecide_ManyAtOnce(t *testing.T) {
	s := mustCompile(t,
		Policy{ID: "trial", Match: Match{Server: "b*"}, Effect: Deny, When: "args.n > 2", Mode: Shadow},
		Policy{ID: "cap", Match: Match{Server: "billing"}, Effect: Allow, Deny: "args.n > 4", RequireApprovalIf: "args.n > 3",
			Approvers: []string{"x"}},
		Policy{ID: "rest", Effect: Deny})
	var inputs []condition.Input
	var want []Decision
	for _, server := range []string{"billing", "bank", "crm"} {
		for n := range 6 {
			in := call(fmt.Sprintf(`{"n":%d}`, n))
			in.Server = server
			inputs, want = append(inputs, in), append(want, s.Decide(fresh(in)))
		}
	}
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 50 {
				for i, in := range inputs {
					if got := s.Decide(fresh(in)); !cmp.Equal(got, want[i]) {
						t.Errorf("Decide(%+v) = %+v, alone %+v", in, got, want[i])
					}
					if got, _ := s.Explain(fresh(in)); !cmp.Equal(got, want[i]) {
						t.Errorf("Explain(%+v) = %+v, alone %+v", in, got, want[i])
					}
				}
			}
		})
	}
	for range 4 {
		workers.Go(func() { mustCompile(t, allow("a"), Policy{ID: "b", Effect: Deny, When: "pinned"}) })
	}
	workers.Wait()
}

// What a decision allocates does not grow with the policies whose globs fail. Each condition that is evaluated allocates
// what CEL reports of it. (The race detector makes pools forget, so it counts wrongly.)
func TestDecide_AllocationsDoNotGrow(t *testing.T) {
	for _, tc := range []struct {
		name  string
		match func(i int) Match
		when  string
	}{
		{"globs-fail", func(i int) Match { return Match{Server: fmt.Sprintf("s%d-*", i)} }, ""},
		{"keys-fit-and-globs-fail", func(int) Match { return Match{Server: "billing*", Tool: "?"} }, ""},
		{"when-is-false", func(int) Match { return Match{} }, "pinned"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var first float64
			for _, n := range []int{10, 100, 1000, MaxPolicies} {
				policies := make([]Policy, n)
				for i := range policies {
					policies[i] = Policy{ID: fmt.Sprint(i), Match: tc.match(i), Effect: Deny, When: tc.when}
				}
				policies[n-1] = Policy{ID: "last", Effect: Allow, When: "args.n == 1", Reason: "That is fine."}
				s, in := mustCompile(t, policies...), call(`{"n":1}`)
				if d := s.Decide(fresh(in)); d.Policy != "last" {
					t.Fatalf("Decide() = %+v, want the last policy to decide", d)
				}
				allocs := testing.AllocsPerRun(100, func() { s.Decide(condition.NewSubject(&in)) })
				if n == 10 {
					first = allocs
				}
				want := first
				if tc.when != "" {
					want += float64(n - 10)
				}
				if allocs > want && !raceEnabled {
					t.Errorf("Decide() allocates %v times with %d policies, want %v", allocs, n, want)
				}
			}
			t.Logf("%v allocations", first)
		})
	}
}
