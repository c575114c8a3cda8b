package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/internal/canonical"
	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/draft"
	"pgfsm/policy/prove"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/states"
	"pgfsm/traces"
	"pgfsm/traces/backtest"
)

// draftOptions are the flags of policy draft.
type draftOptions struct {
	options
	traces, server, output string
	since                  time.Duration
}

func newPolicyDraft(w world) *cobra.Command {
	var o draftOptions
	cmd := o.newCommand(w, "draft POLICY --output FILE", cobra.ExactArgs(1), func(ctx context.Context, a *app, args []string) error {
		return a.draftPolicies(ctx, &o, args[0])
	})
	cmd.Flags().StringVar(&o.traces, "traces", "traces", "the traces of calls, a file or a folder")
	cmd.Flags().StringVar(&o.server, "server", "", "draft policies for the tools of this server only")
	cmd.Flags().DurationVar(&o.since, "since", 0, "learn only from calls of this `PERIOD` before now, such as 720h (default: all)")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "the new `FILE`")
	_ = cmd.MarkFlagRequired("output") // the flag exists
	return cmd
}

// heldOut is the share of the calls, the newest, that a draft is tried on: one in so many.
const heldOut = 5

// A madeCall is a call of a trace that was made.
type madeCall struct {
	draft.Call
	at, path string
	trace    *traces.Trace
}

// A draftReport says what a draft is worth.
type draftReport struct {
	Learned  int         `json:"learned"`  // calls
	Tried    int         `json:"tried"`    // judged calls that the draft did not learn from
	Refused  []string    `json:"refused"`  // those of them that it would refuse
	Policies int         `json:"policies"` // drafted
	Narrower claimResult `json:"narrower"`
	// Shares of the combinations of cells that are allowed today, and by the draft; nil if there are
	// too many combinations.
	Allowed *allowedShares `json:"allowed,omitempty"`
}

type allowedShares struct {
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

func (a *app) draftPolicies(ctx context.Context, o *draftOptions, path string) error {
	calls, replayer, err := o.readMadeCalls()
	if err != nil {
		return err
	}
	learned := calls[:len(calls)-len(calls)/heldOut]
	if len(learned) == 0 {
		return errors.New("the traces have no call that was made")
	}
	evidence := make([]draft.Call, len(learned))
	for i := range learned {
		evidence[i] = learned[i].Call
	}

	content := *a.Bundle.Content()
	allowed := slices.DeleteFunc(slices.Clone(content.Allowlist), func(one policy.Allowance) bool {
		return o.server != "" && one.Server != o.server
	})
	drafted := draft.Policies(allowed, evidence)
	today, err := config.OpenPolicies(path, &content, safefile.ReadTrusted)
	if err != nil {
		return err
	}
	text, err := safefile.ReadTrusted(path)
	if err != nil {
		return err
	}
	if text, err = insertPolicies(text, drafted, fmt.Sprintf("drafted from %s; see docs/guide/drafts.md",
		cli.Count(len(learned), "call"))); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}

	newer := *today.Content()
	var claims []string
	if newer.Identity != nil {
		claims = newer.Identity.Claims
	}
	if newer.Policy, _, err = config.ReadPolicy(o.output, text, claims...); err != nil {
		return err
	}
	report := draftReport{Learned: len(learned), Policies: len(drafted), Refused: []string{}}
	if err = a.compareDraft(ctx, &report, newer, today); err != nil {
		return err
	}
	comparer := backtest.Comparer{
		Old:      ruling.NewJudge(today.Content().Policy, newer.Risk, claims...),
		New:      ruling.NewJudge(newer.Policy, newer.Risk, claims...),
		Replayer: replayer,
	}
	for _, c := range calls[len(learned):] {
		compared := comparer.Compare(c.path, c.trace, nil)
		if compared.Err != nil {
			return fmt.Errorf("%s: %w", c.path, compared.Err)
		}
		if len(compared.Unknown) > 0 { // the record does not have what the policies read
			continue
		}
		report.Tried++
		if slices.Contains(compared.Kinds, ruling.NewlyDenied) {
			report.Refused = append(report.Refused, fmt.Sprintf("%s %s by %q", c.path, compared.Tool, compared.By))
		}
	}
	if err := safefile.Create(o.output, text, 0o600); err != nil {
		return err
	}

	code := cli.ExitYes
	if report.Narrower.Status != prove.Proved {
		code = cli.ExitFailed
	}
	return a.printDocument(report, code, func(out io.Writer, _ ink) { printDraft(out, o.output, &report) })
}

