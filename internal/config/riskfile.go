package config

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/risk"
)

// riskFile holds the content of a file of risk rules.
type riskFile struct {
	Modes   Table[int]
	Initial string
	Vars    Table[string]
	Rules   []struct {
		risk.Rule
		When struct {
			risk.Match
			Args Table[Table[jsontext.Value]]
		}
		Escalate string `json:"escalate"` // replaces the rule's own mode
	}
	SetModeByScore Table[string]
}

// ReadRisk reads a file of risk rules: strict YAML, or strict JSON if its name ends in ".json". The
// content has defaults for missing keys. The error is of type [Errors], and includes the faults of
// [risk.Compile]. Expressions may read the given claims.
func ReadRisk(name string, text []byte, claims ...string) (*risk.Content, *Places, error) {
	f, err := readJudged(name, text, riskSchema(), MaxPolicyFileBytes, "write version: 1 and rules: []")
	if err != nil {
		return nil, nil, err
	}
	var from riskFile
	decode(f.root, &from)
	c := from.riskContent()

	model, err := risk.Compile(c, claims...)
	places := &Places{file: f}
	places.noteFaults(err, model.Programs().Asking())
	if err := f.err(); err != nil {
		return nil, nil, err
	}
	return &c, places, nil
}

// riskContent returns the risk rules. Entry i of each list is entry i of the file's list.
func (f *riskFile) riskContent() (c risk.Content) {
	for _, m := range f.Modes {
		c.Modes = append(c.Modes, risk.Mode{Name: m.Name, Baseline: m.Value})
	}

	c.Initial = cmp.Or(f.Initial, c.Modes[0].Name)
	for _, v := range f.Vars {
		c.Vars = append(c.Vars, risk.Var{Name: v.Name, Expr: v.Value})
	}

	for _, r := range f.Rules {
		rule := r.Rule
		rule.Match, rule.Escalate = r.When.Match, r.Escalate != ""
		for _, arg := range r.When.Args {
			for _, op := range arg.Value {
				rule.Args = append(rule.Args, risk.Predicate{Path: arg.Name, Op: op.Name,
					Value: canonicalJSON(op.Value)})
			}
		}
		c.Rules = append(c.Rules, rule)
	}

	for _, t := range f.SetModeByScore {
		c.ModeByScore = append(c.ModeByScore, risk.Threshold{Mode: t.Name, When: t.Value})
	}

	return c
}
