package ctrl_test

import (
	"bytes"
	"math"
	"os"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/condition"
	"pgfsm/policy/ctrl"
)

// TestAsPython holds what is translated to what Python 3.11 makes of the same expressions: testdata/python.jsonl holds
// random ones, each with a call and its result, null where Python raises. A translation may fail where Python does not,
// but it never gives another number, nor one where Python gives none, unless it is that of and, or and if, which leave
// out what fails.
func TestAsPython(t *testing.T) {
	env, err := condition.RiskEnv([]string{"before", "n"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/python.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var same, fails, refused, more int
	for line := range bytes.Lines(text) {
		var v struct {
			Expr   string         `json:"expr"`
			Args   jsontext.Value `json:"args"`
			Score  float64        `json:"score"`
			N      float64        `json:"n"`
			Result *float64       `json:"result"`
		}
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatal(err)
		}
		r, err := ctrl.Import(withExpression("score_expr", v.Expr))
		if err != nil {
			t.Fatal(err)
		}
		if r.Risk.Rules[0].Escalate {
			refused++
			continue
		}
		p, err := env.Number(r.Risk.Rules[0].ScoreExpr)
		if err != nil {
			t.Fatal(err)
		}
		s := condition.NewSubject(&condition.Input{Env: "prod", Args: v.Args}).WithScore(v.Score)
		s.WithVar("n", v.N)
		got, err := p.Value(s)
		switch {
		case err != nil:
			fails++
			if v.Result != nil {
				t.Logf("%s with %s fails (%v), Python: %v", v.Expr, v.Args, err, *v.Result)
			}
		case v.Result == nil:
			if more++; !bytes.Contains([]byte(v.Expr), []byte(" or ")) && !bytes.Contains([]byte(v.Expr), []byte(" and ")) {
				t.Errorf("%s with %s = %v, want a failure as in Python", v.Expr, v.Args, got)
			}
		case math.Abs(got-*v.Result) > 1e-9*max(1, math.Abs(got)):
			t.Errorf("%s with %s = %v, Python: %v", v.Expr, v.Args, got, *v.Result)
		default:
			same++
		}
	}
	t.Logf("%d the same, %d fail, %d refused, %d left out what fails", same, fails, refused, more)
	if same < 200 || refused > 40 || more > 20 {
		t.Errorf("%d the same, %d refused, %d more: the test says too little", same, refused, more)
	}
}
