package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"pgfsm/internal/canonical"
	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/present"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/policy/condition"
	"pgfsm/policy/prove"
	"pgfsm/policy/rules"
	"pgfsm/states"
)

// claimsName is the file of claims beside the configuration, if no key names another.
const claimsName = "claims.yaml"

// proveOptions are the flags of policy prove.
type proveOptions struct {
	options
	listing bool
	test    string
}

func newPolicyProve(w world) *cobra.Command {
	var o proveOptions
	cmd := o.newCommand(w, "prove [FILE]", cobra.MaximumNArgs(1), func(ctx context.Context, a *app, args []string) error {
		path := cmp.Or(a.Loaded.ClaimsPath, filepath.Join(filepath.Dir(a.From), claimsName))
		if len(args) > 0 {
			path = args[0]
		}
		return a.proveClaims(ctx, &o, path)
	})
	cmd.Flags().BoolVar(&o.listing, "listing", false,
		"ask the servers for their tools, and use the definitions of tools that are not pinned, too")
	cmd.Flags().StringVar(&o.test, "test", "", "write the counterexamples into this new file, as tests of policies")
	return cmd
}

// A claimResult is a result with what repeats it.
type claimResult struct {
	ID     string       `json:"id"`
	Kind   string       `json:"kind"`
	Line   int          `json:"line"`
	Status string       `json:"status"`
	Tools  int          `json:"tools"`
	Cells  int          `json:"cells"`
	Call   *exampleCall `json:"call,omitzero"`
	Repeat string       `json:"repeat,omitzero"` // the command that explains the decision about the call

	Reason    string `json:"reason,omitzero"`
	Condition string `json:"condition,omitzero"`
	Where     string `json:"where,omitzero"`
}

// An exampleCall is the call of a result, in the form of the input of a test.
type exampleCall struct {
	Server      string                    `json:"server"`
	Tool        string                    `json:"tool"`
	Args        jsontext.Value            `json:"args"`
	Actor       string                    `json:"actor,omitzero"`
	As          *exampleActor             `json:"as,omitzero"`
	Pinned      bool                      `json:"pinned"`
	Annotations map[string]bool           `json:"annotations,omitempty"`
	History     map[string]jsontext.Value `json:"history,omitempty"`
}

// An exampleActor is a requester of an identity provider, in the form that --as reads.
type exampleActor struct {
	ID         string            `json:"id"`
	Kind       string            `json:"kind"`
	Client     string            `json:"client,omitzero"`
	OnBehalfOf string            `json:"on_behalf_of,omitzero"`
	Groups     *[]string         `json:"groups,omitzero"`
	Claims     map[string]string `json:"claims,omitempty"`
}

func (a *app) proveClaims(ctx context.Context, o *proveOptions, path string) error {
	claims, err := config.OpenClaims(path, a.Bundle.Content(), safefile.ReadTrusted)
	if err != nil {
		return err
	}
	catalog, err := a.catalog(ctx, a.Bundle, o.listing)
	if err != nil {
		return err
	}
	if o.listing && !catalog.Up() {
		return errors.New(states.NoServers(catalog))
	}

	report, finish := reportProgress(a.w.stderr)
	results, err := config.ProveClaims(ctx, a.Bundle, claims, prove.Options{
		Catalog: catalog,
		Listing: o.listing,
		Report:  report,
	})
	finish()
	if err != nil {
		return err
	}
	if o.test != "" {
		if err := writeCounterexamples(o.test, claims, results); err != nil {
			return fmt.Errorf("--test: %w", err)
		}
	}

	code := cli.ExitYes
	shown := make([]claimResult, len(results))
	for i := range results {
		shown[i] = showResult(&claims[i], &results[i])
		switch {
		case results[i].Status == prove.Refuted:
			code = cli.ExitNo
		case results[i].Status == prove.Unknown && code == cli.ExitYes:
			code = cli.ExitFailed
		}
	}
	return a.printDocument(cli.Document("ok", code == cli.ExitYes, "listing", o.listing, "claims", shown), code,
		func(out io.Writer, _ ink) { printClaims(out, shown, o.listing) })
}

// progressDelay is the time after which a proof shows its progress.
const progressDelay = time.Second

// reportProgress returns a function that shows progress on a terminal after a second, and one that
// ends it.
func reportProgress(stream io.Writer) (report func(done, all int), finish func()) {
	start := time.Now()
	var bar *progressbar.ProgressBar
	return func(done, all int) {
			if time.Since(start) < progressDelay {
				return
			}
			if bar == nil {
				bar = cli.NewBar(stream, "proving", all)
			}
			_ = bar.Set(done)
		}, func() {
			if bar != nil {
				_ = bar.Finish()
			}
		}
}

func showResult(c *config.PolicyClaim, r *prove.Result) claimResult {
	shown := claimResult{
		ID:        r.ID,
		Kind:      c.Kind,
		Line:      c.Line,
		Status:    r.Status,
		Tools:     r.Tools,
		Cells:     r.Cells,
		Reason:    r.Reason,
		Condition: r.Condition,
		Where:     r.Where,
	}
	if r.Call != nil {
		shown.Call = newExample(r.Call)
		shown.Repeat = repeatCommand(shown.Call)
	}
	return shown
}

