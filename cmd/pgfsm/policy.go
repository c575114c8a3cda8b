package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/visible"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

func newPolicy(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Explain, test, lint and compare risk rules and policies",
		Long: `Risk rules (risk.yaml) rate the risk of a call; policies (policy.yaml) decide whether it runs, is denied, or is held
for approvers. These commands call no tool. docs/reference/policy-language.md describes the files.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPolicyExplain(w), newPolicyTest(w), newPolicyLint(w), newPolicyDiff(w))
	return cmd
}

// callAsked is a call that is asked about.
type callAsked struct {
	server, tool, env, args, actor, task string

	agent       bool                // an agent asks
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
		Short: "Show what every gate would decide about a call, and why",
		Long: `explain asks every gate about a call without making it: input rules, plan, server, allowlist and pin, the schema of the
arguments, grants, risk rules and policies. With --live it asks the servers for their tools, reads the earlier calls from
the ledger and decides as pgfsm call would. Without --live it contacts no server. It uses the definition that is kept with
the tool's pin, and the gate server says assumed, because only the server knows whether it still lists the tool. Everything
else that it cannot know is unknown, and an unknown gate is never an allow. --annotations gives the hints of an unknown
tool. With --agent, the input rules for agents judge the call.
Exit codes: 0 allow, 1 deny, 2 unknown, or failed because no server answered, 3 pending.`,
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
			if cmd.Flags().Changed("task") {
				if err := traces.CheckTaskID(q.task); err != nil {
					return fmt.Errorf("--task: %w", err)
				}
			}
			return o.with(cmd.Context(), w, func(a *app) error { return a.explain(cmd.Context(), q, o.json) })
		},
	}
	o.register(cmd)
	o.registerGrants(cmd)
	f := cmd.Flags()
	f.StringVar(&q.server, "server", "", "the server's name")
	f.StringVar(&q.tool, "tool", "", "the tool's own name")
	f.StringVar(&q.env, "env", "", "the environment (default: the configuration's)")
	f.StringVar(&q.args, "args", "{}", "the arguments, a JSON object")
	f.StringVar(&q.actor, "actor", "", "the requester (default: you)")
	f.BoolVar(&q.agent, "agent", false, "judge an agent's call by the input rules for agents (default: an operator's call)")
	f.StringVar(&q.task, "task", "", "the task whose calls grants count")
	f.BoolVar(&pinned, "pinned", false, "whether the tool's definition is pinned (default: as the allowlist says)")
	f.StringVar(&annotations, "annotations", "", "the tool's annotations, a JSON object of MCP's hints (default: the known ones)")
	f.StringArrayVar(&q.history, "history", nil,
		"a value of the history, as a condition asks for it, such as 'history.count(\"actor\", \"1h\")=5'")
	f.BoolVar(&q.live, "live", false, "ask the servers for their tools, and the ledger for the earlier calls")
	for _, name := range []string{"server", "tool"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic("policy explain: " + err.Error()) // the flag stands above
		}
	}
	return cmd
}

// told is what the flags tell of calls before.
func (q callAsked) told() (answers []policy.HistoryAnswer, err error) {
	for _, told := range q.history {
		at := strings.LastIndexByte(told, '=')
		if at < 0 {
			return nil, fmt.Errorf("history: %q has no number; write 'history.count(\"actor\", \"1h\")=5'", told)
		}
		a, err := condition.ParseAnswer(strings.TrimSpace(told[:at]), strings.TrimSpace(told[at+1:]))
		if err != nil {
			return nil, fmt.Errorf("history: %q: %w; write 'history.count(\"actor\", \"1h\")=5'", told, err)
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// decision is the --json form of what was decided.
type decision struct {
	SchemaVersion int                    `json:"schema_version"`
	Decision      string                 `json:"decision"` // allow, deny, pending, unknown or failed
	Code          policy.Code            `json:"code,omitzero"`
	Reason        string                 `json:"reason"`
	Gates         []gateSaid             `json:"gates"`
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

var decisionExit = map[string]int{rules.Allow: exitYes, rules.Deny: exitNo, rules.Pending: exitPending, unknown: exitCould, failed: exitCould}

func (a *app) explain(ctx context.Context, q callAsked, asJSON bool) error {
	told, err := q.told()
	if err != nil {
		return err
	}
	if content := *a.bundle.Content(); q.env != "" && q.env != content.Env {
		content.Env = q.env
		if a.bundle, err = policy.Compile(content); err != nil {
			return err
		}
	}
	tools, err := a.toolsKnown(ctx, q.live)
	if err != nil {
		return err
	}
	asker, err := a.asker(ctx, q.actor)
	if err != nil {
		return err
	}
	known := tools.of(q.server, q.tool).with(q.pinned, q.annotations)
	about := question{server: q.server, tool: q.tool, args: q.args, actor: asker, agent: q.agent, history: told, known: known}
	if q.task != "" {
		about.task = ledger.Task(q.task)
	}
	if q.live {
		if err := a.before(ctx, &about, q.task); err != nil {
			return err
		}
	}
	got, err := a.judge(tools, about)
	if err != nil {
		return err
	}
	switch {
	case q.live && !tools.catalog.Up():
		got = got.unanswered(tools.catalog)
	case got.args != nil:
		last := &got.gates[len(got.gates)-1]
		if why := a.unsettled(about, got.args); why != "" {
			last.Verdict, last.Code, last.Reason = unknown, "", why
		}
		untold := a.untold(about)
		failed := func(query string) bool { return strings.Contains(last.Reason, query+" is not known") }
		if slices.ContainsFunc(untold, failed) { // in a run that condition would not fail
			last.Code, last.Reason = policy.CodePolicyDenied, "The call is denied, whatever there was before."
		}
		got.forget(untold)
	}
	by := deciding(got.gates)
	d := decision{
		SchemaVersion: schemaVersion, Decision: by.Verdict, Code: by.Code, Reason: by.Reason, Gates: got.gates,
		Policy: got.Policy, Condition: got.Condition, RiskMode: got.Mode, RiskScore: got.Score, Risk: got.Risk,
		Policies: got.considered, Shadow: got.Shadow, Approvers: got.Approvers, Quorum: got.Quorum, Expires: got.Expires,
		Known: known,
	}
	if asJSON {
		if err := printJSON(a.w.stdout, d); err != nil {
			return err
		}
	} else {
		a.printDecision(d)
	}
	return exit(decisionExit[d.Decision])
}

// printGates shows what each gate says, one a line.
func (a *app) printGates(gates []gateSaid) {
	k := newInk(a.w)
	fmt.Fprintln(a.w.stdout, k.bold("Gates, in order"))
	for _, g := range gates {
		mark := k.mark(g.Verdict == rules.Allow)
		switch g.Verdict {
		case rules.Pending:
			mark = "…"
		case assumed:
			mark = "~"
		case unknown:
			mark = k.bad.Sprint("?")
		}
		code := ""
		if g.Code != "" {
			code = fmt.Sprintf("[%s] ", g.Code)
		}
		fmt.Fprintf(a.w.stdout, "  %s %-9s  %-7s  %s%s\n", mark, g.Gate, g.Verdict, code, visible.Clip(g.Reason, maxLine))
	}
}

func (a *app) printDecision(d decision) {
	out, k := a.w.stdout, newInk(a.w)
	a.printGates(d.Gates)
	if d.Decision != failed {
		fmt.Fprintf(out, "%s %s\n", k.bold("Tool:"), visible.Text(d.Known.says()))
		fmt.Fprintf(out, "%s\n", k.bold(fmt.Sprintf("Risk: %s, score %d", visible.Text(d.RiskMode), d.RiskScore)))
	}
	for _, c := range d.Risk {
		reason := ""
		if c.Reason != "" {
			reason = ": " + c.Reason
		}
		fmt.Fprintf(out, "  %s %-24s %s, score %d%s\n", k.mark(c.Matched && c.Failed == ""), visible.Text(c.Rule), visible.Text(c.Mode),
			c.Score, visible.Text(reason))
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
		mark := k.mark(p.Matched)
		if strings.HasPrefix(p.Why, asksHistory) {
			mark = k.bad.Sprint("?")
		}
		fmt.Fprintf(out, "  %s %-24s %s%s\n", mark, visible.Text(p.Policy), visible.Text(p.Why), shadow)
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
		approvers := cmp.Or(strings.Join(d.Approvers, " or "), anyApprover)
		fmt.Fprintf(out, "Approvers: %s; quorum %d; until %s\n", visible.Text(approvers), max(d.Quorum, 1), d.Expires)
	}
}
