package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
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
	cmd := o.newCommand(w, "tools", cobra.NoArgs,
		func(ctx context.Context, a *app, _ []string) error { return a.listTools(ctx, notAllowed) })
	o.addGrantFlag(cmd)
	o.addServerUserFlag(cmd)
	cmd.Flags().BoolVar(&notAllowed, "not-allowed", false, "list only the tools that are not on the allowlist")
	return cmd
}

// askForTools asks every server, or only the named ones, for their tools.
func (a *app) askForTools(ctx context.Context, only ...string) (*states.ToolsListed, error) {
	if err := a.Start(ctx); err != nil {
		return nil, err
	}
	r, err := runner.New(a.runnerOptions(nil))
	if err != nil {
		return nil, err
	}
	return r.List(ctx, only...)
}

// catalog returns the current listings of the servers (no names: all) if live is true; otherwise
// the stored definitions of pins, or nil without any.
func (a *app) catalog(ctx context.Context, b *policy.Bundle, live bool, only ...string) (*policy.Catalog, error) {
	if live {
		listed, err := a.askForTools(ctx, only...)
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
	for i := range servers {
		if a.Upstreams.ClientTools(servers[i].Server) != nil {
			servers[i].Protocol = "" // there is no connection: the client asks by hook
		}
	}
	reads, others := present.NotAllowed(tools)
	if notAllowed {
		tools = slices.Concat(reads, others)
	}

	text := templatePrinter("tools", struct {
		Servers []states.ServerStatus
		Tools   []present.Tool
	}{servers, tools})
	if notAllowed {
		down := slices.DeleteFunc(slices.Clone(servers),
			func(s states.ServerStatus) bool { return s.Status == policy.ServerUp })
		text = templatePrinter("not allowed", struct {
			Down          []states.ServerStatus // their tools are unknown
			Up            bool
			Reads, Others []present.Tool
		}{down, len(down) < len(servers), reads, others})
	}

	return a.printDocument(cli.Document("servers", servers, "tools", tools), code, text)
}

// serverHead describes a server in one line.
func serverHead(s states.ServerStatus) string {
	if s.Status != policy.ServerUp {
		return fmt.Sprintf("%s is down: [%s] %s", visible.Text(s.Server), s.Code, visible.Text(s.Reason))
	}
	how := "asks by hook"
	if s.Protocol != "" {
		how = "MCP " + visible.Text(s.Protocol)
	}
	return fmt.Sprintf("%s (%s, %s)", visible.Text(s.Server), cli.Count(s.Tools, "tool"), how)
}

// allowOptions are the flags of allow.
type allowOptions struct {
	options
	group              string
	yes, full          bool
	all, readOnlyTools bool
}

func newAllow(w world) *cobra.Command {
	var o allowOptions
	cmd := newCommand("allow SERVER {TOOL... | --read-only | --all}", cobra.MinimumNArgs(1), func(cmd *cobra.Command, names []string) error {
		switch some := o.all || o.readOnlyTools; {
		case o.json && !o.yes:
			return errors.New("--json asks nothing: it needs --yes")
		case some == (len(names) > 1) || o.all && o.readOnlyTools:
			return errors.New("name the tools, or say either --read-only or --all; pgfsm tools --not-allowed lists the tools")
		}
		p, err := openPins(w, &o.options, o.group)
		if err != nil {
			return err
		}
		return p.allowTools(cmd.Context(), names[0], names[1:], &o)
	})

	o.addFlags(cmd)
	o.addServerUserFlag(cmd)
	addGroupFlag(cmd, &o.group)
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&o.full, "full", false, "show the whole definitions")
	cmd.Flags().BoolVar(&o.all, "all", false, "all tools of the server")
	cmd.Flags().BoolVar(&o.readOnlyTools, "read-only", false, "all tools of the server that say they only read")

	return cmd
}

