package gates

import (
	"fmt"

	"pgfsm/policy"
)

// A parseCase is a planner's output and what the strict reader must say of it: a type of plan, or a code.
type parseCase struct {
	ID   string `json:"id"`
	Want string `json:"want"`
	written
}

// parsing holds the strict reader of plans (INV-1) to a table.
func parsing(e *evaluation) (Suite, error) {
	cases, err := load[parseCase]("plan_parse")
	if err != nil {
		return Suite{}, err
	}
	limits := policy.DefaultLimits()
	var trials []trial
	for i := range cases {
		c := &cases[i]
		input, err := c.bytes()
		if err != nil {
			return Suite{}, fmt.Errorf("%s: %w", c.ID, err)
		}
		trials = append(trials, trial{
			id: c.ID, want: c.Want, input: input,
			got: func(in []byte) string {
				p, v := e.subject.readPlan(in, limits)
				if !v.Allows() || p == nil {
					return string(v.Code)
				}
				return p.Type
			},
			known: func(in []byte, got string) bool { return planKnown(in, c.Want, got) },
		})
	}
	return e.table("outputs of a planner, with the plan or the code that each must get", trials), nil
}

// planKnown reports whether want, a type of plan or a code, is right for a smaller plan. Which of two codes is right for it is
// not known.
func planKnown(in []byte, want, got string) bool {
	kinds := map[string]string{policy.PlanCallTool: permitted, policy.PlanFinalAnswer: askedBack}
	if kinds[want] == "" && kinds[got] == "" {
		return false
	}
	is := readShape(in).want
	return kinds[want] == is || kinds[want] == "" && is == refused
}
