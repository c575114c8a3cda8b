package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/config/pins"
	"pgfsm/policy"
	"pgfsm/policy/visible"
	"pgfsm/runner"
	"pgfsm/states"
)

func newTools(w world) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools of all servers, and whether they may be called",
		Long: `tools asks every configured server for its tools. For each tool it shows whether it may be called and why not, its schema
dialect, its annotations, and whether it is pinned to this definition (pgfsm pins). It marks allowlisted tools that are not
annotated as read-only. Exit code 2 if no server answered.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.with(cmd.Context(), w, func(a *app) error { return a.listTools(cmd.Context(), o.json) })
		},
	}
	o.register(cmd)
	o.registerGrants(cmd)
	return cmd
}

// shownTool is one line of the catalog.
type shownTool struct {
	Server      string             `json:"server"`
	Name        string             `json:"name"`
	Title       string             `json:"title,omitzero"`
	Description string             `json:"description,omitzero"`
	Allowed     bool               `json:"allowed"`
	Code        policy.Code        `json:"code,omitzero"` // why it cannot be called
	Reason      string             `json:"reason,omitzero"`
	Dialect     string             `json:"dialect,omitzero"`
	Open        []string           `json:"open,omitzero"` // places that take members the schema does not name
	Definition  string             `json:"definition"`
	Pin         string             `json:"pin,omitzero"` // of an allowlisted tool; it should be the definition
	Annotations policy.Annotations `json:"annotations"`
	Warning     string             `json:"warning,omitzero"`

	listed bool // on the allowlist
}

// list asks every server for its tools.
func (a *app) list(ctx context.Context) (*states.ToolsListed, error) {
	if err := a.start(ctx); err != nil {
		return nil, err
	}
	r, err := runner.New(a.runnerOptions(nil))
	if err != nil {
		return nil, err
	}
	return r.List(ctx)
}

// catalog is what the servers list now or, if they are not asked, the stored definitions of pins; nil if there are none.
func (a *app) catalog(ctx context.Context, live bool) (*policy.Catalog, error) {
	if live {
		listed, err := a.list(ctx)
		if err != nil {
			return nil, err
		}
		return a.bundle.Catalog(listed.Catalog(), listed.Servers), nil
	}
	if len(a.bundle.Content().Pins) == 0 {
		return nil, nil
	}
	d, err := pins.ReadDefinitions(a.loaded.AllowlistPath)
	if err != nil {
		return nil, err
	}
	if d.Warning != "" {
		a.w.warn("warning: " + d.Warning)
	}
	return d.Catalog(a.bundle)
}

func (a *app) listTools(ctx context.Context, asJSON bool) error {
	c, err := a.catalog(ctx, true)
	if err != nil {
		return err
	}
	code := exitYes
	if !c.Up() {
		code = exitCould
	}
	var tools []shownTool
	servers := states.Statuses(c)
	for _, s := range c.Servers {
		for _, t := range s.Tools {
			tools = append(tools, show(t))
		}
		tools = append(tools, a.unlisted(s)...)
	}
	if asJSON {
		err := printJSON(a.w.stdout, struct {
			SchemaVersion int                   `json:"schema_version"`
			Servers       []states.ServerStatus `json:"servers"`
			Tools         []shownTool           `json:"tools"`
		}{schemaVersion, servers, tools})
		if err != nil {
			return err
		}
		return exit(code)
	}
	a.printTools(servers, tools)
	return exit(code)
}

// unlisted are tools that the allowlist names and the server, which is up, does not list: often a slip of the pen.
func (a *app) unlisted(s policy.CatalogServer) (missing []shownTool) {
	content := a.bundle.Content()
	for _, g := range content.Allowlist {
		if g.Server != s.Server || s.Status != policy.ServerUp {
			continue
		}
		for _, name := range g.Tools {
			if !slices.ContainsFunc(s.Tools, func(t *policy.Tool) bool { return t.Name == name }) {
				missing = append(missing, shownTool{
					Server: s.Server, Name: name, Code: policy.CodeToolUnknown,
					Reason: "on the allowlist, but the server does not list it", Pin: string(pins.Of(content.Pins, s.Server, name)),
				})
			}
		}
	}
	return missing
}

func show(t *policy.Tool) shownTool {
	s := shownTool{
		Server: t.Server, Name: t.Name, Title: t.Title, Description: t.Description, Allowed: t.Effective(), Code: t.Code,
		Reason: t.Reason, Dialect: t.Dialect(), Open: t.Open(), Definition: string(t.Digest), Annotations: t.Annotations,
		Pin: string(t.Pin), listed: t.Allowed,
	}
	switch {
	case !t.Allowed:
		s.Code, s.Reason = policy.CodeToolNotAllowed, "not on the allowlist"
	case t.Annotations.ReadOnly == nil || !*t.Annotations.ReadOnly:
		s.Warning = "on the allowlist, but not annotated as read-only"
	}
	return s
}

func (a *app) printTools(servers []states.ServerStatus, tools []shownTool) {
	k, out := newInk(a.w), a.w.stdout
	for _, s := range servers {
		head := fmt.Sprintf("%s (%s, MCP %s)", visible.Text(s.Server), count(s.Tools, "tool"), visible.Text(s.Protocol))
		if s.Status != policy.ServerUp {
			head = fmt.Sprintf("%s is down: [%s] %s", visible.Text(s.Server), s.Code, visible.Text(s.Reason))
		}
		fmt.Fprintln(out, k.bold(head))
		for _, t := range tools {
			if t.Server != s.Server {
				continue
			}
			detail := k.faint(visible.Clip(t.detail(), maxLine))
			fmt.Fprintf(out, "  %s %-28s %s\n", k.mark(t.Allowed), visible.Text(t.Name), detail)
			if t.Warning != "" {
				fmt.Fprintf(out, "    %s\n", k.bad.Sprint("! "+t.Warning))
			}
		}
	}
}

// detail is what is said behind a tool's name.
func (t shownTool) detail() string {
	why := ""
	if t.Code != "" {
		why = fmt.Sprintf("[%s] %s; ", t.Code, t.Reason)
	}
	var parts []string
	if t.Dialect != "" {
		parts = append(parts, t.Dialect)
	}
	for _, hint := range []struct {
		name string
		is   *bool
	}{
		{"read-only", t.Annotations.ReadOnly}, {"destructive", t.Annotations.Destructive},
		{"idempotent", t.Annotations.Idempotent}, {"open-world", t.Annotations.OpenWorld},
	} {
		switch {
		case hint.is == nil:
		case *hint.is:
			parts = append(parts, hint.name)
		default:
			parts = append(parts, "not "+hint.name)
		}
	}
	switch {
	case !t.listed:
	case t.Pin == "":
		parts = append(parts, "not pinned")
	case t.Pin == t.Definition:
		parts = append(parts, "pinned")
	}
	if len(t.Open) > 0 {
		parts = append(parts, "open at "+strings.Join(t.Open, " "))
	}
	return strings.TrimSuffix(why+strings.Join(parts, ", "), "; ")
}
