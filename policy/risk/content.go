package risk

import "pgfsm/policy/condition"

// MaxScore is the highest score; the lowest is 0.
const MaxScore = 1000

// Unknown is the mode of every call where there is no ladder to name another: that of the zero
// [Model].
const Unknown = "danger"

// ByScore takes the place of a rule's id in a [Contribution] of set_mode_by_score. No rule has this
// id.
const ByScore = "set_mode_by_score"

// Limits of a [Content]. Sizes are in bytes.
const (
	MaxModes      = 16
	MaxVars       = 64
	MaxRules      = 1000
	MaxPredicates = 32 // in one rule
	MaxThresholds = 16 // entries of set_mode_by_score
)

// Content is risk.yaml with every default filled in.
type Content struct {
	Modes       []Mode      `json:"modes"`
	Initial     string      `json:"initial"`
	Vars        []Var       `json:"vars"`
	Rules       []Rule      `json:"rules"`
	ModeByScore []Threshold `json:"set_mode_by_score"`
}

// Mode is one mode; modes are ordered, least severe first.
type Mode struct {
	Name     string `json:"name"`     // letters, digits, "_", "-" and "."
	Baseline int    `json:"baseline"` // the least score in this mode
}

// DefaultModes are the modes if the operator names none.
func DefaultModes() []Mode { return []Mode{{"safe", 0}, {"review", 50}, {"danger", 90}} }

// Var is a named expression that gives a number.
type Var struct {
	Name string `json:"name"`
	Expr string `json:"expr"`
}

// Rule changes mode and score of the calls that it matches.
type Rule struct {
	ID        string      `json:"id"` // unique
	Match     Match       `json:"match"`
	Args      []Predicate `json:"args"`
	SetMode   string      `json:"set_mode,omitzero"`
	Escalate  bool        `json:"escalate,omitzero"`
	ScoreExpr string      `json:"score_expr,omitzero"`
	Reason    string      `json:"reason"` // a sentence for a person
}

// Match holds the globs of a rule. An empty one is "*".
type Match = condition.Match

// Predicate tests one place in the arguments.
type Predicate = condition.Predicate

// Threshold names the mode of the scores for which When is true.
type Threshold struct {
	Mode string `json:"mode"`
	When string `json:"when"` // CEL over score
}

// Contribution is the effect of one rule.
type Contribution struct {
	Failed string `json:"failed"` // the unknown condition and its effect; may be empty
	// false: unknown, and without effect since the rule would not have raised anything.
	Matched bool   `json:"matched"`
	Mode    string `json:"mode"`   // the mode after the rule
	Reason  string `json:"reason"` // the rule's; for [ByScore] the condition that was true
	Rule    string `json:"rule"`   // its id, or [ByScore]
	Score   int    `json:"score"`  // the score after the rule
}

// Assessment is the risk of one call.
type Assessment struct {
	Contributions []Contribution `json:"contributions"`
	Mode          string         `json:"mode"`
	Score         int            `json:"score"`
	// Spent is empty, or says that and where the budget of the decision was spent: then the call
	// must be denied, whatever policies would say.
	Spent string `json:"spent,omitzero"`
}

// Risk returns the risk for conditions of policies.
func (a *Assessment) Risk() condition.Risk {
	r := condition.Risk{Score: a.Score, Mode: a.Mode, Rules: make([]string, 0, len(a.Contributions))}
	for i := range a.Contributions {
		if c := &a.Contributions[i]; c.Matched && c.Rule != ByScore {
			r.Rules = append(r.Rules, c.Rule)
		}
	}
	return r
}
