package config

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// RiskVersion is the only version of files of risk rules.
const RiskVersion = 1

// oneLevel is the only value of escalate.
const oneLevel = "one_level"

var modeShape = &shape{form: text, max: risk.MaxNameBytes, match: regexp.MustCompile(`^[A-Za-z0-9_.-]+$`),
	what: `a mode's name: letters, digits, "_", "-" and "."`}

// riskFile is the shape of a file of risk rules.
var riskFile = &shape{form: object, keys: []key{
	{name: "version", shape: &shape{form: integer, min: RiskVersion, max: RiskVersion}, required: true,
		example: number(RiskVersion), doc: "The version of this format."},
	{name: "modes", initial: defaultModes(),
		shape: &shape{form: table, min: 1, max: risk.MaxModes, name: modeShape, what: "mode",
			each: &shape{form: integer, min: 0, max: risk.MaxScore}},
		doc: "The modes, least severe first, each with its baseline: the lowest score of a call in that mode."},
	{name: "initial", shape: modeShape, example: "review",
		doc: "The initial mode of a call. Default: the least severe mode."},
	{name: "vars", example: `{rows: "has(args.limit) ? args.limit : 0"}`,
		shape: &shape{form: table, max: risk.MaxVars, what: "variable", each: expression,
			name: &shape{form: text, max: condition.MaxVarName}},
		doc: "Expressions that give a number, for use as `vars.NAME`; a later one may use an earlier one."},
	{name: "rules", shape: &shape{form: list, max: risk.MaxRules, unique: "id", what: "rule", each: riskRuleShape},
		doc: "The rules, in order. Every matching rule applies."},
	{name: "set_mode_by_score", example: `{danger: "score >= 90.0", review: "score >= 50.0"}`,
		shape: &shape{form: table, max: risk.MaxThresholds, name: modeShape, what: "mode", each: expression},
		doc: "After all rules: sets the first mode whose expression over `score` is true, if this mode is more severe. Write the most severe mode " +
			"first."},
}}

var riskRuleShape = &shape{form: object, keys: []key{
	{name: "id", shape: &shape{form: text, max: risk.MaxNameBytes, check: checkShown}, required: true,
		example: "many-rows", doc: "The rule's name: in traces, and in `risk.rules` for policies."},
	{name: "when", shape: &shape{form: object, keys: append(slices.Clip(globKeys),
		key{name: "args", shape: &shape{form: table, max: risk.MaxPredicates, what: "path", each: predicateShape,
			name: &shape{form: text, max: risk.MaxPathBytes}},
			example: "{amount: {gt: 100}, /to/0: {matches: \"@example[.]com$\"}}",
			doc:     "Conditions on arguments; all must hold. The path is the name of an argument or, if it begins with `/`, a JSON pointer."})},
		doc: "The calls that the rule applies to. Default: all."},
	{name: "set_mode", shape: modeShape, example: "danger", doc: "Sets the mode, upwards or downwards."},
	{name: "escalate", shape: &shape{form: text, enum: []string{oneLevel}}, doc: "Raises the mode by one level.",
		example: oneLevel},
	{name: "score_expr", shape: expression, doc: "Sets the score to the value of this expression, rounded up.",
		example: `"math.greatest(score, 70.0)"`},
	{name: "reason", shape: &shape{form: text, max: risk.MaxReasonBytes, check: checkShown},
		doc: "One sentence for readers of the assessment.", example: `"This touches money."`},
}}

// predicateShape has a key for each op. What a value must be is for the risk rules to judge.
var predicateShape = &shape{form: object, cross: crossPredicate, keys: []key{
	{name: risk.OpEq, shape: &shape{form: anyJSON, what: "scalar"}, doc: "The value equals this text, number or boolean."},
	{name: risk.OpNe, shape: &shape{form: anyJSON, what: "scalar"}, doc: "The value differs from this one."},
	{name: risk.OpGt, shape: &shape{form: anyJSON, what: "number"}, doc: "The value is a number greater than this one."},
	{name: risk.OpGte, shape: &shape{form: anyJSON, what: "number"}, doc: "The value is a number greater than or equal to this one."},
	{name: risk.OpLt, shape: &shape{form: anyJSON, what: "number"}, doc: "The value is a number less than this one."},
	{name: risk.OpLte, shape: &shape{form: anyJSON, what: "number"}, doc: "The value is a number less than or equal to this one."},
	{name: risk.OpIn, shape: &shape{form: list, min: 1, max: risk.MaxIn, each: &shape{form: anyJSON, what: "scalar"}},
		doc: "The value is one of these."},
	{name: risk.OpContains, shape: &shape{form: anyJSON, what: "scalar"},
		doc: "The value is a text that contains this text, or a list that contains this element; letter case does not matter."},
	{name: risk.OpMatches, shape: &shape{form: text, max: risk.MaxPatternBytes, what: "a pattern"},
		doc: "The value is a text in which this pattern (RE2) matches."},
	{name: risk.OpExists, shape: &shape{form: boolean}, doc: "The value is present; with `false`: absent."},
}}

// crossPredicate refuses an empty predicate, which would hold for every call.
func crossPredicate(j *judge, n *node, path string) {
	if n.kind == isMap && len(n.members) == 0 {
		j.src.fault(n.at, path, "write one of "+strings.Join(risk.Ops(), ", "), "%s says nothing", path)
	}
}

