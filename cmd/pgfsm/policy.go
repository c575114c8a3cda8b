package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/present"
	"pgfsm/internal/runner/explain"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/policy/lint"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/traces/ledger/stores"
)

func newPolicy(w world) *cobra.Command {
	return cli.Group("policy", newPolicyExplain(w), newPolicyTest(w), newPolicyLint(w), newPolicyProve(w), newPolicyDiff(w),
		newPolicyDraft(w))
}

// explainOptions are the flags of policy explain.
type explainOptions struct {
	options
	server, tool, env, args, actor, as, task, annotations string

	agent, live, pinned bool
	history             []string // each in the form QUERY=NUMBER
}

func newPolicyExplain(w world) *cobra.Command {
	var o explainOptions
	cmd := newCommand("explain --server S --tool T [--args '{…}']", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		if cmd.Flags().Changed("task") {
			if err := policy.CheckTaskID(o.task); err != nil {
				return fmt.Errorf("--task: %w", err)
			}
		}
		var pinned *bool
		var annotations *policy.Annotations
		if cmd.Flags().Changed("pinned") {
			pinned = &o.pinned
		}
		if cmd.Flags().Changed("annotations") {
			var err error
			if annotations, err = explain.ParseAnnotations(o.annotations); err != nil {
				return err
			}
		}
		return o.withApp(w, func(a *app) error { return a.explainCall(cmd.Context(), &o, pinned, annotations) })
	})

	o.addFlags(cmd)
	o.addGrantFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&o.server, "server", "", "the server's name")
	f.StringVar(&o.tool, "tool", "", "the tool's own name")
	f.StringVar(&o.env, "env", "", "the environment (default: the configuration's)")
	f.StringVar(&o.args, "args", "{}", "the arguments, a JSON object")
	f.StringVar(&o.actor, "actor", "", "the requester (default: you)")
	f.StringVar(&o.as, "as", "", "a JSON file with an actor of an identity provider: id, kind, client, on_behalf_of, groups, claims")
	cmd.MarkFlagsMutuallyExclusive("actor", "as")
	f.BoolVar(&o.agent, "agent", false,
		"judge an agent's call by the input rules for agents (default: an operator's call)")
	f.StringVar(&o.task, "task", "", "the task whose calls grants count")
	f.BoolVar(&o.pinned, "pinned", false, "whether the tool's definition is pinned (default: as the allowlist says)")
	f.StringVar(&o.annotations, "annotations", "",
		"the tool's annotations, a JSON object of MCP's hints (default: the known ones)")
	f.StringArrayVar(&o.history, "history", nil,
		"the value of a history query, such as 'history.count(\"actor\", \"1h\")=5'")
	f.BoolVar(&o.live, "live", false, "ask the servers for their tools, and the ledger for the earlier calls")
	cli.MustFlags(cmd, "server", "tool")

	return cmd
}

var decisionExit = map[string]int{
	rules.Allow: cli.ExitYes, rules.Deny: cli.ExitNo, rules.Pending: cli.ExitPending, explain.Unknown: cli.ExitFailed,
	explain.Failed: cli.ExitFailed,
}

func (a *app) explainCall(ctx context.Context, o *explainOptions, pinned *bool, annotations *policy.Annotations) error {
	q := explain.Question{
		Server:      o.server,
		Tool:        o.tool,
		Env:         o.env,
		Args:        o.args,
		Task:        o.task,
		Agent:       o.agent,
		Live:        o.live,
		Pinned:      pinned,
		Annotations: annotations,
		History:     o.history,
	}

	var err error
	if o.as != "" {
		var text []byte
		if text, _, err = safefile.Read(o.as); err != nil {
			return fmt.Errorf("--as: %w", err)
		}
		if q.Actor, q.Identity, err = config.ReadActor(o.as, text); err != nil {
			return err
		}
	} else if q.Actor, err = a.requesterName(ctx, o.actor); err != nil {
		return err
	}

	catalog := func(ctx context.Context, b *policy.Bundle, live bool) (*policy.Catalog, error) {
		if !slices.Contains(b.Servers(), o.server) {
			return a.catalog(ctx, b, live)
		}
		return a.catalog(ctx, b, live, o.server)
	}

	x, err := explain.Answer(ctx, explain.Sources{
		Bundle:  a.Bundle,
		Catalog: catalog,
		History: a.readHistory,
		Now:     timestamp(),
	}, q)
	if err != nil {
		return err
	}

	return a.printDocument(present.Explanation{SchemaVersion: cli.SchemaVersion, Explanation: x}, decisionExit[x.Decision],
		templatePrinter("explanation", x))
}

