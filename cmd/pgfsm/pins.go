package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"pgfsm/internal/canonical"
	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/config/pins"
	"pgfsm/internal/docdiff"
	"pgfsm/internal/present"
	"pgfsm/internal/runner/setup"
	"pgfsm/policy"
	"pgfsm/states"
)

func newPins(w world) *cobra.Command {
	return cli.Group("pins", newPinsList(w), newPinsVerify(w), newPinsDiff(w), newPinsApprove(w), newPinsReset(w))
}

// pinCommand holds the state of a running pins command, with the tools that its arguments name.
type pinCommand struct {
	*options
	w     world
	group string // the allowlist's group; empty: the default allowlist
	file  *pins.File
	tools []pins.Entry
}

// newPinsCommand makes a pins command. It reads the allowlist file that the configuration or
// SAFE_ALLOWLIST_PATH names.
func newPinsCommand(w world, use string, args cobra.PositionalArgs,
	do func(ctx context.Context, p *pinCommand, names []string) error) *cobra.Command {
	var o options
	var group string
	cmd := newCommand(use, args, func(cmd *cobra.Command, names []string) error {
		p, err := openPins(w, &o, group)
		if err != nil {
			return err
		}
		if p.tools, err = p.file.Select(names...); err != nil {
			return err
		}
		return do(cmd.Context(), p, names)
	})
	o.addFlags(cmd)
	switch cmd.Name() {
	case "verify", "diff", "approve": // these ask the servers
		o.addServerUserFlag(cmd)
	}
	addGroupFlag(cmd, &group)
	return cmd
}

func addGroupFlag(cmd *cobra.Command, group *string) {
	cmd.Flags().StringVar(group, "group", "",
		"the group whose allowlist has the tools (default: the default allowlist)")
}

// openPins reads the allowlist file of a group, or the default one.
func openPins(w world, o *options, group string) (*pinCommand, error) {
	loaded, source, err := loadConfig(w, o)
	if err != nil {
		return nil, err
	}
	if source == setup.EmbeddedDemo && w.env("SAFE_ALLOWLIST_PATH") == "" {
		return nil, fmt.Errorf("%s has no allowlist file to hold pins: pgfsm init writes a configuration that has one", source)
	}

	path := loaded.AllowlistPath
	if group != "" {
		i := slices.IndexFunc(loaded.GroupLists, func(l config.GroupList) bool { return l.Group == group })
		if i < 0 {
			return nil, fmt.Errorf("--group: allowlist.groups has no group %q", group)
		}
		path = loaded.GroupLists[i].Path
	}

	file, err := pins.Read(path)
	if err != nil {
		return nil, err
	}
	if err := file.ReadOthers(loaded.Allowlists()); err != nil {
		return nil, err
	}

	return &pinCommand{options: o, w: w, group: group, file: file}, nil
}

// compareLive asks the servers for their tools and compares them with the pins.
func (p *pinCommand) compareLive(ctx context.Context) (*policy.Catalog, error) {
	b, listed, err := p.askForTools(ctx)
	if err != nil {
		return nil, err
	}
	return p.file.Compare(p.tools, b, listed.Catalog(), listed.Servers)
}

// askForTools asks every server, or only the named ones, for their tools.
func (p *pinCommand) askForTools(ctx context.Context, only ...string) (b *policy.Bundle, listed *states.ToolsListed,
	err error) {
	err = p.withApp(p.w, func(a *app) (err error) {
		b = a.Bundle
		listed, err = a.askForTools(ctx, only...)
		return err
	})
	return b, listed, err
}

// readDefinitions reads the approved definitions, and prints a warning if their file has a fault.
func (p *pinCommand) readDefinitions() (*pins.Definitions, error) {
	d, err := pins.ReadDefinitions(p.file.Path)
	if err != nil {
		return nil, err
	}
	if d.Warning != "" {
		p.w.warn("warning: " + d.Warning)
	}
	return d, nil
}

// pinRow is one tool in its printed form.
type pinRow struct {
	pins.Entry
	Next    string           `json:"next,omitzero"` // the command to run
	Changes []docdiff.Change `json:"changes,omitzero"`
	// Replaces Changes if the approved definition is not stored.
	Live jsontext.Value `json:"live,omitzero"`
}