// defaultModes writes the default ladder as the file would.
func defaultModes() string {
	var modes []string
	for _, m := range risk.DefaultModes() {
		modes = append(modes, m.Name+": "+number(int64(m.Baseline)))
	}
	return "{" + strings.Join(modes, ", ") + "}"
}

// ReadRisk reads a file of risk rules: strict YAML, or strict JSON if its name ends in ".json". The content has defaults for missing keys. The error is of
// type [Errors], and includes the faults of [risk.Compile]. Expressions may read the given claims.
func ReadRisk(name string, text []byte, claims ...string) (*risk.Content, *Places, error) {
	return readEntries(name, text, "write version: 1 and rules: []", riskFile, riskOf, (*Places).riskFaults, claims)
}

// LoadRisk reads the file of risk rules at path name; see [ReadRisk].
func LoadRisk(name string, open Open) (*risk.Content, error) {
	return loadEntries(name, open, ReadRisk)
}

// riskOf makes risk rules from a checked file, even with faults: each entry keeps its index. ok is false if references between the rules are unknown.
func riskOf(root *node) (c risk.Content, ok bool) {
	modes, vars := root.get("modes"), root.get("vars")
	if root == nil || root.kind != isMap || modes != nil && len(modes.members) == 0 || vars != nil && vars.kind != isMap {
		return c, false
	}
	c.Modes = risk.DefaultModes()
	if modes != nil {
		c.Modes = modes.modes()
	}
	if c.Initial = root.str("initial"); root.get("initial") == nil {
		c.Initial = c.Modes[0].Name
	}
	for _, m := range root.fields("vars") {
		c.Vars = append(c.Vars, risk.Var{Name: m.key, Expr: m.value.number()})
	}
	for _, n := range root.list("rules") {
		c.Rules = append(c.Rules, n.riskRule())
	}
	for _, m := range root.fields(risk.ByScore) {
		c.ModeByScore = append(c.ModeByScore, risk.Threshold{Mode: m.key, When: m.value.text})
	}
	return c, true
}

// modes reads the modes. An invalid baseline counts as that of the mode before.
func (n *node) modes() []risk.Mode {
	var out []risk.Mode
	for _, m := range n.members {
		baseline := n.orZero(m.key)
		if m.value.kind != isNumber || baseline < 0 || baseline > risk.MaxScore {
			baseline = 0
			if len(out) > 0 {
				baseline = out[len(out)-1].Baseline
			}
		}
		out = append(out, risk.Mode{Name: m.key, Baseline: baseline})
	}
	return out
}

// number is an expression that gives a number; what is none is refused already, and counts as one.
func (n *node) number() string {
	if n.kind != isText {
		return "0"
	}
	return n.text
}

func (n *node) riskRule() risk.Rule {
	when := n.get("when")
	r := risk.Rule{
		ID:      n.str("id"),
		Match:   risk.Match{Server: when.glob("server"), Tool: when.glob("tool"), Env: when.glob("env")},
		SetMode: n.str("set_mode"), Escalate: n.get("escalate") != nil || n.get("set_mode") != nil && n.str("set_mode") == "",
		Reason: n.str("reason"),
	}
	if v := n.get("score_expr"); v != nil {
		r.ScoreExpr = v.number()
	}
	for _, p := range when.predicates() {
		r.Args = append(r.Args, risk.Predicate{Path: p.path.key, Op: p.op.key, Value: p.op.value.json()})
	}
	return r
}

// predicate is where one predicate stands.
type predicate struct{ path, op *member }

// predicates lists the conditions of a when on arguments, in the order of the file.
func (n *node) predicates() []predicate {
	var out []predicate
	args := n.get("args")
	if args == nil {
		return nil
	}
	for i := range args.members {
		path := &args.members[i]
		for j := range path.value.members {
			op := &path.value.members[j]
			if slices.Contains(risk.Ops(), op.key) && op.value.isUTF8() {
				out = append(out, predicate{path, op})
			}
		}
	}
	return out
}

// isUTF8 is false for a value with text that is refused already.
func (n *node) isUTF8() bool {
	ok := true
	n.leaves(func(leaf *node) { ok = ok && utf8.ValidString(leaf.text) })
	return ok
}

// riskFaults notes what the risk rules themselves refuse.
func (p *Places) riskFaults(c risk.Content, claims []string) {
	_, err := risk.Compile(c, claims...)
	if err == nil {
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		one := (*risk.Error)(nil)
		if !errors.As(err, &one) {
			p.src.fault(place{1, 1}, "", "", "%s", err)
			continue
		}
		at := p.find(one.List, one.Index, one.Key)
		if cause, ok := one.Err.(*condition.Error); ok {
			p.note(at, cause)
		} else {
			p.fault(at, "", one.Err.Error())
		}
	}
}

// roles takes over who has which role.
func (l *loader) roles() {
	for _, m := range l.file.root.fields("roles") {
		role := policy.Role{Role: m.key}
		for _, actor := range m.value.items {
			role.Actors = append(role.Actors, actor.text)
		}
		l.out.Content.Roles = append(l.out.Content.Roles, role)
	}
}
