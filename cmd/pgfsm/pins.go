package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/visible"
	"pgfsm/states"
)

func newPins(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pins",
		Short: "Pin tools to their approved definitions",
		Long: `A pin is the digest of a tool's whole definition, as its server sends it. The allowlist file has it beside the
tool. If a tool's live definition differs from its pin, pgfsm blocks the tool (tool_definition_changed) until
you have looked at the change (pgfsm pins diff) and approve it (pgfsm pins approve).

pins keeps the approved definitions beside the allowlist, in allowlist.pins.json for allowlist.json, so that diff can show
changes. It uses a kept definition only if its digest is the pin.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPinsList(w), newPinsVerify(w), newPinsDiff(w), newPinsApprove(w), newPinsReset(w))
	return cmd
}

// What can be said of an allowlisted tool and its pin.
const (
	pinSame         = "same"           // pinned, and the server sends just that
	pinChanged      = "changed"        // pinned, and the server sends another definition
	pinNone         = "unpinned"       //
	pinUnlisted     = "not_listed"     // by its server, which is up
	pinDown         = "server_down"    //
	pinUnconfigured = "not_configured" // the allowlist names a server that the configuration does not have
	pinAmbiguous    = "ambiguous"      // the server lists the name more than once
	pinMade         = "pinned"         // just now
	pinRefused      = "refused"        // the tool's schema is refused, so no run could call it
	pinUnexpected   = "unexpected"     // the live definition is not the one that --expect names
)

// pinRow is one allowlisted tool.
type pinRow struct {
	Server     string           `json:"server"`
	Tool       string           `json:"tool"`
	Status     string           `json:"status,omitzero"`
	Pin        canonical.Digest `json:"pin,omitzero"`
	Was        canonical.Digest `json:"was,omitzero"`        // the pin before
	Definition canonical.Digest `json:"definition,omitzero"` // the live one
	Reason     string           `json:"reason,omitzero"`
	Next       string           `json:"next,omitzero"` // the command to run

	live *policy.Tool
}

// pinCommand is one of the commands at work.
type pinCommand struct {
	*options
	w    world
	file *allowlistFile
}

// live asks the servers and says of each row how its pin stands. Pins and grants take nothing away here: what is looked
// at is what the servers send.
func (p *pinCommand) live(ctx context.Context, rows []pinRow) (c *policy.Catalog, err error) {
	err = p.with(ctx, p.w, func(a *app) error {
		content := *a.bundle.Content()
		content.Allowlist, content.Pins, content.Grants = p.file.tools, nil, nil
		b, err := policy.Compile(content)
		if err != nil {
			return err
		}
		listed, err := a.list(ctx)
		if err != nil {
			return err
		}
		c = b.Catalog(listed.Catalog(), listed.Servers)
		for i := range rows {
			rows[i].judge(c)
		}
		return nil
	})
	return c, err
}

// judge compares the pin with what the tool's server sends.
func (r *pinRow) judge(c *policy.Catalog) {
	r.Status = pinUnconfigured
	for _, s := range c.Servers {
		if s.Server != r.Server {
			continue
		}
		if r.Status = pinUnlisted; s.Status != policy.ServerUp {
			r.Status, r.Reason = pinDown, fmt.Sprintf("[%s] %s", s.Code, s.Reason)
			return
		}
	}
	t, found := c.Find(r.Server, r.Tool)
	if !found.Allows() {
		return
	}
	r.live = t
	if t.Code == policy.CodeToolAmbiguous {
		r.Status = pinAmbiguous
		return
	}
	switch r.Definition = t.Digest; r.Pin {
	case r.Definition:
		r.Status = pinSame
	case "":
		r.Status = pinNone
	default:
		r.Status = pinChanged
	}
}

// compared reports whether the live definition is known.
func (r *pinRow) compared() bool { return r.Definition != "" }

// unanswered reports whether nothing could be looked at, for no server that matters answered.
func unanswered(c *policy.Catalog, rows []pinRow) bool {
	if !c.Up() {
		return true
	}
	for _, r := range rows {
		if r.Status != pinDown && r.Status != pinUnconfigured {
			return false
		}
	}
	return len(rows) > 0
}

// says is what a row means, in words.
func (r *pinRow) says() string {
	switch r.Status {
	case "":
		switch {
		case r.Pin != "":
			return string(r.Pin)
		case r.Was != "":
			return "no longer pinned; it was " + r.Was.Short()
		}
		return "not pinned"
	case pinSame:
		return "as pinned, " + r.Pin.Short()
	case pinChanged:
		return fmt.Sprintf("changed: %s is pinned, its server sends %s", r.Pin.Short(), r.Definition.Short())
	case pinNone:
		return "not pinned; its server sends " + r.Definition.Short()
	case pinUnlisted:
		return "its server does not list it"
	case pinDown:
		return "its server is down: " + r.Reason
	case pinUnconfigured:
		return "no such server is configured"
	case pinAmbiguous:
		return "its server lists this name more than once"
	case pinMade:
		if r.Was != "" {
			return fmt.Sprintf("pinned: %s, in the place of %s", r.Pin.Short(), r.Was.Short())
		}
		return "pinned: " + r.Pin.Short()
	case pinRefused:
		return "its schema is refused: " + r.Reason
	}
	return fmt.Sprintf("not what was expected: its server sends %s", r.Definition)
}

// print shows a row to people.
func (r *pinRow) print(out io.Writer, k ink) {
	mark := ""
	if r.Status != "" {
		mark = k.mark(r.Status == pinSame || r.Status == pinMade) + " "
	}
	says := visible.Clip(r.says(), maxLine)
	fmt.Fprintf(out, "%s%s %-28s %s\n", mark, visible.Text(r.Server), visible.Text(r.Tool), says)
}

// printNext shows the command that comes next.
func (r *pinRow) printNext(out io.Writer, k ink, why string) {
	if r.Next != "" {
		fmt.Fprintf(out, "  %s %s\n", k.faint(why), visible.Text(r.Next))
	}
}

// command writes a command line with the same configuration, fit for a shell.
func (p *pinCommand) command(flags []string, names ...string) string {
	words := append([]string{"pgfsm", "pins"}, flags...)
	if p.config != "" {
		words = append(words, "-c", p.config)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "-") {
			words = append(words, "--")
			break
		}
	}
	words = append(words, names...)
	for i, w := range words {
		if !visible.PlainWord(w) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// diffNext is the command that shows what changed.
func (p *pinCommand) diffNext(r *pinRow) string { return p.command([]string{"diff"}, r.Server, r.Tool) }

// approveNext is the command that approves just what was shown.
func (p *pinCommand) approveNext(r *pinRow) string {
	return p.command([]string{"approve", "--expect", string(r.Definition)}, r.Server, r.Tool)
}

// pinAction is what a command does with the tools that its words name.
type pinAction func(ctx context.Context, p *pinCommand, rows []pinRow, words []string) error

// newPinsCommand makes one of the commands: it reads the allowlist and hands it over.
func newPinsCommand(w world, cmd *cobra.Command, do pinAction) *cobra.Command {
	var o options
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		f, err := readAllowlist(w, &o)
		if err != nil {
			return err
		}
		rows, err := f.scope(words)
		if err != nil {
			return err
		}
		return do(cmd.Context(), &pinCommand{&o, w, f}, rows, words)
	}
	o.register(cmd)
	return cmd
}

func newPinsList(w world) *cobra.Command {
	return newPinsCommand(w, &cobra.Command{
		Use:   "list",
		Short: "List the allowlisted tools and their pins",
		Long:  "list reads the allowlist and contacts no server.",
		Args:  cobra.NoArgs,
	}, func(_ context.Context, p *pinCommand, rows []pinRow, _ []string) error {
		if p.json {
			return printJSON(w.stdout, struct {
				SchemaVersion int      `json:"schema_version"`
				Allowlist     string   `json:"allowlist"`
				Tools         []pinRow `json:"tools"`
			}{schemaVersion, p.file.path, rows})
		}
		k := newInk(w)
		for i := range rows {
			rows[i].print(w.stdout, k)
		}
		return nil
	})
}

func newPinsVerify(w world) *cobra.Command {
	return newPinsCommand(w, &cobra.Command{
		Use:   "verify",
		Short: "Compare the pins with the definitions that servers send now",
		Long: `verify asks every server for its tools and compares their definitions with the pins. Exit code 0 only if every
allowlisted tool is pinned and the same; 1 if any is changed, not pinned, not listed, listed twice or its server
is down; 2 if no server answered.`,
		Args: cobra.NoArgs,
	}, verifyPins)
}

func verifyPins(ctx context.Context, p *pinCommand, rows []pinRow, _ []string) error {
	c, err := p.live(ctx, rows)
	if err != nil {
		return err
	}
	code := exitYes
	for i := range rows {
		if rows[i].Status != pinSame {
			code = exitNo
		}
		if rows[i].Status == pinChanged {
			rows[i].Next = p.diffNext(&rows[i])
		}
	}
	if unanswered(c, rows) {
		code = exitCould
	}
	if p.json {
		err := printJSON(p.w.stdout, struct {
			SchemaVersion int                   `json:"schema_version"`
			OK            bool                  `json:"ok"`
			Servers       []states.ServerStatus `json:"servers"`
			Tools         []pinRow              `json:"tools"`
		}{schemaVersion, code == exitYes, states.Statuses(c), rows})
		if err != nil {
			return err
		}
		return exit(code)
	}
	k, same := newInk(p.w), 0
	for i := range rows {
		rows[i].print(p.w.stdout, k)
		rows[i].printNext(p.w.stdout, k, "what changed:")
		if rows[i].Status == pinSame {
			same++
		}
	}
	fmt.Fprintf(p.w.stdout, "%d of %d allowlisted tools are as pinned\n", same, len(rows))
	return exit(code)
}
