package ctrl

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// ladder are ctrl's modes, mildest first. Each call begins in the first.
var ladder = []string{"safe", "review", "danger"}

// A riskReader reads risk.yaml.
type riskReader struct {
	*importer
	content *risk.Content
	scope   scope
	rules   []*node // where each rule of the content stands
}

func (i *importer) risk(root *node) {
	i.ignored(root, "risk")
	n := root.get("risk")
	if n == nil {
		i.fault(root, "there is no key risk")
		return
	}
	if !i.is(n, isMap) {
		return
	}
	i.only(n, "mode", "modes", "vars", "rules", "set_mode_by_score")
	if i.text(n, "mode", "modes") != "modes" {
		i.fault(n.at("mode"), "only mode: modes is read")
	}
	r := &riskReader{importer: i, content: &risk.Content{Initial: ladder[0]}}
	r.modes(n)
	r.vars(n.get("vars"))
	for k, rule := range i.list(n, "rules") {
		r.rule(rule, k)
	}
	r.thresholds(n.get("set_mode_by_score"))
	if len(i.faults) > 0 {
		return
	}
	if _, err := risk.Compile(*r.content); err != nil {
		r.compileFaults(err)
		return
	}
	i.result.Risk = r.content
}

func (r *riskReader) modes(n *node) {
	modes := n.get("modes")
	if modes == nil || !r.is(modes, isMap) {
		r.fault(n, "risk has modes: safe, review and danger, each with a score")
		return
	}
	r.only(modes, ladder...)
	least := 0
	for _, name := range ladder {
		m := modes.get(name)
		if m == nil || !r.is(m, isMap) {
			r.fault(modes, "there is no mode %s", name)
			continue
		}
		r.only(m, "score")
		score, err := strconv.Atoi(m.at("score").text)
		if s := m.at("score"); err != nil || s.kind != isNumber || score < 0 || score > ctrlTop {
			r.fault(s, "the score must be a whole number, 0 to %d", ctrlTop)
			continue
		}
		if score < least {
			r.note(m.at("score"), name, "score", Ladder, fmt.Sprintf("its score %d is less than that of a milder mode", score),
				fmt.Sprintf("its baseline is %d", least))
		}
		least = max(least, score)
		r.content.Modes = append(r.content.Modes, risk.Mode{Name: name, Baseline: least})
	}
}

// compiles returns a test of an expression in the scope so far.
func (r *riskReader) compiles(cel string) error {
	env, err := condition.RiskEnv(r.scope.vars)
	if err == nil {
		_, err = env.Number(cel)
	}
	return err
}

func (r *riskReader) vars(n *node) {
	if n == nil || n.kind == isNull || !r.is(n, isMap) {
		return
	}
	for _, m := range n.members {
		r.scope.later = append(r.scope.later, m.key)
	}
	for _, m := range n.members {
		r.scope.later = r.scope.later[1:]
		if !r.is(m.value, isText) {
			continue
		}
		in := r.scope
		in.place = inVar
		cel, ok := r.translate(m.value, m.key, "vars", in, "left out; every expression that uses it is refused, too",
			(*translator).number, r.compiles)
		if !ok {
			r.scope.refused = append(r.scope.refused, m.key)
			continue
		}
		if _, err := condition.RiskEnv(append(slices.Clone(r.scope.vars), m.key)); err != nil {
			r.fault(m.value, "%s", err)
			continue
		}
		r.scope.vars = append(r.scope.vars, m.key)
		r.content.Vars = append(r.content.Vars, risk.Var{Name: m.key, Expr: cel})
	}
}

func (r *riskReader) rule(n *node, k int) {
	r.only(n, "name", "when", "reason", "set_mode", "escalate", "score_expr")
	rule := risk.Rule{ID: r.id(n, k), Reason: r.text(n, "reason", ""), SetMode: r.text(n, "set_mode", "")}
	when := n.get("when")
	if when == nil || !r.is(when, isMap) {
		r.fault(n, "a rule has a when")
		return
	}
	r.only(when, "server", "tool", "env", "args")
	var wide [3]bool
	rule.Match.Server, wide[0] = r.glob(when, "server")
	rule.Match.Tool, wide[1] = r.glob(when, "tool")
	rule.Match.Env, wide[2] = r.glob(when, "env")
	rule.Args = r.predicates(when.get("args"), rule.ID, rule.Match.Tool == "*")
	switch escalate := r.text(n, "escalate", ""); escalate {
	case "", "one_level":
		rule.Escalate = escalate != ""
	default:
		r.fault(n.at("escalate"), "escalate is one_level or not there")
	}
	if rule.SetMode != "" && !slices.Contains(ladder, rule.SetMode) {
		r.fault(n.at("set_mode"), "there is no mode %q", rule.SetMode)
	}
	if e := n.get("score_expr"); e != nil && e.kind != isNull && r.is(e, isText) && e.text != "" {
		r.score(&rule, e)
	}
	if wide != [3]bool{} {
		r.note(when, rule.ID, "when", Widened, "a glob has [ ], which is not there here",
			"it stands as ?, which matches more, and the rule only raises, to the highest score; write a rule for each case")
		rule.SetMode, rule.Escalate, rule.ScoreExpr = "", true, highest
	}
	if rule.SetMode == "" && !rule.Escalate && rule.ScoreExpr == "" {
		r.note(n, rule.ID, "", NoEffect, "the rule sets no mode and no score", "left out")
		return
	}
	r.content.Rules, r.rules = append(r.content.Rules, rule), append(r.rules, n)
}

