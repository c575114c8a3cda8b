package gates

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/corpus"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// decisionTrials compares the decisions of risk rules and policies with a table.
func decisionTrials(e *evaluation) ([]trial, error) {
	return trialsOf("decisions", func(c *corpus.Decision) (t trial, err error) {
		input, err := inputOf(&c.Call)
		var rated *risk.Content
		if err == nil && len(c.Risk) > 0 {
			err = canonical.Unmarshal(c.Risk, &rated)
		}
		if err != nil {
			return t, fmt.Errorf("%s: %w", c.ID, err)
		}
		policies, err := json.Marshal(c.Policies)
		return trial{c.ID, c.Want, policies,
			func(policies []byte) string { return e.decisionText(policies, rated, input) }}, err
	})
}

// decisionText compiles policies and lets them decide. It writes the decision on one line.
func (e *evaluation) decisionText(policies []byte, rated *risk.Content, in *condition.Input) string {
	var list []rules.Policy
	if err := canonical.Unmarshal(policies, &list); err != nil {
		return "no policies: " + err.Error()
	}

	c := plainContent()
	c.Roles = []policy.Role{{Role: "clerks", Actors: []string{"carol", "dora"}},
		{Role: "owners", Actors: []string{"bob"}}}
	c.Risk, c.Policy = rated, &rules.Content{Policies: list}
	b, err := policy.Compile(c)
	if err != nil {
		return "refused: " + err.Error()
	}

	input := *in
	input.Actor.Roles = b.RolesOf(in.Actor.ID, nil)
	a := e.subject.assess(b, &input)
	word := string(a.Verdict.Code)
	if a.Verdict.Allows() {
		word = rules.Allow
	}

	if a.Policy != "" {
		word += " by " + a.Policy
	}

	if rated != nil {
		word += fmt.Sprintf(", %s %d", a.Mode, a.Score)
	}

	return word
}

// inputOf is a call in the form that conditions take.
func inputOf(c *corpus.Call) (*condition.Input, error) {
	args := []byte("{}")
	if len(c.Args) > 0 {
		var err error
		if args, err = canonical.JSON(c.Args); err != nil {
			return nil, err
		}
	}
	return &condition.Input{
		Server:      cmp.Or(c.Server, serverKB),
		Tool:        cmp.Or(c.Tool, toolFetch),
		Env:         cmp.Or(c.Env, "eval"),
		Now:         cmp.Or(c.Now, asked),
		Args:        args,
		Actor:       condition.Actor{ID: cmp.Or(c.Actor, "carol")},
		Annotations: condition.Annotations{ReadOnly: c.Hint},
		Pinned:      c.Pinned,
	}, nil
}
