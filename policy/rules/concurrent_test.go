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