// id returns the name of a rule, which ctrl does not need to be there, or to stand once.
func (r *riskReader) id(n *node, k int) string {
	id := r.text(n, "name", "rule")
	taken := func(id string) bool {
		return slices.ContainsFunc(r.content.Rules, func(one risk.Rule) bool { return one.ID == id })
	}
	if n.get("name") == nil || taken(id) {
		id = fmt.Sprintf("%s-%d", id, k+1)
	}
	for taken(id) {
		id += "-"
	}
	return id
}

// highest is the score of a rule whose own is not known.
var highest = fmt.Sprintf("%d.0", risk.MaxScore)

func (r *riskReader) score(rule *risk.Rule, e *node) {
	in := r.scope
	in.place = inRule
	cel, ok := r.translate(e, rule.ID, "score_expr", in,
		fmt.Sprintf("the rule raises the mode by one level, and the score is %d", risk.MaxScore),
		(*translator).number, r.compiles)
	if !ok {
		rule.Escalate, rule.ScoreExpr = true, highest
		return
	}
	rule.ScoreExpr = cel
	if (rule.SetMode != "" || rule.Escalate) && strings.Contains(cel, "score") {
		r.note(e, rule.ID, "score_expr", ScoreOrder, "in ctrl the score is computed before the rule sets its mode",
			"score is at least the baseline of the mode that the rule sets")
	}
}

// thresholds reads set_mode_by_score. What is refused is true: every such call has the mode, at least.
func (r *riskReader) thresholds(n *node) {
	if n == nil || n.kind == isNull || !r.is(n, isMap) {
		return
	}
	env, err := condition.ScoreEnv()
	if err != nil {
		r.fault(n, "%s", err)
		return
	}
	compiles := func(cel string) error {
		_, err := env.Bool(cel)
		if err == nil && strings.ContainsAny(cel, "[{") {
			err = errors.New("a list has no place here; compare score")
		}
		return err
	}
	for _, m := range n.members {
		if !slices.Contains(ladder, m.key) {
			r.fault(m.value, "there is no mode %q", m.key)
			continue
		}
		if !r.is(m.value, isText) {
			continue
		}
		cel, ok := r.translate(m.value, m.key, "set_mode_by_score", scope{place: inThreshold},
			"it is always true here: every call has this mode at least", (*translator).condition, compiles)
		if !ok {
			cel = "true"
		}
		r.content.ModeByScore = append(r.content.ModeByScore, risk.Threshold{Mode: m.key, When: cel})
	}
	r.strictOrder(n)
}

// strictOrder puts the thresholds into an order in which more score is never a milder mode: from the most severe mode
// down, since here the first that is true counts. It takes out those that are never the first.
func (r *riskReader) strictOrder(n *node) {
	sorted := slices.Clone(r.content.ModeByScore)
	if r.orderCompiles(sorted) {
		return
	}
	slices.SortStableFunc(sorted, func(a, b risk.Threshold) int {
		return slices.Index(ladder, b.Mode) - slices.Index(ladder, a.Mode)
	})
	for k := 0; k < len(sorted); {
		if kept := append(slices.Clone(sorted[:k]), sorted[k]); r.orderCompiles(kept) {
			k++
			continue
		}
		mode := sorted[k].Mode
		sorted = slices.Delete(sorted, k, k+1)
		r.note(n.at(mode), mode, "set_mode_by_score", Ladder,
			"here the most severe mode comes first, and this condition is never the first that is true, or makes more score "+
				"a milder mode",
			"left out: scores only raise the mode")
	}
	r.content.ModeByScore = sorted
	r.note(n, "", "set_mode_by_score", Ladder,
		"the first condition that is true counts, and more score must not be milder",
		"the most severe mode comes first")
}

func (r *riskReader) orderCompiles(thresholds []risk.Threshold) bool {
	_, err := risk.Compile(risk.Content{Modes: r.content.Modes, Initial: r.content.Initial, ModeByScore: thresholds})
	return err == nil || len(r.content.Modes) < len(ladder)
}

// compileFaults reports what package risk refuses.
func (r *riskReader) compileFaults(err error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		r.fault(&node{}, "%s", err)
		return
	}
	for _, one := range joined.Unwrap() {
		at := &node{}
		var e *risk.Error
		if errors.As(one, &e) && e.List == "rules" && e.Index >= 0 && e.Index < len(r.rules) {
			at = r.rules[e.Index]
		}
		r.fault(at, "%s", one)
	}
}
