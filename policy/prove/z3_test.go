package prove_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"pgfsm/internal/test/tool"
	"pgfsm/policy"
	"pgfsm/policy/prove"
	"pgfsm/policy/rules"
)

// arithmetic is a condition about the arguments n, m and b, and the same for z3.
type arithmetic struct{ cel, smt string }

func randomArithmetic(r *rand.Rand, depth int) arithmetic {
	if depth > 0 {
		x, y := randomArithmetic(r, depth-1), randomArithmetic(r, depth-1)
		switch r.IntN(5) {
		case 0:
			return arithmetic{"!(" + x.cel + ")", "(not " + x.smt + ")"}
		case 1:
			return arithmetic{fmt.Sprintf("(%s) && (%s)", x.cel, y.cel), fmt.Sprintf("(and %s %s)", x.smt, y.smt)}
		case 2:
			return arithmetic{fmt.Sprintf("(%s) || (%s)", x.cel, y.cel), fmt.Sprintf("(or %s %s)", x.smt, y.smt)}
		case 3:
			return arithmetic{fmt.Sprintf("args.b ? (%s) : (%s)", x.cel, y.cel), fmt.Sprintf("(ite b %s %s)", x.smt, y.smt)}
		}
	}
	if r.IntN(5) == 0 {
		return arithmetic{"args.b == true", "b"}
	}
	name, bound := []string{"n", "m"}[r.IntN(2)], r.IntN(12)
	if r.IntN(4) == 0 {
		return arithmetic{fmt.Sprintf("args.%s in [%d, %d]", name, bound, bound+3), fmt.Sprintf("(or (= %[1]s %[2]d) (= %[1]s %[3]d))", name, bound, bound+3)}
	}
	op := []string{"<", "<=", ">", ">=", "=="}[r.IntN(5)]
	return arithmetic{fmt.Sprintf("args.%s %s %d", name, op, bound), fmt.Sprintf("(%s %s %d)", strings.Replace(op, "==", "=", 1), name, bound)}
}

// TestSecondOpinion compares claims about numbers and bools with what z3 says.
func TestSecondOpinion(t *testing.T) {
	z3 := tool.Path(t, "z3", "z3")
	const schema = `{"type":"object","properties":{"n":{"type":"integer","minimum":0,"maximum":10},"m":{"type":"integer","minimum":-5,"maximum":100},"b":{"type":"boolean"}},"required":["n","m","b"]}`
	script := "(declare-const n Int)(declare-const m Int)(declare-const b Bool)(assert (and (>= n 0) (<= n 10) (>= m (- 5)) (<= m 100)))\n"
	var results []string
	for seed := range 200 {
		r := rand.New(rand.NewPCG(uint64(seed), 40))
		content, decision := &rules.Content{}, "0" // a denial, unless a policy matches
		count := 1 + r.IntN(6)
		whens := make([]arithmetic, count)
		for i := range whens {
			whens[i] = randomArithmetic(r, 1+r.IntN(2))
		}
		effects := []string{"deny", "pending", "allow"}
		for i := count - 1; i >= 0; i-- {
			effect := r.IntN(3)
			decision = fmt.Sprintf("(ite %s %d %s)", whens[i].smt, effect, decision)
			content.Policies = append([]rules.Policy{{ID: fmt.Sprint("p", i), When: whens[i].cel, Effect: effects[effect]}}, content.Policies...)
		}
		scope, effect := randomArithmetic(r, 2), r.IntN(3)
		f := newFixture(t, func(c *policy.Content) { c.Policy = content }, schema)
		result := f.prove(t, prove.Claim{ID: "c", Kind: prove.Never, Effect: effects[effect], When: scope.cel})[0]
		results = append(results, map[string]string{prove.Proved: "unsat", prove.Refuted: "sat"}[result.Status])
		script += fmt.Sprintf("(push)(assert (and %s (= %d %s)))(check-sat)(pop)\n", scope.smt, effect, decision)
	}
	cmd := exec.Command(z3, "-in")
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("z3 failed: %v\n%s", err, out)
	}
	said := strings.Fields(string(out))
	if len(said) != len(results) {
		t.Fatalf("z3 has %d answers, want %d:\n%s", len(said), len(results), out)
	}
	count := map[string]int{}
	for i := range said {
		count[said[i]]++
		if said[i] != results[i] {
			t.Errorf("claim %d: z3 says %s, and the proof %q", i, said[i], results[i])
		}
	}
	t.Logf("z3 says %v", count)
}