// allowTools shows tools of a server and then puts them on the allowlist. Without names, it chooses
// the tools.
func (p *pinCommand) allowTools(ctx context.Context, server string, tools []string, o *allowOptions) error {
	d, err := p.readDefinitions()
	if err != nil {
		return err
	}

	b, listed, err := p.askForTools(ctx, server)
	if err != nil {
		return err
	}
	if len(tools) == 0 {
		if tools, err = p.chooseTools(b, listed, server, o.readOnlyTools); err != nil {
			return err
		}
	}
	if p.tools, err = p.file.Add(server, tools...); err != nil {
		return err
	}

	catalog, err := p.file.Compare(p.tools, b, listed.Catalog(), listed.Servers)
	if err != nil {
		return err
	}

	// Every tool must be allowable: a part of the list is never written.
	rows, added := p.newRows(), 0
	for i := range p.tools {
		t := &p.tools[i]
		if err := checkAllowed(t, b, catalog); err != nil {
			return err
		}
		if t.Status == pins.Unpinned {
			added++
			rows[i].Live = t.LiveDefinition()
		}
	}

	if !p.json {
		p.showTools(o.full)
	}

	if added > 0 && !o.yes {
		if err := p.w.confirm(fmt.Sprintf("Allow %s in %s?", cli.Count(added, "tool"), p.file.Path)); err != nil {
			return err
		}
	}
	if err := p.file.Approve(p.tools, "", false, d); err != nil {
		return err
	}
	if p.json {
		for i := range rows {
			rows[i].Entry = p.tools[i]
		}
		return p.printDocument(pinsDocument{Allowlist: p.file.Path, Tools: rows}, "", "", cli.ExitYes)
	}
	if added == 0 {
		fmt.Fprintf(p.w.stdout, "nothing was written to %s\n", visible.Text(p.file.Path))
		return nil
	}

	fmt.Fprintf(p.w.stdout, "%s allowed and pinned in %s\nif a gateway is running, run pgfsm reload, or send it SIGHUP\n",
		cli.Count(added, "tool"), visible.Text(p.file.Path))
	return nil
}

// chooseTools returns all tools of a server, or the tools that claim to only read. It omits tools
// that cannot be allowed, and prints their names.
func (p *pinCommand) chooseTools(b *policy.Bundle, listed *states.ToolsListed, server string,
	readOnly bool) (tools []string, err error) {
	c := b.Catalog(listed.Catalog(), listed.Servers)
	for _, s := range states.Statuses(c) {
		if s.Server == server && s.Status != policy.ServerUp {
			return nil, errors.New(serverHead(s))
		}
	}

	if servers := b.Servers(); !slices.Contains(servers, server) {
		return nil, fmt.Errorf("no server %q is configured%s", server, didYouMean(server, servers))
	}

	for _, s := range c.Servers {
		for _, e := range s.LeftOut {
			if s.Server == server {
				p.w.warn(fmt.Sprintf("left out: entry %d %q of the list is no tool of MCP: %s", e.Index,
					visible.Text(e.Name), visible.Text(e.Reason)))
			}
		}
		for _, t := range s.Tools {
			if hint := t.Annotations.ReadOnly; s.Server == server && (!readOnly || hint != nil && *hint) {
				tools = append(tools, t.Name)
			}
		}
	}

	if len(tools) == 0 {
		return nil, fmt.Errorf("%s lists no such tool", visible.Text(server))
	}

	// Add and Compare change a copy, to learn which of the tools can be allowed.
	trial := *p.file
	entries, err := trial.Add(server, tools...)
	if err != nil {
		return nil, err
	}
	if _, err := trial.Compare(entries, b, listed.Catalog(), listed.Servers); err != nil {
		return nil, err
	}

	tools = nil
	for i := range entries {
		if err := entries[i].CheckAllowed(); err != nil {
			p.w.warn("left out: " + err.Error())
			continue
		}
		tools = append(tools, entries[i].Tool)
	}

	return tools, nil
}

// checkAllowed calls [pins.Entry.CheckAllowed]. For an unknown server or tool, its error suggests a
// similar name.
func checkAllowed(t *pins.Entry, b *policy.Bundle, c *policy.Catalog) error {
	err, suggestion := t.CheckAllowed(), ""
	switch t.Status {
	case pins.NotConfigured:
		suggestion = didYouMean(t.Server, b.Servers())
	case pins.NotListed:
		var names []string
		for _, s := range c.Servers {
			for _, tool := range s.Tools {
				names = append(names, tool.Name)
			}
		}
		suggestion = didYouMean(t.Tool, names)
	}
	if err != nil {
		return fmt.Errorf("%w%s; nothing was written", err, suggestion)
	}
	return nil
}

// didYouMean suggests the most similar name, if there is one.
func didYouMean(name string, names []string) string {
	if suggestion := config.Nearest(name, names); suggestion != "" {
		return "; " + visible.Text(suggestion)
	}
	return ""
}

// showTools prints the tools to allow: one line for each, or the whole definitions.
func (p *pinCommand) showTools(full bool) {
	anyNew := slices.ContainsFunc(p.tools, func(t pins.Entry) bool { return t.Status == pins.Unpinned })
	templatePrinter("allow", struct {
		Tools       []pins.Entry
		Full, Short bool
	}{p.tools, full, anyNew && !full})(p.w.stdout, newInk(p.w))
}
