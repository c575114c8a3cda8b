package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
	"pgfsm/policy/lint"
	"pgfsm/traces/ledger/checkpoint"
)

func newConfig(w world) *cobra.Command {
	var o options
	var strict bool
	check := &cobra.Command{
		Use:  "check",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := o.check(cmd.Context(), w, strict)
			var faults config.Errors
			if o.json && errors.As(err, &faults) {
				return errors.Join(cli.PrintJSON(w.stdout, cli.Document("ok", false, "faults", faults)), cli.Exit(cli.ExitFailed))
			}
			return err
		},
	}
	o.register(check)
	o.registerGrants(check)
	check.Flags().BoolVar(&strict, "strict", false, "exit 1 for a warning, too")
	return cli.Group("config", check, &cobra.Command{
		Use:       "schema [NAME]",
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: config.SchemaNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			_, err := w.stdout.Write(config.Schema(append(args, config.SchemaNames()[0])[0]))
			return err
		},
	})
}

// check checks a configuration. It returns faults that [load] finds as an error, and prints all others.
func (o *options) check(ctx context.Context, w world, strict bool) error {
	loaded, from, err := load(w, o)
	if err != nil {
		return err
	}
	s, missing, err := setup.Check(o.setup(w), loaded, from)
	if err != nil {
		return err
	}
	a := &app{s, w, o.config, o.json}
	defer a.close()
	catalog, err := a.catalog(ctx, a.Bundle, false)
	if err != nil {
		return err
	}
	found := checked{warnings: slices.Concat(loaded.Warnings, loaded.Literals, a.Doubts())}
	for _, m := range missing {
		found.warnings = append(found.warnings, m.Error())
	}
	for _, f := range lint.Lint(a.Bundle.Content(), catalog) {
		switch text := fmt.Sprintf("[%s] %s", f.Code, loaded.LintError(f)); f.Severity {
		case lint.Error:
			found.errors = append(found.errors, text)
		case lint.Warning:
			found.warnings = append(found.warnings, text)
		}
	}
	if _, err := openTLS(loaded.Serve.TLS, nil); err != nil {
		found.errors = append(found.errors, err.Error())
	}
	for _, key := range loaded.Checkpoints.Keys {
		if _, err := checkpoint.ReadSigner(key); err != nil {
			found.errors = append(found.errors, "checkpoints.key: "+err.Error())
		}
	}
	err = a.printCheck(&found)
	if len(found.errors) > 0 || strict && len(found.warnings) > 0 {
		err = errors.Join(err, cli.Exit(cli.ExitNo))
	}
	return err
}

// checked holds the findings of check in a configuration with usable files.
type checked struct{ errors, warnings []string }

func (a *app) printCheck(found *checked) error {
	c := a.Bundle.Content()
	tools := 0
	for _, g := range c.Allowlist {
		tools += len(g.Tools)
	}
	pinned, planner := len(c.Pins), c.Planner.Mode
	ladder, policies := 0, 0
	if c.Risk != nil {
		ladder = len(c.Risk.Rules)
	}
	if c.Policy != nil {
		policies = len(c.Policy.Policies)
	}
	if m := c.Planner.LLM; m != nil {
		planner += fmt.Sprintf(", model %s at %s", m.Model, m.BaseURL)
	}
	if a.json {
		return cli.PrintJSON(a.w.stdout, cli.Document(
			"ok", len(found.errors) == 0, "config", a.From, "bundle", string(a.Bundle.Digest()),
			"servers", len(c.Servers), "allowed_tools", tools, "input_rules", len(c.Input.Rules),
			"routes", len(c.Planner.Routes), "output_types", len(c.Outputs), "pinned_tools", pinned,
			"grants", len(c.Grants), "risk_rules", ladder, "policies", policies, "planner", planner,
			"listen", a.Loaded.Serve.Listen, "admin", a.Loaded.Serve.Admin, "errors", found.errors,
			"warnings", found.warnings,
		))
	}
	for _, text := range found.errors {
		fmt.Fprintf(a.w.stderr, "pgfsm: error: %s\n", visible.Lines(text))
	}
	for _, text := range found.warnings {
		fmt.Fprintf(a.w.stderr, "pgfsm: warning: %s\n", visible.Lines(text))
	}
	_, err := fmt.Fprintf(a.w.stdout, "%s %s: %s, %s (%d pinned), %s, %s, %s, %s, %s, %s\nplanner %s\ngateway %s, admin %s\nbundle %s\n",
		newInk(a.w).mark(len(found.errors) == 0), visible.Text(a.From), cli.Count(len(c.Servers), "server"), cli.Count(tools, "allowed tool"), pinned,
		cli.Count(len(c.Grants), "grant"), cli.Count(len(c.Input.Rules), "input rule"), cli.Count(len(c.Planner.Routes), "route"),
		cli.Count(len(c.Outputs), "output type"), cli.Count(ladder, "risk rule"), counted(policies, "policy", "policies"),
		visible.Text(planner), a.Loaded.Serve.Listen, a.Loaded.Serve.Admin, visible.Text(string(a.Bundle.Digest())))
	return err
}

// counted does the same as [cli.Count], for words with an irregular plural.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
