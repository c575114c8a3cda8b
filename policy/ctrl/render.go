package ctrl

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/visible"
)

// RiskYAML writes risk.yaml, each finding as a comment above what it is about. It is empty if there are no risk rules.
func (r *Result) RiskYAML() string {
	if r.Risk == nil {
		return ""
	}
	w := newWriter(r.of(RiskFile))
	w.head("The risk of a call: modes, mildest first, each with the least score that a call in it has.")
	w.line(0, "modes:")
	for _, m := range r.Risk.Modes {
		w.comments(2, m.Name, "score")
		w.line(2, "%s: %d", jsonText(m.Name), m.Baseline)
	}
	w.line(0, "initial: %s", jsonText(r.Risk.Initial))
	var vars, thresholds [][2]string
	for _, v := range r.Risk.Vars {
		vars = append(vars, [2]string{v.Name, v.Expr})
	}
	for _, t := range r.Risk.ModeByScore {
		thresholds = append(thresholds, [2]string{t.Mode, t.When})
	}
	w.named("vars", "Numbers that scores are computed from.", vars)
	if len(r.Risk.Rules) > 0 {
		w.gap("Every rule that matches is applied, in order.")
		w.line(0, "rules:")
	}
	for i := range r.Risk.Rules {
		w.rule(&r.Risk.Rules[i])
	}
	w.named("set_mode_by_score", "The first that is true names the mode, unless the mode is more severe already.",
		thresholds)
	w.rest()
	return w.b.String()
}

// PolicyYAML writes policy.yaml, each finding as a comment above what it is about.
func (r *Result) PolicyYAML() string {
	w := newWriter(r.of(PolicyFile))
	w.head("What may run. The first policy that matches decides; what none matches is denied.")
	w.line(0, "policies:")
	for i := range r.Policy.Policies {
		w.policy(&r.Policy.Policies[i])
	}
	w.rest()
	return w.b.String()
}

func (r *Result) of(file string) []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if f.File == file {
			out = append(out, f)
		}
	}
	return out
}

// A writer writes one file of ours.
type writer struct {
	b        strings.Builder
	findings []Finding
	written  []bool
	about    map[string][]int // by id, which of the findings
}

func newWriter(findings []Finding) *writer {
	w := &writer{findings: findings, written: make([]bool, len(findings)), about: map[string][]int{}}
	for i, f := range findings {
		w.about[f.ID] = append(w.about[f.ID], i)
	}
	return w
}

func (w *writer) line(indent int, format string, args ...any) {
	fmt.Fprintf(&w.b, "%s%s\n", strings.Repeat(" ", indent), fmt.Sprintf(format, args...))
}

func (w *writer) head(says string) {
	w.line(0, "# Taken over from agent-ctrl. %s", says)
	if n := len(w.findings); n > 0 {
		w.line(0, "# What was found, %d in all, stands as `code: problem; what was done` above what it is about.", n)
	}
	w.line(0, "version: 1")
	w.line(0, "")
	w.comments(0, "", "")
}

func (w *writer) gap(says string) {
	w.line(0, "")
	w.line(0, "# %s", says)
}

// comments writes the findings about one entry; an empty key stands for every key.
func (w *writer) comments(indent int, id, key string) {
	for _, i := range w.about[visible.Text(id)] {
		f := &w.findings[i]
		if w.written[i] || key != "" && f.Key != key {
			continue
		}
		w.written[i] = true
		where := ""
		if f.Key != "" && key == "" {
			where = f.Key + ": "
		}
		w.line(indent, "# %s: %s%s; %s", f.Code, where, f.Problem, f.Done)
	}
}

// rest writes what is about something that is not in the file.
func (w *writer) rest() {
	if !slices.Contains(w.written, false) {
		return
	}
	w.gap("Left out:")
	for i, f := range w.findings {
		if w.written[i] {
			continue
		}
		w.line(0, "# %s: %s%s; %s", f.Code, f.where(), f.Problem, f.Done)
	}
}

// named writes a mapping of names to expressions.
func (w *writer) named(key, says string, pairs [][2]string) {
	if len(pairs) == 0 {
		return
	}
	w.gap(says)
	w.line(0, "%s:", key)
	for _, pair := range pairs {
		w.comments(2, pair[0], key)
		w.line(2, "%s: %s", jsonText(pair[0]), jsonText(pair[1]))
	}
}

func (w *writer) rule(rule *risk.Rule) {
	w.comments(2, rule.ID, "")
	w.line(2, "- id: %s", jsonText(rule.ID))
	w.line(4, "when:")
	w.match(rules.Match(rule.Match))
	if len(rule.Args) > 0 {
		w.line(6, "args:")
	}
	for i := 0; i < len(rule.Args); {
		path, ops := rule.Args[i].Path, []string(nil)
		for ; i < len(rule.Args) && rule.Args[i].Path == path; i++ {
			ops = append(ops, fmt.Sprintf("%s: %s", rule.Args[i].Op, rule.Args[i].Value))
		}
		w.line(8, "%s: {%s}", jsonText(path), strings.Join(ops, ", "))
	}
	w.text("set_mode", rule.SetMode)
	if rule.Escalate {
		w.line(4, "escalate: one_level")
	}
	w.text("score_expr", rule.ScoreExpr)
	w.text("reason", rule.Reason)
}

func (w *writer) policy(p *rules.Policy) {
	w.comments(2, p.ID, "")
	w.line(2, "- id: %s", jsonText(p.ID))
	w.line(4, "match:")
	w.match(p.Match)
	w.text("when", p.When)
	w.text("effect", p.Effect)
	w.text("deny", p.Deny)
	w.text("require_approval_if", p.RequireApprovalIf)
	w.text("reason", p.Reason)
}

func (w *writer) match(m rules.Match) {
	w.line(6, "server: %s", jsonText(m.Server))
	w.line(6, "tool: %s", jsonText(m.Tool))
	w.line(6, "env: %s", jsonText(m.Env))
}

func (w *writer) text(key, value string) {
	if value != "" {
		w.line(4, "%s: %s", key, jsonText(value))
	}
}
