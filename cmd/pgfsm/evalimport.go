package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"pgfsm/eval/dojo"
	"pgfsm/policy/visible"
	"pgfsm/safefile"
)

// importOptions are the flags of eval import agentdojo.
type importOptions struct {
	out, bundles string
	json         bool
}

func newEvalImport(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Write tools and cases from a benchmark's data",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImportDojo(w))
	return cmd
}

func newImportDojo(w world) *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "agentdojo FOLDER -o FOLDER",
		Short: "Write tools and cases from AgentDojo's tasks",
		Long: `agentdojo reads tools.json, user_tasks.json and injection/injection_tasks.json. For each suite it writes three files,
and the same three for all suites together, with SUITE "all":

  SUITE.tools.json        the tools
  SUITE.cases.jsonl       a case for each task of a user with each task of an attacker that has calls
  SUITE.retargeted.jsonl  a case for each write of a user's task that goes to another target: one argument is changed

A case names the suite's bundle and the user task's grant, if they exist: SUITE/pgfsm.yaml and SUITE/grants/TASK.yaml
below --bundles. The command counts and prints its changes; docs/reference/evaluation-format.md has the rules. It overwrites files
of these names.`,
		Example: `  pgfsm eval import agentdojo data/agentdojo -o cases --bundles eval/agentdojo
  pgfsm eval attack --tools cases/all.tools.json --cases cases/all.cases.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.importDojo(w, args[0]) },
	}
	cmd.Flags().StringVarP(&o.out, "output", "o", "", "the folder to write to")
	cmd.Flags().StringVar(&o.bundles, "bundles", "eval/agentdojo", "the folder with bundles and grants")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	if err := cmd.MarkFlagRequired("output"); err != nil {
		panic("eval import: " + err.Error()) // the flag stands above
	}
	return cmd
}

// place is the path of a file below the bundles as a cases file names it, or nothing where there is no such file.
func (o *importOptions) place(parts ...string) (string, error) {
	path := filepath.Join(append([]string{o.bundles}, parts...)...)
	if info, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", nil
	} else if err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(fmt.Errorf("%s cannot be used", path), err)
	}
	from, err := filepath.Abs(o.out)
	if err != nil {
		return "", err
	}
	to, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(from, to)
	return filepath.ToSlash(relative), err
}

func (o *importOptions) importDojo(w world, dir string) error {
	if o.out == "" {
		return errors.New("--output names no folder")
	}
	var failed error
	bundles := 0
	place := func(parts ...string) string {
		path, err := o.place(parts...)
		if path != "" {
			bundles++
		}
		failed = errors.Join(failed, err)
		return path
	}
	suites, err := dojo.Import(plainFiles(dir), dojo.Places{
		Bundle: func(suite string) string { return place(suite, "pgfsm.yaml") },
		Grant:  func(suite, task string) string { return place(suite, "grants", task+".yaml") },
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	for i := range suites {
		s := &suites[i]
		for _, f := range []struct {
			path string
			text []byte
		}{{s.Name + ".tools.json", s.Tools}, {s.Name + ".cases.jsonl", s.Cases}, {s.Name + ".retargeted.jsonl", s.Retargeted}} {
			if err := writeResult(filepath.Join(o.out, f.path), f.text); err != nil {
				return err
			}
		}
	}
	if bundles == 0 {
		fmt.Fprintf(w.stderr, "pgfsm: warning: there is no SUITE/pgfsm.yaml below %s, so the cases name no bundle: say where they are with --bundles, "+
			"or give eval attack one with --bundle.\n", visible.Text(o.bundles))
	}
	if o.json {
		return printImportJSON(w, suites)
	}
	printImport(w, suites)
	return nil
}

// importedSuite is a suite in the JSON document.
type importedSuite struct {
	Suite      string     `json:"suite"`
	Tools      int        `json:"tools"`
	Tasks      int        `json:"tasks"`
	Injections int        `json:"injections"`
	Pairs      int        `json:"pairs"`
	Retargeted int        `json:"retargeted"`
	Grants     int        `json:"grants"`
	Notes      dojo.Notes `json:"notes"`
}

func printImportJSON(w world, suites []dojo.Suite) error {
	doc := struct {
		SchemaVersion int             `json:"schema_version"`
		Suites        []importedSuite `json:"suites"` // the last is all of them
	}{SchemaVersion: schemaVersion}
	for i := range suites {
		s := &suites[i]
		doc.Suites = append(doc.Suites, importedSuite{s.Name, s.Offers, s.Tasks, s.Injections, s.Pairs, s.Retargets, s.Grants, s.Notes})
	}
	return printJSON(w.stdout, doc)
}

func printImport(w world, suites []dojo.Suite) {
	out := w.stdout
	fmt.Fprintf(out, "%-12s %6s %6s %11s %8s %6s %11s %7s\n", "suite", "tools", "tasks", "injections", "no call", "pairs", "retargeted", "grants")
	for i := range suites {
		s := &suites[i]
		fmt.Fprintf(out, "%-12s %6d %6d %11d %8d %6d %11d %7d\n", visible.Text(s.Name), s.Offers, s.Tasks, s.Injections, s.Notes.WithoutCalls,
			s.Pairs, s.Retargets, s.Grants)
	}
	n := suites[len(suites)-1].Notes
	for _, line := range []struct {
		n    int
		what string
	}{
		{n.OlderVersions, "older versions of a task left out: the last one counts"},
		{n.Constants, "numbers that are written as expressions of numbers: computed"},
		{n.TextsKept, "texts that only the environment resolves: they stay as they are"},
		{n.NumbersReplaced, "numbers and truth values that only the environment resolves: 1, and true"},
		{n.ListsReplaced, "lists that only the environment resolves: a list of the one text"},
		{n.EnumMembers, "members of enumerations: their own name"},
		{n.NullsLeftOut, "optional arguments that are null: left out"},
	} {
		if line.n > 0 {
			fmt.Fprintf(out, "%6d %s\n", line.n, line.what)
		}
	}
}

// plainFiles is a folder of which only regular files of a bounded size can be opened: a pipe would be waited for, and a
// device read, for ever.
type plainFiles string

// Open implements [fs.FS].
func (dir plainFiles) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, err := safefile.Open(filepath.Join(string(dir), filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it is not a regular file")}
	case info.Size() > dojo.MaxFileBytes:
		err = &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("it has %d bytes; at most %d are read", info.Size(), dojo.MaxFileBytes)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
