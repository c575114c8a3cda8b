package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config/pins"
	"pgfsm/internal/present"
	"pgfsm/internal/runner"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/states"
)

func newTools(w world) *cobra.Command {
	var o options
	var notAllowed bool
	cmd := o.command(w, "tools", cobra.NoArgs, func(ctx context.Context, a *app, _ []string) error { return a.listTools(ctx, notAllowed) })
	o.registerGrants(cmd)
	o.registerServerUser(cmd)
	cmd.Flags().BoolVar(&notAllowed, "not-allowed", false, "list only the tools that are not on the allowlist")
	return cmd
}

// list asks every server, or only the named ones, for their tools.
func (a *app) list(ctx context.Context, only ...string) (*states.ToolsListed, error) {
	if err := a.Start(ctx); err != nil {
		return nil, err
	}
	r, err := runner.New(a.runnerOptions(nil))
	if err != nil {
		return nil, err
	}
	return r.List(ctx, only...)
}

// catalog returns the current listings of the servers (no names: all) if live is true; otherwise the stored definitions of pins, or nil
// without any.
func (a *app) catalog(ctx context.Context, b *policy.Bundle, live bool, only ...string) (*policy.Catalog, error) {
	if live {
		listed, err := a.list(ctx, only...)
		if err != nil {
			return nil, err
		}
		return b.Catalog(listed.Catalog(), listed.Servers), nil
	}
	c, warning, err := pins.Stored(b, a.Loaded.Allowlists())
	if warning != "" {
		a.w.warn("warning: " + warning)
	}
	return c, err
}

func (a *app) listTools(ctx context.Context, notAllowed bool) error {
	c, err := a.catalog(ctx, a.Bundle, true)
	if err != nil {
		return err
	}
	code := cli.ExitYes
	if !c.Up() {
		code = cli.ExitFailed
	}
	servers, tools := states.Statuses(c), present.Tools(a.Bundle.Content(), c)
	reads, others := present.NotAllowed(tools)
	if notAllowed {
		tools = slices.Concat(reads, others)
	}
	return a.print(cli.Document("servers", servers, "tools", tools), code, func(out io.Writer, k ink) {
		if notAllowed {
			printNotAllowed(out, k, servers, reads, others)
		} else {
			printTools(out, k, servers, tools)
		}
	})
}

func printTools(out io.Writer, k ink, servers []states.ServerStatus, tools []present.Tool) {
	for _, s := range servers {
		head := fmt.Sprintf("%s (%s, MCP %s)", visible.Text(s.Server), cli.Count(s.Tools, "tool"), visible.Text(s.Protocol))
		if s.Status != policy.ServerUp {
			head = downHead(&s)
		}
		fmt.Fprintln(out, k.bold(head))
		table := cli.NewTable(out)
		for _, t := range tools {
			if t.Server == s.Server {
				fmt.Fprintf(table, "  %s %s\t%s\n", k.mark(t.Allowed), visible.Text(t.Name), k.faint(visible.Clip(t.Detail(), maxLine)))
				printWarnings(table, k, t.Warning, t.Note)
			}
		}
		table.Flush()
	}
}

func downHead(s *states.ServerStatus) string {
	return fmt.Sprintf("%s is down: [%s] %s", visible.Text(s.Server), s.Code, visible.Text(s.Reason))
}

// printWarnings prints warnings about the tool in the line before.
func printWarnings(table io.Writer, k ink, warnings ...string) {
	for _, warning := range warnings {
		if warning != "" {
			fmt.Fprintf(table, "\t%s\n", k.bad.Sprint("! "+visible.Clip(warning, maxLine)))
		}
	}
}

// printNotAllowed prints the tools that the allowlist does not name, grouped by their own hints.
func printNotAllowed(out io.Writer, k ink, servers []states.ServerStatus, reads, others []present.Tool) {
	up := false
	for _, s := range servers {
		if s.Status == policy.ServerUp {
			up = true
		} else { // the tools of this server are unknown
			fmt.Fprintln(out, k.bold(downHead(&s)))
		}
	}
	for _, part := range []struct {
		head  string
		tools []present.Tool
	}{{"These say that they only read. It is only their server's word:", reads}, {"These may write:", others}} {
		if len(part.tools) == 0 {
			continue
		}
		fmt.Fprintln(out, k.bold(part.head))
		table := cli.NewTable(out)
		for _, t := range part.tools {
			fmt.Fprintf(table, "  %s %s\t%s\n", visible.Text(t.Server), visible.Text(t.Name), k.faint(visible.Clip(t.Description, maxLine)))
			if t.Code != policy.CodeToolNotAllowed {
				printWarnings(table, k, fmt.Sprintf("[%s] %s", t.Code, t.Reason))
			}
			printWarnings(table, k, t.Note)
		}
		table.Flush()
	}
	switch {
	case len(reads)+len(others) > 0:
		fmt.Fprintln(out, "to allow some: pgfsm allow SERVER TOOL...")
	case up:
		fmt.Fprintln(out, "every tool that the servers list is on the allowlist")
	}
}
