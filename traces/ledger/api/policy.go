package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/policy/prove"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/traces/backtest"
	"pgfsm/traces/ledger"
)

// Bounds of the page.
const (
	maxListed = 500     // policies, risk rules and calls of one table
	maxDraft  = 1 << 20 // bytes of a form with a draft or with arguments, with the escapes of browsers
	maxNamed  = 20      // unused policies that the page names above the table
)

// A policyView is the page of policies. After a form was sent, it shows the answer instead of the
// tables.
type policyView struct {
	Uses        *present.Policies
	Unused      []string // only the first ones
	MoreUnused  int
	UnusedRules []string
	MoreRules   int
	Others      int // policies that the table omits

	Fields    map[string]string // fields of the form that was sent
	Explains  bool              // this service can explain calls
	Explained *present.Explanation
	Compared  *comparison
	Claims    []present.Claim // of the configuration, with what was found
	NoClaims  bool            // they cannot be proved now
	Broken    []present.Claim // claims that a draft does not keep
	Error     string
	Hint      string
	Modes     []string // risk modes of the active bundle
}

// A comparison holds the decisions of a draft about recorded calls.
type comparison struct {
	backtest.LogReport
	Changed []backtest.Call // only the first ones
	More    int
}

// readPolicies reads the number of decisions of each policy and risk rule.
func (h *Handler) readPolicies(v *visit) (present.Policies, error) {
	return readList(h, v, func(r ledger.Reader) (present.Policies, error) { return present.NewPolicies(r, h.activeBundle()) })
}

// showPolicies shows the policies and risk rules, and the forms to try them out.
func (h *Handler) showPolicies(v *visit) (answer, error) {
	uses, err := h.readPolicies(v)
	if err != nil {
		return answer{}, err
	}
	body := h.newPolicyView(v)
	body.Uses = &uses

	if body.Claims, err = h.proveClaims(v.r.Context(), nil); err != nil {
		h.Log("the claims of the configuration cannot be proved: " + err.Error())
		body.NoClaims = true
	}
	cli := "pgfsm policy lint"
	if unused := body.Uses.Unused(); len(unused) > 0 { // the command shows whether the policy ever decided
		cli = present.CommandLine("pgfsm", "ledger", "list", "--policy", unused[0])
	}

	body.Unused, body.MoreUnused = firstOf(body.Uses.Unused(), maxNamed)
	body.UnusedRules, body.MoreRules = firstOf(body.Uses.UnusedRules(), maxNamed)
	body.Uses.Policies, body.Others = firstOf(body.Uses.Policies, maxListed)
	body.Uses.RiskRules, _ = firstOf(body.Uses.RiskRules, maxListed)

	return h.page(v, "policy", view{Title: "Policy", Tab: "policy", CLI: cli, Body: &body}), nil
}

// firstOf returns the first elements of a list, and the number of the others.
func firstOf[E any](all []E, n int) (some []E, others int) {
	if len(all) <= n {
		return all, 0
	}
	return all[:n], len(all) - n
}

func (h *Handler) newPolicyView(v *visit) policyView {
	return policyView{
		Explains: h.Explain != nil,
		Hint:     hintOfTime,
		Fields: map[string]string{
			"args": "{}", "actor": v.caller.Name, "since": "24h",
		},
	}
}

// tryPolicy answers one of the page's forms. It makes no call and records nothing.
func (h *Handler) tryPolicy(v *visit) (answer, error) {
	fields, err := v.readForm(maxDraft, "try", "server", "tool", "args", "actor", "env", "task", "agent", "live",
		"draft", "since")
	if err != nil {
		return answer{}, err
	}
	if err := h.trying.Acquire(v.r.Context()); err != nil {
		return answer{}, err
	}
	defer h.trying.Release()
	body, cli := h.newPolicyView(v), ""

	for name, text := range fields { // in any order: each name occurs once
		body.Fields[name] = strings.ReplaceAll(text, "\r\n", "\n") // browsers send lines with CRLF
	}

	switch fields["try"] {
	case "explain":
		cli, err = h.explainCall(v, &body)
	case "compare":
		cli = "pgfsm ledger trace --all -o traces && pgfsm policy diff policy.yaml draft.yaml --traces traces"
		err = h.compareDraft(v.r.Context(), &body)
	default:
		return answer{}, errForm
	}

	if err != nil {
		return answer{}, err
	}

	status := http.StatusOK
	if body.Error != "" {
		status = http.StatusUnprocessableEntity
	}

	return h.page(v, "policy", view{Status: status, Title: "Policy", Tab: "policy", CLI: cli, Body: &body}), nil
}

