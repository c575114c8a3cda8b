package condition_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/policy/condition"
)

// FuzzCondition reads any text as an expression and judges any document with it: no panic, no true beside an error, the
// same answer twice, and a place within the expression.
func FuzzCondition(f *testing.F) {
	e := policyEnv(f)
	f.Add(`args.a == 1 && env == 'prod'`, `{"a":1}`)
	f.Add(`args.a > 100 && args.a in [1, args.b] && double(args.b) > 1.5`, `{"a":100.000000000000001,"b":9007199254740993}`)
	f.Add(`history.count("actor", "1h") >= 5 || history.sum("task", "31d", "a.b") + args.a > 0.3`, `{"a":0.1}`)
	f.Fuzz(func(t *testing.T, src, args string) {
		if len(src) > condition.MaxSource+1 || len(args) > 4096 {
			return
		}
		p, err := e.Bool(src)
		if err != nil {
			var at *condition.Error
			if p != nil || !errors.As(err, &at) || at.Line < 1 || at.Column < 1 || at.Problem == "" ||
				at.Line > 1+strings.Count(src, "\n") || strings.Contains(at.Error(), "\n") {
				t.Errorf("Bool(%q) = %v, %#v", src, p, err)
			}
			return
		}
		in := call()
		if doc, err := canonical.JSON([]byte(args)); err == nil {
			in.Args = doc
		}
		s := condition.NewSubject(in)
		got, err := p.True(s)
		if got && err != nil {
			t.Errorf("True(%q) is true beside the error %v", src, err)
		}
		for _, again := range []*condition.Subject{s, condition.NewSubject(in)} {
			if got2, err2 := p.True(again); got2 != got || fmt.Sprint(err2) != fmt.Sprint(err) {
				t.Errorf("True(%q) = %t, %v, then %t, %v", src, got, err, got2, err2)
			}
		}
	})
}
