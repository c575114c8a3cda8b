package gates

import (
	"fmt"

	"pgfsm/policy"
)

// A parseCase is a planner's output, and the answer of the strict reader: a type of plan, or a code.
type parseCase struct {
	ID   string `json:"id"`
	Want string `json:"want"`
	written
}

// parsing compares the strict reader of plans (INV-1) with a table.
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
		trials = append(trials, trial{c.ID, c.Want, input, func(in []byte) string {
			p, v := e.subject.readPlan(in, limits)
			if !v.Allows() || p == nil {
				return string(v.Code)
			}
			return p.Type
		}})
	}
	return e.table("outputs of a planner, with the plan or the code that each must get", trials), nil
}
