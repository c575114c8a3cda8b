package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/config"
	"pgfsm/policy/visible"
	"pgfsm/safefile"
)

// initOptions are the flags of init.
type initOptions struct {
	w         world
	dir, from string
	bundle    string
	yes, json bool
}

func newInit(w world) *cobra.Command {
	o := initOptions{w: w, dir: "."}
	cmd := &cobra.Command{
		Use:   "init [FOLDER]",
		Short: "Write a commented starter configuration",
		Long: `init writes pgfsm.yaml, its allowlist and its JSON Schema for editors to the folder (default: here). It overwrites
nothing. The configuration calls the servers of "pgfsm demo".

With --from it lists the servers of a client's own file instead, each by name and digest. It shows what each of them runs,
and asks first. The allowlist is empty then. Exit code 1 if the answer was not yes.

With --bundle it also writes risk rules, policies and their tests to start from.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.dir = args[0]
			}
			switch {
			case o.from != "" && o.bundle != "":
				return errors.New("--bundle and --from do not go together: copy the bundle's files over afterwards")
			case o.from != "" && o.json && !o.yes:
				return errors.New("--json asks nothing: it needs --yes")
			case o.from != "":
				return o.takeOver()
			case o.yes:
				return errors.New("--yes goes with --from")
			}
			files := o.files(config.Starter(), config.StarterAllowlist())
			if o.bundle != "" {
				var err error
				if files, err = o.withBundle(files); err != nil {
					return err
				}
			}
			if err := absent(files); err != nil {
				return err
			}
			next := `its servers are those of "pgfsm demo"; edit it, then: pgfsm config check -c `
			return o.write(files, next+visible.Text(files[0].path), nil)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.Flags().StringVar(&o.from, "from", "", "list the servers of a client's own `FILE`, like .mcp.json")
	cmd.Flags().StringVar(&o.bundle, "bundle", "", "add risk rules and policies to start from: "+strings.Join(config.Bundles(), ", "))
	cmd.Flags().BoolVar(&o.yes, "yes", false, "with --from: do not ask")
	return cmd
}

// withBundle adds the files of a starter bundle, and names them in the configuration.
func (o *initOptions) withBundle(files []newFile) ([]newFile, error) {
	bundle, err := config.Bundle(o.bundle)
	if err != nil {
		return nil, fmt.Errorf("there is no bundle %q; there are %s", o.bundle, strings.Join(config.Bundles(), ", "))
	}
	for _, name := range []string{config.BundleRisk, config.BundlePolicy, config.BundleTests} {
		text, err := fs.ReadFile(bundle, name)
		if err != nil {
			return nil, err
		}
		files = append(files, newFile{filepath.Join(o.dir, name), text})
	}
	named := "\n# How risky a call is, and whether it may run: docs/guide/policies.md. Try them: pgfsm policy test tests.yaml\n" +
		"risk: " + config.BundleRisk + "\npolicy: " + config.BundlePolicy + "\n"
	files[0].text = append(bytes.Clone(files[0].text), named...)
	return files, nil
}

// newFile is a file that is about to be written.
type newFile struct {
	path string
	text []byte
}

func (o *initOptions) files(configuration, allowlist []byte) []newFile {
	return []newFile{
		{filepath.Join(o.dir, config.FileName), configuration},
		{filepath.Join(o.dir, "allowlist.json"), allowlist},
		{filepath.Join(o.dir, "pgfsm.schema.json"), config.Schema()},
	}
}

// absent refuses to overwrite.
func absent(files []newFile) error {
	for _, f := range files {
		if _, err := os.Lstat(f.path); err == nil {
			return fmt.Errorf("%s is there already, and nothing is overwritten: move it away first", visible.Text(f.path))
		}
	}
	return nil
}

// listedServer is a server of a client's file in the document that --json prints.
type listedServer struct {
	Name    string `json:"name"`
	Digest  string `json:"digest"`
	Runs    string `json:"runs"`
	Warning string `json:"warning,omitzero"`
	Refused string `json:"refused,omitzero"`
}

// write writes the files and says what comes next, in text that is fit to be printed.
func (o *initOptions) write(files []newFile, next string, servers []listedServer) error {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	var written []string
	for _, f := range files {
		if err := safefile.Create(f.path, f.text, 0o600); err != nil {
			return err
		}
		written = append(written, filepath.ToSlash(f.path))
	}
	if o.json {
		return printJSON(o.w.stdout, struct {
			SchemaVersion int            `json:"schema_version"`
			Files         []string       `json:"files"`
			Servers       []listedServer `json:"servers,omitempty"`
		}{schemaVersion, written, servers})
	}
	for _, path := range written {
		fmt.Fprintln(o.w.stdout, visible.Text(path))
	}
	fmt.Fprintf(o.w.stderr, "pgfsm: %s\n", next)
	return nil
}

// takeOver writes a configuration that lists the servers of a client's file.
func (o *initOptions) takeOver() error {
	files := o.files(nil, []byte("{}\n"))
	if err := absent(files); err != nil {
		return err
	}
	text, err := safefile.ReadTrusted(o.from)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", visible.Text(o.from), err)
	}
	servers, err := config.ReadClient(o.from, text)
	if err != nil {
		return err
	}
	if len(servers) == 0 {
		return fmt.Errorf("%s names no server: its list of servers is empty", visible.Text(o.from))
	}
	shown, n := o.show(servers)
	if n == 0 {
		return fmt.Errorf("%s has no server that can be listed", visible.Text(o.from))
	}
	path, err := seenFrom(o.dir, o.from)
	if err != nil {
		return err
	}
	files[0].text = config.Imported(path, servers)
	if _, err := config.Load(files[0].path, over(files), config.Overrides{}); err != nil {
		return err // of a file in a place that cannot be named, or that has changed just now
	}
	if !o.yes && !o.confirm(fmt.Sprintf("Write %s into %s?", theServers(n), visible.Text(filepath.Base(files[0].path)))) {
		fmt.Fprintln(o.w.stderr, "pgfsm: nothing was written: answer y, or use --yes")
		return exit(exitNo)
	}
	return o.write(files, nextSteps(visible.Text(files[0].path), visible.Text(files[1].path)), shown)
}

// theServers refers to n servers that are shown above.
func theServers(n int) string {
	if n == 1 {
		return "this server"
	}
	return fmt.Sprintf("these %d servers", n)
}

// nextSteps says what is left to do until the servers can be used.
func nextSteps(configuration, allowlist string) string {
	return fmt.Sprintf(`no tool may be called yet. Next:
  pgfsm tools -c %[1]s
    shows what the servers offer; write what may be called into %[2]s
  pgfsm pins approve -c %[1]s
    holds that to what it is now
  pgfsm call -c %[1]s SERVER TOOL '{…}'
    makes one call; pgfsm run needs routes or a model first: planner.routes, planner.llm, or LLM_BASE_URL and LLM_MODEL`,
		configuration, allowlist)
}

// show prints what each server would run, and returns how many of them can be listed.
func (o *initOptions) show(servers []config.ClientServer) (shown []listedServer, n int) {
	for _, s := range servers {
		name := visible.Text(fmt.Sprintf("%q", s.Name))
		fmt.Fprintf(o.w.stderr, "%s: %s\n", name, s.Runs)
		if s.Warning != "" {
			fmt.Fprintf(o.w.stderr, "  warning: %s\n", s.Warning)
		}
		if s.Refused == "" {
			n++
		} else {
			fmt.Fprintf(o.w.stderr, "  skipped: %s\n", s.Refused)
		}
		shown = append(shown, listedServer{s.Name, string(s.Digest), s.Runs, s.Warning, s.Refused})
	}
	return shown, n
}

// seenFrom is the path of a file as one writes it in a file of the folder.
func seenFrom(dir, file string) (string, error) {
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

// over reads files that are not written yet, and of the others those that nobody else can have written.
func over(files []newFile) config.Open {
	return func(path string) ([]byte, error) {
		for _, f := range files {
			if f.path == path {
				return f.text, nil
			}
		}
		return safefile.ReadTrusted(path)
	}
}

// confirm asks a person. Anything but y or yes is no.
func (o *initOptions) confirm(question string) bool {
	fmt.Fprintf(o.w.stderr, "%s [y/N] ", question)
	line, err := bufio.NewReader(io.LimitReader(o.w.stdin, 16)).ReadString('\n') // the end of the input is no
	if f, ok := o.w.stdin.(*os.File); err != nil || !ok || !isTerminal(f) {
		fmt.Fprintln(o.w.stderr) // nobody's Enter has ended the line of the question
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