// newExample converts the call of a proof.
func newExample(c *prove.Call) *exampleCall {
	e := &exampleCall{
		Server:      c.Server,
		Tool:        c.Tool,
		Args:        jsontext.Value(c.Args),
		Pinned:      c.Pinned,
		Annotations: map[string]bool{},
		History:     map[string]jsontext.Value{},
	}
	if c.Identity == nil {
		e.Actor = c.Actor
	} else {
		e.As = &exampleActor{
			ID:         c.Actor,
			Kind:       c.Identity.Kind,
			Client:     c.Identity.Client,
			OnBehalfOf: c.Identity.OnBehalfOf,
			Groups:     c.Identity.Groups,
			Claims:     map[string]string{},
		}
		for _, claim := range c.Identity.Claims {
			e.As.Claims[claim.Name] = claim.Value
		}
	}

	for _, hint := range []struct {
		name  string
		value *bool
	}{
		{"readOnlyHint", c.Annotations.ReadOnly}, {"destructiveHint", c.Annotations.Destructive},
		{"idempotentHint", c.Annotations.Idempotent}, {"openWorldHint", c.Annotations.OpenWorld},
	} {
		if hint.value != nil {
			e.Annotations[hint.name] = *hint.value
		}
	}
	for _, answer := range c.History {
		if answer.Failed != "" {
			continue // a query without an answer fails, too
		}
		e.History[answer.Query().String()] = jsontext.Value(answer.Value)
	}
	return e
}

// repeatCommand returns the command that explains the decision about a call.
func repeatCommand(c *exampleCall) string {
	words := []string{"pgfsm", "policy", "explain", "--agent", "--server", c.Server, "--tool", c.Tool, "--args", string(c.Args)}
	if c.As != nil {
		words = append(words, "--as", "actor.json")
	} else {
		words = append(words, "--actor", c.Actor)
	}
	if len(c.Annotations) > 0 {
		words = append(words, "--annotations", string(canonical.MustMarshal(c.Annotations)))
	}
	var answers []string
	for query, value := range c.History {
		answers = append(answers, query+"="+string(value))
	}
	slices.Sort(answers)
	for _, answer := range answers {
		words = append(words, "--history", answer)
	}
	return present.CommandLine(words...)
}

func printClaims(out io.Writer, claims []claimResult, listing bool) {
	for i := range claims {
		c := &claims[i]
		extent := cli.Count(c.Tools, "tool") + ", " + cli.Count(c.Cells, "cell")
		if c.Tools == 0 {
			extent = "no tool on the allowlist matches"
		}
		fmt.Fprintf(out, "%-8s %s (%s)\n", c.Status, visible.Text(c.ID), extent)
		switch {
		case c.Reason != "":
			fmt.Fprintf(out, "  %s\n", visible.Text(c.Reason))
			if c.Where != "" {
				fmt.Fprintf(out, "  %s: %s\n", visible.Text(c.Where), visible.Text(c.Condition))
			}
		case c.Call != nil && c.Status == prove.Refuted:
			fmt.Fprintf(out, "  %s\n", visible.Text(c.Repeat))
			if c.Call.As != nil {
				fmt.Fprintf(out, "  actor.json: %s\n", visible.Text(string(canonical.MustMarshal(c.Call.As))))
			}
		case c.Status == prove.Refuted:
			fmt.Fprintln(out, "  no call has this decision")
		}
	}
	if listing {
		fmt.Fprintln(out, "proved for the definitions that the servers have now")
	}
}

// writeCounterexamples writes a file of tests that fail until the policies keep the claims.
func writeCounterexamples(path string, claims []config.PolicyClaim, results []prove.Result) error {
	type test struct {
		Name   string       `json:"name"`
		Input  *exampleCall `json:"input"`
		Expect string       `json:"expect"`
	}
	var tests []test
	for i := range results {
		r := &results[i]
		if r.Status != prove.Refuted || r.Call == nil {
			continue
		}
		tests = append(tests, test{"claim " + r.ID, newExample(r.Call), expectedEffect(&claims[i].Claim, r.Call)})
	}
	if len(tests) == 0 {
		return nil
	}
	text, err := json.Marshal(map[string]any{"tests": tests}, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return safefile.Create(path, append(text, '\n'), 0o600)
}

// expectedEffect returns a decision that keeps a claim.
func expectedEffect(c *prove.Claim, call *prove.Call) string {
	switch {
	case c.Old != nil:
		a := c.Old.AssessSubject(condition.NewSubject(call.Input(c.Old)))
		switch {
		case a.Verdict.Allows():
			return rules.Allow
		case a.Verdict.Holds():
			return rules.Pending
		}
		return rules.Deny
	case c.Kind == prove.Always:
		return c.Effect
	case c.Effect == rules.Deny:
		return rules.Allow
	}
	return rules.Deny
}
