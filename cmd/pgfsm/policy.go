package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/visible"
)

func newPolicy(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Explain, test, lint and compare risk rules and policies",
		Long: `Risk rules (risk.yaml) say how risky a call is, policies (policy.yaml) whether it may run, must not, or waits for a
person. These commands call no tool. What the files mean: docs/policies.md.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPolicyExplain(w), newPolicyTest(w), newPolicyLint(w), newPolicyDiff(w))
	return cmd
}

// callAsked is a call that is asked about.
type callAsked struct {
	server, tool, env, args, actor string

	pinned      *bool               // nil: as the allowlist says
	annotations *policy.Annotations // nil: what is known
	live        bool                // ask the servers
	history     []string            // what there was before: QUERY=NUMBER
}

func newPolicyExplain(w world) *cobra.Command {
	var o options
	var q callAsked
	var pinned bool
	var annotations string
	cmd := &cobra.Command{
		Use:   "explain --server S --tool T [--args '{…}']",
		Short: "Say what risk rules and policies would decide about a call, and why",
		Long: `explain judges a call that nobody makes by the configuration's risk rules and policies. A tool counts as pinned if the
allowlist pins it, and says of itself what the kept definition of its pin says; of a tool without one nothing is
known, unless --live asks the servers or --annotations tells it. Without --live no server is contacted. The
allowlist and the tool's schema are not asked. Exit code: 0 allow, 1 deny, 3 pending.`,
		Example: `  pgfsm policy explain --server billing --tool refund --env prod --args '{"amount": 900}' --actor local:alice
  pgfsm policy explain --server billing --tool refund --pinned --annotations '{"destructiveHint": false}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if cmd.Flags().Changed("pinned") {
				q.pinned = &pinned
			}
			if cmd.Flags().Changed("annotations") {
				if q.annotations, err = readAnnotations(annotations); err != nil {
					return err
				}
			}
			return o.with(cmd.Context(), w, func(a *app) error { return a.explain(cmd.Context(), q, o.json) })
		},
	}
	o.register(cmd)
	f := cmd.Flags()
	f.StringVar(&q.server, "server", "", "the server's name")
	f.StringVar(&q.tool, "tool", "", "the tool's own name")
	f.StringVar(&q.env, "env", "", "the environment (default: the configuration's)")
	f.StringVar(&q.args, "args", "{}", "the arguments, a JSON object")
	f.StringVar(&q.actor, "actor", "", "who asks (default: you)")
	f.BoolVar(&pinned, "pinned", false, "whether the tool's definition is pinned (default: as the allowlist says)")
	f.StringVar(&annotations, "annotations", "", "what the tool says of itself, a JSON object of MCP's hints (default: what is known)")
	f.StringArrayVar(&q.history, "history", nil,
		"what there was before, as a condition asks it, such as 'history.count(\"actor\", \"1h\")=5'; what is not told fails")
	f.BoolVar(&q.live, "live", false, "ask the servers what the tool says of itself")
	for _, name := range []string{"server", "tool"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic("policy explain: " + err.Error()) // the flag stands above
		}
	}
	return cmd
}

// input makes what is asked an input for conditions.
func (q callAsked) input(b *policy.Bundle, now string) (*condition.Input, error) {
	args, err := canonical.JSON([]byte(q.args))
	if err == nil && jsontext.Value(args).Kind() != '{' {
		err = errors.New("not a JSON object")
	}
	if err != nil {
		return nil, fmt.Errorf("args: %w; give one JSON object, such as '{\"amount\": 5}'", err)
	}
	if q.actor == "" {
		q.actor = actor()
	}
	in := inputOf(b, q.server, q.tool, q.env, q.actor, args, now)
	for _, told := range q.history {
		at := strings.LastIndexByte(told, '=')
		if at < 0 {
			return nil, fmt.Errorf("history: %q has no number; write 'history.count(\"actor\", \"1h\")=5'", told)
		}
		a, err := condition.ParseAnswer(strings.TrimSpace(told[:at]), strings.TrimSpace(told[at+1:]))
		if err != nil {
			return nil, fmt.Errorf("history: %q: %w; write 'history.count(\"actor\", \"1h\")=5'", told, err)
		}
		in.History = append(in.History, a)
	}
	return in, nil
}

// inputOf is what conditions may ask about a call, but for what is known of its tool. Without an environment it is the
// configuration's.
func inputOf(b *policy.Bundle, server, tool, env, actor string, args []byte, now string) *condition.Input {
	if env == "" {
		env = b.Content().Env
	}
	return &condition.Input{
		Server: server, Tool: tool, Env: env, Args: args, Now: now,
		Actor: condition.Actor{ID: actor, Roles: b.RolesOf(actor)},
	}
}

// decision is the --json form of what was decided.
type decision struct {
	SchemaVersion int                    `json:"schema_version"`
	Decision      string                 `json:"decision"` // allow, deny or pending
	Code          policy.Code            `json:"code,omitzero"`
	Reason        string                 `json:"reason"`
	Policy        string                 `json:"policy,omitzero"`
	Condition     string                 `json:"condition,omitzero"`
	RiskMode      string                 `json:"risk_mode"`
	RiskScore     int                    `json:"risk_score"`
	Risk          []risk.Contribution    `json:"risk,omitzero"`
	Policies      []rules.Considered     `json:"policies,omitzero"`
	Shadow        []rules.ShadowDecision `json:"shadow,omitzero"`
	Approvers     []string               `json:"approvers,omitzero"`
	Quorum        int                    `json:"quorum,omitzero"`
	Expires       string                 `json:"expires,omitzero"`
	Known         toolKnown              `json:"known"` // what conditions were told of the tool, and where that is from
}

// word is the decision in one word.
func word(v policy.Verdict) string {
	switch {
	case v.Allows():
		return rules.Allow
	case v.Holds():
		return rules.Pending
	}
	return rules.Deny
}

var decisionExit = map[string]int{rules.Allow: exitYes, rules.Deny: exitNo, rules.Pending: exitPending}

func (a *app) explain(ctx context.Context, q callAsked, asJSON bool) error {
	in, err := q.input(a.bundle, now())
	if err != nil {
		return err
	}
	tools, err := a.toolsKnown(ctx, q.live)
	if err != nil {
		return err
	}
	known, err := tools.of(q.server, q.tool)
	if err != nil {
		return err
	}
	known = known.with(q.pinned, q.annotations)
	known.tell(in)
	got, considered := a.bundle.Explain(in)
	d := decision{
		SchemaVersion: schemaVersion, Decision: word(got.Verdict), Code: got.Verdict.Code, Reason: got.Verdict.Reason,
		Policy: got.Policy, Condition: got.Condition, RiskMode: got.Mode, RiskScore: got.Score, Risk: got.Risk,
		Policies: considered, Shadow: got.Shadow, Approvers: got.Approvers, Quorum: got.Quorum, Expires: got.Expires,
		Known: known,
	}
	if asJSON {
		if err := printJSON(a.w.stdout, d); err != nil {
			return err
		}
		return exit(decisionExit[d.Decision])
	}
	a.printDecision(d)
	return exit(decisionExit[d.Decision])
}

func (a *app) printDecision(d decision) {
	out, k := a.w.stdout, newInk(a.w)
	fmt.Fprintf(out, "%s %s\n", k.bold("Tool:"), visible.Text(d.Known.says()))
	fmt.Fprintf(out, "%s\n", k.bold(fmt.Sprintf("Risk: %s, score %d", visible.Text(d.RiskMode), d.RiskScore)))
	for _, c := range d.Risk {
		fmt.Fprintf(out, "  %s %-24s %s, score %d: %s\n", k.mark(c.Matched && c.Failed == ""), visible.Text(c.Rule), visible.Text(c.Mode),
			c.Score, visible.Text(c.Reason))
		if c.Failed != "" {
			fmt.Fprintf(out, "    %s\n", k.bad.Sprint("! "+visible.Text(c.Failed)))
		}
	}
	if len(d.Policies) > 0 {
		fmt.Fprintln(out, k.bold("Policies, in order"))
	}
	for _, p := range d.Policies {
		shadow := ""
		if p.Shadow {
			shadow = " (shadow)"
		}
		fmt.Fprintf(out, "  %s %-24s %s%s\n", k.mark(p.Matched), visible.Text(p.Policy), visible.Text(p.Why), shadow)
	}
	for _, s := range d.Shadow {
		if s.Effect == rules.Unjudged {
			fmt.Fprintf(out, "  shadow %s was not evaluated\n", visible.Text(s.Policy))
			continue
		}
		fmt.Fprintf(out, "  shadow %s would have decided: %s\n", visible.Text(s.Policy), s.Effect)
	}
	fmt.Fprintf(out, "%s %s\n", k.bold("Decision: "+d.Decision+"."), visible.Text(d.Reason))
	if d.Decision == rules.Pending {
		fmt.Fprintf(out, "Approvers: %s; quorum %d; until %s\n", visible.Text(fmt.Sprint(d.Approvers)), d.Quorum, d.Expires)
	}
	if d.Known.Note != "" {
		fmt.Fprintf(out, "%s\n", k.bad.Sprint("! "+visible.Text(d.Known.Note)))
	}
}
