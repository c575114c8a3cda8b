package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/policy/lint"
	"pgfsm/traces/ledger/checkpoint"
)

func newConfig(w world) *cobra.Command {
	var o options
	var strict bool
	check := newCommand("check", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		err := o.checkConfig(cmd.Context(), w, strict)
		var faults config.Errors
		if o.json && errors.As(err, &faults) {
			return errors.Join(cli.PrintJSON(w.stdout, cli.Document("ok", false, "faults", faults)),
				cli.Exit(cli.ExitFailed))
		}
		return err
	})

	o.addFlags(check)
	o.addGrantFlag(check)
	check.Flags().BoolVar(&strict, "strict", false, "exit 1 for a warning, too")

	return cli.Group("config", check, &cobra.Command{
		Use: "schema [NAME]",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && !slices.Contains(config.SchemaNames(), args[0]) {
				return fmt.Errorf("name one of %s", strings.Join(config.SchemaNames(), ", "))
			}
			return nil
		},
		ValidArgs: config.SchemaNames(),
		RunE: func(_ *cobra.Command, args []string) error {
			_, err := w.stdout.Write(config.Schema(append(args, config.SchemaNames()[0])[0]))
			return err
		},
	})
}

// checkConfig checks a configuration. It returns faults that [loadConfig] finds as an error, and
// prints all others.
func (o *options) checkConfig(ctx context.Context, w world, strict bool) error {
	loaded, source, err := loadConfig(w, o)
	if err != nil {
		return err
	}
	s, missing, err := setup.Check(o.setupOptions(w), loaded, source)
	if err != nil {
		return err
	}

	a := &app{s, w, o.config, o.json}
	defer a.closeOrWarn()
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

	_, unproved, err := a.ProveClaims(ctx, catalog)
	if err != nil {
		return err
	}
	for _, c := range unproved {
		if c.Refuted {
			found.errors = append(found.errors, c.Problem)
		} else {
			found.warnings = append(found.warnings, c.Problem)
		}
	}

	// The files that only serve and the ledger commands open.
	if _, err := openTLS(loaded.Serve.TLS, nil); err != nil {
		found.errors = append(found.errors, err.Error())
	}

	for _, key := range loaded.Checkpoints.Keys {
		if _, err := checkpoint.ReadSigner(key); err != nil {
			found.errors = append(found.errors, "checkpoints.key: "+err.Error())
		}
	}

	return a.printCheck(&found, strict)
}

// checked holds the findings of check in a configuration with usable files.
type checked struct{ errors, warnings []string }

// printCheck prints the size of the configuration and the findings. If strict is set, a warning
// makes the exit code no, too.
func (a *app) printCheck(found *checked, strict bool) error {
	ok, code := len(found.errors) == 0, cli.ExitYes
	if !ok || strict && len(found.warnings) > 0 {
		code = cli.ExitNo
	}

	c := a.Bundle.Content()
	tools, riskRules, policies, planner := 0, 0, 0, c.Planner.Mode
	for _, g := range c.Allowlist {
		tools += len(g.Tools)
	}
	if c.Risk != nil {
		riskRules = len(c.Risk.Rules)
	}
	if c.Policy != nil {
		policies = len(c.Policy.Policies)
	}
	if m := c.Planner.LLM; m != nil {
		planner += fmt.Sprintf(", model %s at %s", m.Model, m.BaseURL)
	}

	doc := cli.Document(
		"ok", ok, "config", a.From, "bundle", string(a.Bundle.Digest()),
		"servers", len(c.Servers), "allowed_tools", tools, "input_rules", len(c.Input.Rules),
		"routes", len(c.Planner.Routes), "output_types", len(c.Outputs), "pinned_tools", len(c.Pins),
		"grants", len(c.Grants), "risk_rules", riskRules, "policies", policies, "planner", planner,
		"listen", a.Loaded.Serve.Listen, "admin", a.Loaded.Serve.Admin, "errors", found.errors,
		"warnings", found.warnings,
	)
	return a.printDocument(doc, code, func(out io.Writer, k ink) {
		for _, text := range found.errors {
			fmt.Fprintf(a.w.stderr, "pgfsm: error: %s\n", visible.Lines(text))
		}
		for _, text := range found.warnings {
			fmt.Fprintf(a.w.stderr, "pgfsm: warning: %s\n", visible.Lines(text))
		}
		fmt.Fprintf(out,
			"%s %s: %s, %s (%d pinned), %s, %s, %s, %s, %s, %s\nplanner %s\ngateway %s, admin %s\nbundle %s\n",
			k.mark(ok), visible.Text(a.From), cli.Count(len(c.Servers), "server"),
			cli.Count(tools, "allowed tool"), len(c.Pins), cli.Count(len(c.Grants), "grant"),
			cli.Count(len(c.Input.Rules), "input rule"), cli.Count(len(c.Planner.Routes), "route"),
			cli.Count(len(c.Outputs), "output type"), cli.Count(riskRules, "risk rule"),
			cli.Count(policies, "policy", "policies"), visible.Text(planner),
			a.Loaded.Serve.Listen, a.Loaded.Serve.Admin, visible.Text(string(a.Bundle.Digest())))
	})
}

// initOptions are the flags of init.
type initOptions struct {
	w         world
	dir, from string
	bundle    string
	yes, json bool
}