func (p *pinCommand) newRows() []pinRow {
	rows := make([]pinRow, len(p.tools))
	for i := range rows {
		rows[i].Entry = p.tools[i]
	}
	return rows
}

// pinsDocument is the --json form of every pins command.
type pinsDocument struct {
	SchemaVersion int                   `json:"schema_version"`
	Allowlist     string                `json:"allowlist,omitzero"`
	OK            *bool                 `json:"ok,omitzero"`
	Servers       []states.ServerStatus `json:"servers,omitzero"`
	Tools         []pinRow              `json:"tools"`
}

// printDocument prints the document, or its rows with an explanation of the next command and a
// summary.
func (p *pinCommand) printDocument(d pinsDocument, next, summary string, code int) error {
	d.SchemaVersion = cli.SchemaVersion
	return p.w.printDocument(p.json, d, code, templatePrinter("pins", struct {
		Tools            []pinRow
		Explain, Summary string
	}{d.Tools, next, summary}))
}

// commandFor returns the text of a command about one tool, with the same configuration.
func (p *pinCommand) commandFor(t *pins.Entry, words ...string) string {
	if p.group != "" {
		words = append(words, "--group", p.group)
	}
	return (&present.Pins{Config: p.config}).Command(t.Server, t.Tool, words...)
}

func newPinsList(w world) *cobra.Command {
	return newPinsCommand(w, "list", cobra.NoArgs, func(_ context.Context, p *pinCommand, _ []string) error {
		return p.printDocument(pinsDocument{Allowlist: p.file.Path, Tools: p.newRows()}, "", "", cli.ExitYes)
	})
}

func newPinsVerify(w world) *cobra.Command {
	return newPinsCommand(w, "verify", cobra.NoArgs, func(ctx context.Context, p *pinCommand, _ []string) error {
		c, err := p.compareLive(ctx)
		if err != nil {
			return err
		}

		rows, same := p.newRows(), 0
		for i := range rows {
			switch r := &rows[i]; r.Status {
			case pins.Same:
				same++
			case pins.Changed:
				r.Next = p.commandFor(&r.Entry, "diff")
			}
		}

		code := cli.ExitYes
		switch {
		case !pins.Answered(c, p.tools):
			code = cli.ExitFailed
		case same < len(rows):
			code = cli.ExitNo
		}

		return p.printDocument(pinsDocument{OK: new(code == cli.ExitYes), Servers: states.Statuses(c), Tools: rows},
			"what changed:",
			fmt.Sprintf("%d of %d allowlisted tools are as pinned", same, len(rows)), code)
	})
}

func newPinsDiff(w world) *cobra.Command {
	return newPinsCommand(w, "diff [SERVER [TOOL]]", cobra.MaximumNArgs(2), func(ctx context.Context, p *pinCommand, _ []string) error {
		d, err := p.readDefinitions()
		if err != nil {
			return err
		}
		c, err := p.compareLive(ctx)
		if err != nil {
			return err
		}

		rows, code := p.newRows(), cli.ExitYes
		for i := range rows {
			r := &rows[i]
			if r.Pin != "" && r.Status != pins.Same {
				code = cli.ExitNo
			}
			if r.Status != pins.Changed {
				continue
			}
			r.Next = p.commandFor(&r.Entry, "approve", "--expect", string(r.Definition))
			stored := false
			if r.Changes, stored = d.Diff(&r.Entry); !stored {
				r.Live = r.LiveDefinition()
				r.Reason = "the definition that was approved is not kept in " + d.Path + "; live is the new one, whole"
			}
		}

		if !pins.Answered(c, p.tools) {
			code = cli.ExitFailed
		}

		return p.printDocument(pinsDocument{Tools: rows}, "to approve just this:", "", code)
	})
}