// explainCall answers with the decision of every gate about a call.
func (h *Handler) explainCall(v *visit, body *policyView) (cli string, err error) {
	if h.Explain == nil {
		return "", errForm
	}

	f := body.Fields
	q := present.Question{
		Server: f["server"],
		Tool:   f["tool"],
		Args:   f["args"],
		Actor:  f["actor"],
		Env:    f["env"],
		Task:   f["task"],
		Agent:  f["agent"] != "",
		Live:   f["live"] != "",
	}

	// The page shows the command that gives the same answer.
	words := []string{"pgfsm", "policy", "explain"}
	for _, name := range []string{"server", "tool", "args", "actor", "env", "task"} {
		if f[name] != "" {
			words = append(words, "--"+name, f[name])
		}
	}

	for _, name := range []string{"agent", "live"} {
		if f[name] != "" {
			words = append(words, "--"+name)
		}
	}

	x, err := h.Explain(v.r.Context(), q)
	var invalid *present.QuestionError
	if errors.As(err, &invalid) {
		body.Error = invalid.Error()
		return "", nil
	}

	if err != nil {
		return "", err
	}

	body.Explained = &x
	return present.CommandLine(words...), nil
}

// proveClaims proves the claims of the configuration. A service without a configuration has none.
func (h *Handler) proveClaims(ctx context.Context, draft *rules.Content) ([]present.Claim, error) {
	if h.Claims == nil {
		return nil, nil
	}
	return h.Claims(ctx, draft)
}

// compareDraft compares a draft with the active policy on the calls of a period.
func (h *Handler) compareDraft(ctx context.Context, body *policyView) error {
	begin, err := "", error(nil)
	if text := body.Fields["since"]; text != "" {
		if begin, err = ledger.ParsePast(text, h.Ledger.Now()); err != nil {
			body.Error = "since " + err.Error()
			return nil
		}
	}

	var active *policy.Content
	err = h.Ledger.View(ctx, func(r ledger.Reader) (err error) {
		active, _, _, err = present.ActiveBundle(r, h.activeBundle())
		return err
	})
	if err != nil {
		return err
	}
	if active == nil {
		body.Error = "No gateway has used this ledger, so there are no calls to compare."
		return nil
	}

	// The draft may read the claims that the configuration reads today.
	var claims []string
	if active.Identity != nil {
		claims = active.Identity.Claims
	}

	draft, err := backtest.ReadDraft(body.Fields["draft"], claims...)
	if err != nil {
		body.Error = err.Error()
		return nil
	}

	compare := backtest.Comparer{
		Old: ruling.NewJudge(active.Policy, nil, claims...), New: ruling.NewJudge(draft, nil, claims...),
		Replayer: h.Replayer,
	}
	report, err := compare.CompareLog(ctx, h.Ledger, begin, backtest.ForDraft)
	if err != nil {
		return err
	}

	today, err := h.proveClaims(ctx, nil)
	if err != nil {
		return err
	}
	results, err := h.proveClaims(ctx, draft)
	if err != nil {
		return err
	}
	for _, claim := range results {
		isProved := func(c present.Claim) bool { return c.ID == claim.ID && c.Status == prove.Proved }
		if claim.Status == prove.Refuted || claim.Status == prove.Unknown && slices.ContainsFunc(today, isProved) {
			body.Broken = append(body.Broken, claim)
		}
	}
	c := &comparison{LogReport: report}
	c.Changed, c.More = firstOf(report.Changed, maxListed)
	body.Compared = c

	return nil
}

// Total describes the compared calls.
func (c *comparison) Total() string {
	text := ""
	if n := len(c.Unknown); n > 0 {
		text = fmt.Sprintf("%d more cannot be compared: their runs did not record what a policy reads, "+
			"such as %s. ", n, c.Unknown[0].Unknown[0])
	}
	if c.Partial {
		text += fmt.Sprintf("These are the newest calls of the period, since %s: it has more.", c.Since)
	}
	return text
}

// Weaker returns the number of calls that the draft judges more mildly, in two numbers: calls that
// are newly allowed, and held calls that need less.
func (c *comparison) Weaker() (w struct{ Allowed, Weakened int }) {
	for _, kind := range c.Kinds {
		switch kind.Kind {
		case ruling.NewlyAllowed:
			w.Allowed = kind.Calls
		case ruling.HoldWeakened:
			w.Weakened = kind.Calls
		}
	}
	return w
}

// Explained is the call that was explained, as runs have it.
func (p *policyView) ExplainedCall() present.Run {
	return present.Run{Call: present.Call{Server: p.Fields["server"], Tool: p.Fields["tool"], RiskMode: p.Explained.RiskMode, RiskScore: p.Explained.RiskScore}}
}
