package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/policy/settings"
	"pgfsm/policy/visible"
)

func newConfig(w world) *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check a configuration, or print its JSON Schema", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var o options
	check := &cobra.Command{
		Use:   "check",
		Short: "Judge the configuration and every file it names, without starting anything",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := o.with(cmd.Context(), w, func(a *app) error { return a.printCheck(o.json) })
			var faults settings.Errors
			if o.json && errors.As(err, &faults) {
				return printFaults(w, faults)
			}
			return err
		},
	}
	o.register(check)
	cmd.AddCommand(check, &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of pgfsm.yaml",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := w.stdout.Write(settings.Schema())
			return err
		},
	})
	return cmd
}

func (a *app) printCheck(asJSON bool) error {
	c := a.bundle.Content()
	tools := 0
	for _, g := range c.Allowlist {
		tools += len(g.Tools)
	}
	if asJSON {
		return printJSON(a.w.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			OK            bool   `json:"ok"`
			Config        string `json:"config"`
			Bundle        string `json:"bundle"`
			Servers       int    `json:"servers"`
			Allowed       int    `json:"allowed_tools"`
			Rules         int    `json:"input_rules"`
			Routes        int    `json:"routes"`
			Outputs       int    `json:"output_types"`
		}{schemaVersion, true, a.config, string(a.bundle.Digest()), len(c.Servers), tools, len(c.Input.Rules),
			len(c.Planner.Routes), len(c.Outputs)})
	}
	_, err := fmt.Fprintf(a.w.stdout,
		"%s %s: %d servers, %d allowed tools, %d input rules, %d routes, %d output types\nbundle %s\n",
		newInk(a.w).mark(true), visible.Text(a.config), len(c.Servers), tools, len(c.Input.Rules), len(c.Planner.Routes), len(c.Outputs),
		visible.Text(string(a.bundle.Digest())))
	return err
}

// printFaults prints what is wrong with a configuration as one JSON document.
func printFaults(w world, faults settings.Errors) error {
	type fault struct {
		File    string `json:"file"`
		Line    int    `json:"line"` // 0: the file itself
		Column  int    `json:"column"`
		Key     string `json:"key,omitzero"`
		Problem string `json:"problem"`
		Remedy  string `json:"remedy,omitzero"`
	}
	doc := struct {
		SchemaVersion int     `json:"schema_version"`
		OK            bool    `json:"ok"`
		Faults        []fault `json:"faults"`
	}{SchemaVersion: schemaVersion}
	for _, f := range faults {
		doc.Faults = append(doc.Faults, fault{f.File, f.Line, f.Col, f.Key, f.Problem, f.Remedy})
	}
	if err := printJSON(w.stdout, doc); err != nil {
		return err
	}
	return exit(exitCould)
}