// readMadeCalls reads the calls that were made, the oldest first. Calls that were refused, that are
// held, or that failed are not among them.
func (o *draftOptions) readMadeCalls() (calls []madeCall, replayer *traces.Replayer, err error) {
	if replayer, err = newReplayer(); err != nil {
		return nil, nil, err
	}
	paths, err := traces.Files([]string{o.traces})
	if err != nil {
		return nil, nil, err
	}
	since := ""
	if o.since > 0 {
		since = time.Now().Add(-o.since).UTC().Format(policy.TimeForm)
	}
	for _, path := range paths {
		t, err := traces.ReadFile(path)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		run, err := replayer.Replay(t)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		q, ok := run.Question()
		at := run.Request().At
		if !ok || run.Outcome().Effect != states.EffectDone || at < since || o.server != "" && q.Server != o.server {
			continue
		}
		calls = append(calls, madeCall{draft.Call{Server: q.Server, Tool: q.Tool.Name, Args: q.Arguments}, at, path, t})
	}
	slices.SortStableFunc(calls, func(a, b madeCall) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.path, b.path)) })
	return calls, replayer, nil
}

// compareDraft proves that a draft allows no call that today's policies do not, and compares how
// much both allow.
func (a *app) compareDraft(ctx context.Context, r *draftReport, drafted policy.Content, today *policy.Bundle) error {
	b, err := policy.Compile(drafted)
	if err != nil {
		return err
	}
	catalog, err := a.catalog(ctx, a.Bundle, false)
	if err != nil {
		return err
	}
	claim := config.PolicyClaim{Claim: prove.Claim{ID: "the draft is narrower than the policies of today", Kind: prove.Implies, Old: today}}
	report, finish := reportProgress(a.w.stderr)
	results, err := prove.Prove(ctx, b, []prove.Claim{claim.Claim}, prove.Options{Catalog: catalog, Report: report})
	finish()
	if err != nil {
		return err
	}
	r.Narrower = showResult(&claim, &results[0])

	after, before, err := prove.Shares(ctx, b, today, prove.Options{Catalog: catalog})
	if errors.Is(err, prove.ErrTooMany) {
		return nil
	}
	r.Allowed = &allowedShares{before, after}
	return err
}

// policiesKey is the line after which the policies of a file are written, one a list entry.
var policiesKey = regexp.MustCompile(`(?m)^policies:[ \t]*(?:#.*)?\r?\n((?:[ \t]*(?:#.*)?\r?\n)*)([ ]*)- `)

// insertPolicies inserts policies above those of a file.
func insertPolicies(text []byte, drafted []rules.Policy, comment string) ([]byte, error) {
	at := policiesKey.FindSubmatchIndex(text)
	if at == nil {
		return nil, errors.New("write its policies as a list with one entry a line, so that the draft can be put above them")
	}
	indent := text[at[4]:at[5]]
	var b bytes.Buffer
	b.Write(text[:at[2]])
	fmt.Fprintf(&b, "%s# %s\n", indent, comment)
	for _, p := range drafted {
		fmt.Fprintf(&b, "%s- {id: %s, match: {server: %q", indent, p.ID, p.Match.Server)
		if p.Match.Tool != "" {
			fmt.Fprintf(&b, ", tool: %q", p.Match.Tool)
		}
		fmt.Fprintf(&b, "}, effect: %s", p.Effect)
		if p.When != "" {
			fmt.Fprintf(&b, ", when: %s", canonical.MustMarshal(p.When))
		}
		b.WriteString("}\n")
	}
	b.Write(text[at[2]:])
	return b.Bytes(), nil
}

func printDraft(out io.Writer, path string, r *draftReport) {
	fmt.Fprintf(out, "%s: %s, from %s\n", visible.Text(path), cli.Count(r.Policies, "drafted policy", "drafted policies"),
		cli.Count(r.Learned, "call"))
	printClaims(out, []claimResult{r.Narrower}, false)
	if shares := r.Allowed; shares != nil {
		fmt.Fprintf(out, "allowed: %.1f %% of the combinations of cells today, %.1f %% with the draft\n", 100*shares.Before, 100*shares.After)
	}
	fmt.Fprintf(out, "of %s that it did not learn from, it would refuse %d\n", cli.Count(r.Tried, "call"), len(r.Refused))
	for _, refused := range r.Refused {
		fmt.Fprintf(out, "  %s\n", visible.Text(refused))
	}
}
