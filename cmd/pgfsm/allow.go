package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/config/pins"
	"pgfsm/policy/docdiff"
	"pgfsm/policy/visible"
	"pgfsm/present"
)

func newAllow(w world) *cobra.Command {
	var o options
	var group string
	var yes bool
	cmd := &cobra.Command{
		Use:   "allow SERVER TOOL...",
		Short: "Put tools on the allowlist and pin them",
		Long: `allow asks the server for its tools and shows the whole definition of each named tool. If you answer yes, it writes the
tools into the allowlist, pinned to these definitions. All that a definition says is the server's word, also that the
tool only reads. Policies still judge each call: pgfsm policy explain shows what they decide.

Exit code 1 if you do not answer yes. If one of the tools cannot be allowed, allow writes nothing and exits with 2.`,
		Example: `  pgfsm tools --not-allowed
  pgfsm allow mcp-policy-kb fetch_policy_entry search_policy_kb`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, names []string) error {
			if o.json && !yes {
				return errors.New("--json asks nothing: it needs --yes")
			}
			p, err := openPins(w, &o, group)
			if err != nil {
				return err
			}
			return p.allow(cmd.Context(), names[0], names[1:], yes)
		},
	}
	o.register(cmd)
	registerGroup(cmd, &group)
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// allow puts tools of a server on the allowlist, after it has shown them.
func (p *pinCommand) allow(ctx context.Context, server string, tools []string, yes bool) (err error) {
	if p.tools, err = p.file.Add(server, tools...); err != nil {
		return err
	}
	d, err := p.definitions()
	if err != nil {
		return err
	}
	if _, err := p.compare(ctx); err != nil {
		return err
	}
	rows, added := p.rows(), 0
	for i := range p.tools {
		t := &p.tools[i]
		if err := t.CheckAllowed(); err != nil {
			return fmt.Errorf("%w; nothing was written", err)
		}
		if t.Status == pins.Unpinned {
			added++
			rows[i].Live = t.LiveDefinition()
		}
		if !p.json {
			p.show(t)
		}
	}
	if added > 0 && !yes && !p.w.confirm(fmt.Sprintf("Allow %s in %s?", count(added, "tool"), p.file.Path)) {
		p.w.warn("nothing was written: answer y, or use --yes")
		return exit(exitNo)
	}
	if err := p.file.Approve(p.tools, "", d); err != nil {
		return err
	}
	if p.json {
		for i := range rows {
			rows[i].Entry = p.tools[i]
		}
		return p.print(pinsDocument{Allowlist: p.file.Path, Tools: rows}, "", "", exitYes)
	}
	fmt.Fprintf(p.w.stdout, "%s allowed and pinned in %s\n", count(added, "tool"), visible.Text(p.file.Path))
	if added > 0 {
		fmt.Fprintln(p.w.stdout, "if a gateway is running, run pgfsm reload")
	}
	return nil
}

// show prints what would be allowed.
func (p *pinCommand) show(t *pins.Entry) {
	out, k := p.w.stdout, newInk(p.w)
	if t.Status == pins.Same {
		fmt.Fprintf(out, "%s %s is allowed already, %s\n", visible.Text(t.Server), visible.Text(t.Tool), t.Describe())
		return
	}
	hints := t.Annotations()
	fmt.Fprintf(out, "%s\n  %s\n", k.bold(visible.Text(t.Server)+" "+visible.Text(t.Tool)), k.faint("the server says: "+present.Hints(&hints)))
	printBlock(out, k, docdiff.Plus, t.LiveDefinition())
}