func newPinsApprove(w world) *cobra.Command {
	var expect string
	var yes bool
	var cmd *cobra.Command
	cmd = newPinsCommand(w, "approve [SERVER [TOOL]]", cobra.MaximumNArgs(2), func(ctx context.Context, p *pinCommand, names []string) error {
		if cmd.Flags().Changed("expect") && yes {
			return errors.New("--expect names one definition and --yes takes any: use one of them")
		}
		if cmd.Flags().Changed("expect") { // an empty value comes from an unset variable
			if len(names) != 2 {
				return errors.New("--expect names the definition of one tool: name its server and the tool")
			}
			if _, err := canonical.ParseDigest(expect); err != nil {
				return fmt.Errorf("--expect: %w", err)
			}
		}
		return p.approveTools(ctx, canonical.Digest(expect), yes, len(names) == 2)
	})

	cmd.Flags().BoolVar(&yes, "yes", false, "approve changed definitions, too")
	cmd.Flags().StringVar(&expect, "expect", "", "the digest that the tool's live definition must have")

	return cmd
}

// approveTools pins the tools that can be pinned. If the command names a single tool and that
// cannot be pinned, approve returns an error.
func (p *pinCommand) approveTools(ctx context.Context, expect canonical.Digest, yes, one bool) error {
	d, err := p.readDefinitions()
	if err != nil {
		return err
	}
	c, err := p.compareLive(ctx)
	if err != nil {
		return err
	}

	changes := make([][]docdiff.Change, len(p.tools))
	for i := range p.tools {
		if t := &p.tools[i]; yes && t.Status == pins.Changed {
			changes[i], _ = d.Diff(t)
		}
	}

	if err := p.file.Approve(p.tools, expect, yes, d); err != nil {
		return err
	}

	rows, code, made := p.newRows(), cli.ExitYes, 0
	for i := range rows {
		rows[i].Changes = changes[i]
		switch r := &rows[i]; r.Status {
		case pins.Same:
		case pins.Pinned:
			made++
		case pins.Changed, pins.Unexpected:
			code, r.Next = cli.ExitNo, p.commandFor(&r.Entry, "diff")
		default:
			if code = cli.ExitNo; one {
				return fmt.Errorf("%s %s cannot be pinned: %s", r.Server, r.Tool, r.Describe())
			}
		}
	}

	refuted, err := p.proveAgain(ctx)
	if err != nil {
		return err
	}
	if refuted && code == cli.ExitYes {
		code = cli.ExitNo
	}

	if !pins.Answered(c, p.tools) {
		code = cli.ExitFailed
	}

	return p.printDocument(pinsDocument{Allowlist: p.file.Path, Tools: rows}, "what changed, and how to approve it:",
		fmt.Sprintf("%d tools pinned", made), code)
}

// proveAgain proves the claims of the configuration with the approved definitions. It warns about
// those that are not proved, and reports whether one is refuted.
func (p *pinCommand) proveAgain(ctx context.Context) (refuted bool, err error) {
	loaded, source, err := loadConfig(p.w, p.options)
	if err != nil || len(loaded.Claims) == 0 {
		return false, err
	}
	s, err := setup.Open(p.setupOptions(p.w), loaded, source)
	if err != nil {
		return false, err
	}
	a := &app{s, p.w, p.config, p.json}
	defer a.closeOrWarn()

	catalog, err := a.catalog(ctx, a.Bundle, false)
	if err != nil {
		return false, err
	}
	_, unproved, err := a.ProveClaims(ctx, catalog)
	for _, c := range unproved {
		refuted = refuted || c.Refuted
		p.w.warn("warning: " + c.Problem)
	}
	return refuted, err
}

func newPinsReset(w world) *cobra.Command {
	var all bool
	cmd := newPinsCommand(w, "reset {SERVER [TOOL] | --all}", func(_ *cobra.Command, names []string) error {
		if all == (len(names) > 0) || len(names) > 2 {
			return errors.New("name a server, or a server and a tool, or say --all")
		}
		return nil
	}, func(_ context.Context, p *pinCommand, _ []string) (err error) {
		if p.tools, err = p.file.Reset(p.tools); err != nil {
			return err
		}
		return p.printDocument(pinsDocument{Allowlist: p.file.Path, Tools: p.newRows()}, "",
			fmt.Sprintf("%d pins removed", len(p.tools)), cli.ExitYes)
	})
	cmd.Flags().BoolVar(&all, "all", false, "remove every pin")
	return cmd
}
