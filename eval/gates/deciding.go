package gates

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// A policyCase is risk rules, policies, a call, and the right decision.
type policyCase struct {
	ID       string           `json:"id"`
	Want     string           `json:"want"`  // allow, or a code
	By       string           `json:"by"`    // the policy that must decide; empty: none matches
	Mode     string           `json:"mode"`  // the risk mode; only where there are risk rules
	Score    int              `json:"score"` // likewise
	Policies []jsontext.Value `json:"policies"`
	Risk     *risk.Content    `json:"risk"`
	Call     policyCall       `json:"call"`
}

// A policyCall is the call that is decided about. Empty members have the world's values.
type policyCall struct {
	Server string         `json:"server"`
	Tool   string         `json:"tool"`
	Env    string         `json:"env"`
	Actor  string         `json:"actor"`
	Now    string         `json:"now"`
	Args   jsontext.Value `json:"args"`
	Hint   *bool          `json:"read_only"`
	Pinned bool           `json:"pinned"`
}

// deciding compares the decisions of risk rules and policies with a table.
func deciding(e *evaluation) (Suite, error) {
	cases, err := load[policyCase]("policy")
	if err != nil {
		return Suite{}, err
	}
	var trials []trial
	for i := range cases {
		c := &cases[i]
		in, err := c.Call.input()
		if err != nil {
			return Suite{}, fmt.Errorf("%s: %w", c.ID, err)
		}
		input, err := json.Marshal(c.Policies)
		if err != nil {
			return Suite{}, err
		}
		trials = append(trials, trial{c.ID, c.wanted(), input, func(policies []byte) string { return e.decides(policies, c.Risk, in) }})
	}
	return e.table("calls that risk rules and policies decide about", trials), nil
}

// wanted is the right answer.
func (c *policyCase) wanted() string {
	return answered(c.Want, c.By, c.Risk != nil, c.Mode, c.Score)
}

func answered(word, by string, rated bool, mode string, score int) string {
	s := word
	if by != "" {
		s += " by " + by
	}
	if rated {
		s += fmt.Sprintf(", %s %d", mode, score)
	}
	return s
}

// decides compiles policies and lets them decide.
func (e *evaluation) decides(policies []byte, rated *risk.Content, in *condition.Input) string {
	var all []rules.Policy
	if err := canonical.Unmarshal(policies, &all); err != nil {
		return "no policies: " + err.Error()
	}
	c := content()
	c.Roles = []policy.Role{{Role: "clerks", Actors: []string{"carol", "dora"}}, {Role: "owners", Actors: []string{"bob"}}}
	c.Risk, c.Policy = rated, &rules.Content{Policies: all}
	b, err := policy.Compile(c)
	if err != nil {
		return "refused: " + err.Error()
	}
	asks := *in
	asks.Actor.Roles = b.RolesOf(in.Actor.ID, nil)
	a := e.subject.assess(b, &asks)
	word := string(a.Verdict.Code)
	if a.Verdict.Allows() {
		word = rules.Allow
	}
	return answered(word, a.Policy, rated != nil, a.Mode, a.Score)
}

// input is the call in the form that conditions take.
func (c *policyCall) input() (*condition.Input, error) {
	or := func(s, otherwise string) string {
		if s == "" {
			return otherwise
		}
		return s
	}
	args := []byte("{}")
	if len(c.Args) > 0 {
		var err error
		if args, err = canonical.JSON(c.Args); err != nil {
			return nil, err
		}
	}
	return &condition.Input{
		Server: or(c.Server, serverKB), Tool: or(c.Tool, toolFetch), Env: or(c.Env, "eval"), Now: or(c.Now, asked), Args: args,
		Actor: condition.Actor{ID: or(c.Actor, "carol")}, Annotations: condition.Annotations{ReadOnly: c.Hint}, Pinned: c.Pinned,
	}, nil
}
