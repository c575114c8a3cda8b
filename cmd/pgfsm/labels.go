package main

import (
	"context"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/policy"
	"pgfsm/policy/draft"
	"pgfsm/policy/origin"
)

func newLabels(w world) *cobra.Command { return cli.Group("labels", newLabelsDraft(w)) }

func newLabelsDraft(w world) *cobra.Command {
	var o options
	var live bool
	cmd := o.newCommand(w, "draft", cobra.NoArgs, func(ctx context.Context, a *app, _ []string) error {
		return a.draftLabels(ctx, live)
	})
	cmd.Flags().BoolVar(&live, "live", false, "ask the servers for their tools (default: the stored definitions of pinned tools)")
	return cmd
}

// A labelsDraft has proposed roles, in the order of the allowlist.
type labelsDraft struct {
	SchemaVersion int            `json:"schema_version"`
	Roles         []proposedRole `json:"roles"`
	Unknown       []string       `json:"unknown"` // tools whose arguments are not known
}

type proposedRole struct {
	origin.RoleLabel
	Without []string `json:"without_a_role,omitempty"`
}

func (r *proposedRole) isEmpty() bool { return len(r.Target)+len(r.Amount)+len(r.Content) == 0 }

// draftLabels proposes roles for the arguments of the tools on the allowlist.
func (a *app) draftLabels(ctx context.Context, live bool) error {
	catalog, err := a.catalog(ctx, a.Bundle, live)
	if err != nil {
		return err
	}
	if catalog == nil { // no tool is pinned
		catalog = new(policy.Catalog)
	}

	d := labelsDraft{SchemaVersion: cli.SchemaVersion, Roles: []proposedRole{}, Unknown: []string{}}
	seen := map[string]bool{}
	for _, allowed := range a.Bundle.Content().Allowlist {
		for _, name := range allowed.Tools {
			key := allowed.Server + "/" + name
			if seen[key] {
				continue
			}
			seen[key] = true
			t, _ := catalog.Find(allowed.Server, name)
			if t == nil {
				d.Unknown = append(d.Unknown, key)
				continue
			}
			label, without := draft.Roles(t)
			r := proposedRole{label, without}
			if readOnly := t.Annotations.ReadOnly; !r.isEmpty() || readOnly == nil || !*readOnly {
				d.Roles = append(d.Roles, r)
			}
		}
	}
	return a.printDocument(d, cli.ExitYes, d.print)
}

// print prints the draft as a file of labels.
func (d *labelsDraft) print(out io.Writer, _ ink) {
	fmt.Fprint(out, "# Proposed from names, formats and annotations: review each line. docs/guide/origin.md says what the roles mean.\n"+
		"# No result is trusted: add tools whose results strangers cannot write.\nversion: 1\ntools: []\nroles:")
	lines, comments := "", ""
	for _, r := range d.Roles {
		line := flow(r.RoleLabel)
		switch {
		case r.isEmpty():
			comments += "# no role is proposed: " + line + "\n"
		case len(r.Without) > 0:
			lines += "  - " + line + " # without a role: " + flow(r.Without) + "\n"
		default:
			lines += "  - " + line + "\n"
		}
	}
	if lines == "" {
		fmt.Fprint(out, " []")
	}
	if len(d.Unknown) > 0 {
		comments += "# not known; pin these tools, or give --live: " + flow(d.Unknown) + "\n"
	}
	fmt.Fprint(out, "\n", lines, comments)
}

// flow writes a value in one line of YAML.
func flow(v any) string {
	text, err := json.Marshal(v, jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))
	if err != nil {
		panic("labels do not marshal: " + err.Error())
	}
	return string(text)
}