// requesterName returns the requester of a run: the owner of PGFSM_TOKEN, or else the user of the
// operating system.
func (a *app) requesterName(ctx context.Context, name string) (string, error) {
	if name != "" || a.w.env(tokenVariable) == "" {
		return cmp.Or(name, localActor()), nil
	}
	l, err := openConfigured(a.w, a.Loaded, stores.ToRead)
	if err != nil {
		return "", err
	}
	requester, err := a.identifyCaller(ctx, l, "ask")
	return requester.Name, l.closeAfter(err)
}

// readHistory adds the facts about earlier calls that a run would read.
func (a *app) readHistory(ctx context.Context, e *explain.Explainer, c *explain.Call) (err error) {
	if !e.NeedsHistory(c) {
		return nil
	}
	l, err := openConfigured(a.w, a.Loaded, stores.ToRead)
	if errors.Is(err, stores.ErrMissing) { // the first call creates the ledger
		return e.ReadHistory(ctx, nil, c)
	}
	if err != nil {
		return err
	}
	return l.closeAfter(e.ReadHistory(ctx, l, c))
}

func newPolicyLint(w world) *cobra.Command {
	var o options
	var live bool
	cmd := o.newCommand(w, "lint", cobra.NoArgs,
		func(ctx context.Context, a *app, _ []string) error { return a.lintPolicies(ctx, live) })
	cmd.Flags().BoolVar(&live, "live", false, "ask the servers for their tools")
	return cmd
}

// lintFinding is a finding with its place.
type lintFinding struct {
	File string `json:"file,omitzero"`
	At   int    `json:"at_line,omitzero"`
	Col  int    `json:"at_column,omitzero"`
	lint.Finding

	err *config.Error
}

func (a *app) lintPolicies(ctx context.Context, live bool) error {
	catalog, err := a.catalog(ctx, a.Bundle, live)
	if err != nil {
		return err
	}
	if live && !catalog.Up() {
		return errors.New(states.NoServers(catalog))
	}
	if c := a.Bundle.Content(); !a.json && c.Policy == nil && c.Risk == nil && c.Labels == nil {
		fmt.Fprintln(a.w.stdout, "no policy is configured")
		return nil
	}

	code := cli.ExitYes
	var findings []lintFinding

	for _, f := range lint.Lint(a.Bundle.Content(), catalog) {
		if f.Severity != lint.Note {
			code = cli.ExitNo
		}
		e := a.Loaded.LintError(f)
		findings = append(findings, lintFinding{e.File, e.Line, e.Col, f, e})
	}

	return a.printDocument(cli.Document("ok", code == cli.ExitYes, "tools_known", catalog != nil, "findings", findings), code,
		func(out io.Writer, _ ink) {
			for _, f := range findings {
				fmt.Fprintf(out, "%s [%s] %s\n", f.Severity, f.Code, visible.Lines(f.err.Error()))
			}
			if catalog == nil {
				fmt.Fprintln(out, "lint did not check arguments: no tool is pinned; use --live")
			}
			fmt.Fprintf(out, "%s\n", cli.Count(len(findings), "finding"))
		})
}

func newPolicyTest(w world) *cobra.Command {
	var o options
	return o.newCommand(w, "test FILE|FOLDER ...", cobra.MinimumNArgs(1),
		func(ctx context.Context, a *app, paths []string) error {
			catalog, err := a.catalog(ctx, a.Bundle, false)
			if err != nil {
				return err
			}
			report, err := explain.New(a.Bundle, catalog, false, timestamp()).Test(paths, safefile.ReadTrusted)
			if err != nil {
				return err
			}

			code, good := cli.ExitYes, 0
			if !report.OK {
				code = cli.ExitNo
			}

			for i := range report.Tests {
				if report.Tests[i].OK {
					good++
				}
			}

			doc := struct {
				SchemaVersion int `json:"schema_version"`
				*explain.Report
			}{cli.SchemaVersion, report}
			return a.printDocument(doc, code, templatePrinter("tests", struct {
				*explain.Report
				Good int
			}{report, good}))
		})
}
