package gates

import (
	"context"

	"pgfsm/eval/world"
	"pgfsm/fsm"
	"pgfsm/internal/runner"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/schema"
	"pgfsm/states"
)

// A subject is the gates that are measured. Tests break one of them, to show that its suite counts
// slips.
type subject struct {
	screen   func(b *policy.Bundle, text string) policy.Verdict
	readPlan func(doc []byte, limits policy.Limits) (*policy.Plan, policy.Verdict)
	// play takes a run through the machine.
	play    func(w *world.World, by *runner.Runner, r *states.Run) (states.Outcome, error)
	lock    func(b *policy.Bundle, typed, summary []byte) policy.Verdict
	compile func(t fsm.Table[*states.Run]) error
	// judge compiles a schema and checks a document.
	judge  func(schemaText, doc []byte) error
	assess func(b *policy.Bundle, in *condition.Input) policy.Assessment
}

// realSubject is the subject of [Run].
func realSubject() subject {
	return subject{
		screen:   (*policy.Bundle).Screen,
		readPlan: policy.ReadPlan,
		play: func(w *world.World, by *runner.Runner, r *states.Run) (states.Outcome, error) {
			return w.Run(context.Background(), by, r)
		},
		lock: func(b *policy.Bundle, typed, summary []byte) policy.Verdict {
			_, v := b.Lock(typed, summary)
			return v
		},
		compile: func(t fsm.Table[*states.Run]) error {
			_, err := fsm.Compile(t)
			return err
		},
		judge: func(schemaText, doc []byte) error {
			s, err := schema.Compile(schemaText, schema.DefaultLimits())
			if err != nil {
				return err
			}
			return s.Judge(doc)
		},
		assess: (*policy.Bundle).Assess,
	}
}
