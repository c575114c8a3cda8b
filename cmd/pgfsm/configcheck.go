package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/config"
	"pgfsm/policy/visible"
)

func newConfig(w world) *cobra.Command {
	var o options
	check := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and every file it names; start nothing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := o.with(w, func(a *app) error { return a.printCheck(o.json) })
			var faults config.Errors
			if o.json && errors.As(err, &faults) {
				return errors.Join(printJSON(w.stdout, struct {
					SchemaVersion int           `json:"schema_version"`
					OK            bool          `json:"ok"`
					Faults        config.Errors `json:"faults"`
				}{schemaVersion, false, faults}), exit(exitCould))
			}
			return err
		},
	}
	o.register(check)
	o.registerGrants(check)
	return group("config", "Check a configuration, or print its JSON Schema", "", check, &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of pgfsm.yaml",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := w.stdout.Write(config.Schema())
			return err
		},
	})
}

func (a *app) printCheck(asJSON bool) error {
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
			Pinned        int    `json:"pinned_tools"`
			Grants        int    `json:"grants"`
			Risk          int    `json:"risk_rules"`
			Policies      int    `json:"policies"`
			Planner       string `json:"planner"`
			Listen        string `json:"listen"`
			Admin         string `json:"admin"`
		}{schemaVersion, true, a.From, string(a.Bundle.Digest()), len(c.Servers), tools, len(c.Input.Rules),
			len(c.Planner.Routes), len(c.Outputs), pinned, len(c.Grants), ladder, policies, planner,
			a.Loaded.Serve.Listen, a.Loaded.Serve.Admin})
	}
	for _, doubt := range a.Doubts() {
		fmt.Fprintf(a.w.stderr, "pgfsm: warning: %s\n", visible.Text(doubt))
	}
	_, err := fmt.Fprintf(a.w.stdout, "%s %s: %s, %s (%d pinned), %s, %s, %s, %s, %s, %s\nplanner %s\ngateway %s, admin %s\nbundle %s\n",
		newInk(a.w).mark(true), visible.Text(a.From), count(len(c.Servers), "server"), count(tools, "allowed tool"), pinned,
		count(len(c.Grants), "grant"), count(len(c.Input.Rules), "input rule"), count(len(c.Planner.Routes), "route"),
		count(len(c.Outputs), "output type"), count(ladder, "risk rule"), counted(policies, "policy", "policies"),
		visible.Text(planner), a.Loaded.Serve.Listen, a.Loaded.Serve.Admin, visible.Text(string(a.Bundle.Digest())))
	return err
}

// count says how many there are of something.
func count(n int, what string) string {
	return counted(n, what, what+"s")
}

// counted is [count] for words with a plural of their own.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