func newInit(w world) *cobra.Command {
	o := initOptions{w: w, dir: "."}
	cmd := newCommand("init [FOLDER]", cobra.MaximumNArgs(1), func(_ *cobra.Command, args []string) error {
		if len(args) == 1 {
			o.dir = args[0]
		}
		switch {
		case o.from != "" && o.bundle != "":
			return errors.New("--bundle and --from do not go together: copy the bundle's files over afterwards")
		case o.from != "" && o.json && !o.yes:
			return errors.New("--json asks nothing: it needs --yes")
		case o.from == "" && o.yes:
			return errors.New("--yes goes with --from")
		}
		return o.writeFiles()
	})

	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.Flags().StringVar(&o.from, "from", "", "copy the servers of a client's own `FILE`, like .mcp.json")
	cmd.Flags().StringVar(&o.bundle, "bundle", "",
		"add risk rules and policies to start from: "+strings.Join(config.Bundles(), ", "))
	cmd.Flags().BoolVar(&o.yes, "yes", false, "with --from: do not ask")

	return cmd
}

// writeFiles writes the files of a new configuration.
func (o *initOptions) writeFiles() error {
	files, err := config.StarterFiles(o.bundle)
	if err != nil {
		return err
	}

	for _, f := range files {
		if path := filepath.Join(o.dir, f.Name); fileExists(path) {
			return fmt.Errorf("%s is there already, and nothing is overwritten: move it away first", visible.Text(path))
		}
	}

	var servers []config.ClientServer
	configuration := visible.Text(filepath.Join(o.dir, config.FileName))
	next := `its servers are those of "pgfsm demo"; edit it, then: pgfsm config check -c ` + configuration
	if o.bundle == config.CodingAgent {
		next = "put the folder of your project in place of /home/me/project in policy.yaml, claims.yaml and tests.yaml, " +
			"then: pgfsm policy test -c " + configuration + " " + visible.Text(filepath.Join(o.dir, "tests.yaml"))
	}
	if o.from != "" {
		if servers, err = o.importServers(files); err != nil {
			return err
		}
		next = nextSteps(configuration, visible.Text(filepath.Join(o.dir, files[1].Name)))
	}

	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}

	var written []string
	for _, f := range files {
		path := filepath.Join(o.dir, f.Name)
		if err := safefile.Create(path, f.Text, 0o600); err != nil {
			return err
		}
		written = append(written, filepath.ToSlash(path))
	}

	if o.json {
		return cli.PrintJSON(o.w.stdout, struct {
			SchemaVersion int                   `json:"schema_version"`
			Files         []string              `json:"files"`
			Servers       []config.ClientServer `json:"servers,omitempty"`
		}{cli.SchemaVersion, written, servers})
	}

	for _, path := range written {
		fmt.Fprintln(o.w.stdout, visible.Text(path))
	}

	fmt.Fprintf(o.w.stderr, "pgfsm: %s\n", next)
	return nil
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// importServers replaces the configuration in files by one with the servers of a client's file. It
// shows the servers and asks.
func (o *initOptions) importServers(files []config.StarterFile) ([]config.ClientServer, error) {
	text, err := safefile.ReadTrusted(o.from)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", visible.Text(o.from), err)
	}
	servers, err := config.ReadClient(o.from, text)
	if err != nil {
		return nil, err
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("%s names no server: its list of servers is empty", visible.Text(o.from))
	}

	n := o.showServers(servers)
	if n == 0 {
		return nil, fmt.Errorf("%s has no server that can be copied", visible.Text(o.from))
	}

	path, err := relativePath(o.dir, o.from)
	if err != nil {
		return nil, err
	}

	files[0].Text, files[1].Text = config.Imported(path, servers), []byte("{}\n")
	// The configuration is checked before it is written, so the new files are read from memory.
	open := func(path string) ([]byte, error) {
		for _, f := range files {
			if filepath.Join(o.dir, f.Name) == path {
				return f.Text, nil
			}
		}
		return safefile.ReadTrusted(path)
	}

	if _, err := config.Load(filepath.Join(o.dir, config.FileName), open, config.Overrides{}); err != nil {
		return nil, err
	}

	which := "this server"
	if n > 1 {
		which = fmt.Sprintf("these %d servers", n)
	}

	if o.yes {
		return servers, nil
	}
	return servers, o.w.confirm(fmt.Sprintf("Write %s into %s?", which, filepath.Join(o.dir, config.FileName)))
}

// nextSteps returns a text with the remaining steps before the servers can be used.
func nextSteps(configuration, allowlist string) string {
	return fmt.Sprintf(`no tool may be called yet. Next:
  pgfsm tools --not-allowed -c %[1]s
    lists the tools of the servers
  pgfsm allow -c %[1]s SERVER TOOL...
    writes them into %[2]s, pinned to their present definitions; SERVER --read-only: all that say they only read
  pgfsm call -c %[1]s SERVER TOOL '{…}'
    makes one call; pgfsm run needs routes or a model first: planner.routes, planner.llm, or LLM_BASE_URL and LLM_MODEL
  pgfsm link cursor -c %[1]s; pgfsm serve -c %[1]s
    adds the gateway to a client's file, and starts it`,
		configuration, allowlist)
}

// showServers prints what each server would run, and returns the number of usable servers.
func (o *initOptions) showServers(servers []config.ClientServer) (n int) {
	for _, s := range servers {
		name := visible.Text(fmt.Sprintf("%q", s.Name))
		if s.Refused != "" {
			fmt.Fprintf(o.w.stderr, "%s is skipped: %s\n", name, s.Refused)
			continue
		}
		n++
		fmt.Fprintf(o.w.stderr, "%s: %s\n", name, s.Runs)
		if s.Warning != "" {
			fmt.Fprintf(o.w.stderr, "  warning: %s\n", s.Warning)
		}
	}
	return n
}

// relativePath returns the path of a file relative to a folder, in the form for a configuration in
// that folder.
func relativePath(dir, file string) (string, error) {
	base, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(base, path); err == nil {
		path = rel
	}
	return filepath.ToSlash(path), nil
}
