package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"pgfsm/config"
	"pgfsm/policy/ctrl"
	"pgfsm/policy/visible"
)

func newPolicyImport(w world) *cobra.Command {
	var from, out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import --from ctrl FOLDER -o FOLDER",
		Short: "Make risk rules and policies of another system's bundle",
		Long: `import reads a bundle in ctrl's shape (servers.yaml, policy.yaml, risk.yaml) and writes policy.yaml and risk.yaml. What
cannot mean what its author hoped is reported by id, and stands as a comment above what was made of it. It overwrites
nothing. Exit code 1 if there is something to report.`,
		Example: `  pgfsm policy import --from ctrl ./bundle -o ./imported`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if from != "ctrl" {
				return fmt.Errorf("--from %s: only ctrl can be read", from)
			}
			return importCtrl(w, args[0], out, asJSON)
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "whose bundle it is: ctrl")
	cmd.Flags().StringVarP(&out, "output", "o", "", "the folder to write to")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	for _, name := range []string{"from", "output"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic("policy import: " + err.Error()) // the flag stands above
		}
	}
	return cmd
}

// plainFiles is a folder of which only regular files of a bounded size can be opened: a pipe would be waited for, and a
// device read, for ever.
type plainFiles string

// Open implements [fs.FS].
func (dir plainFiles) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	f, err := os.OpenFile(filepath.Join(string(dir), filepath.FromSlash(name)), os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it is not a regular file")}
	case info.Size() > ctrl.MaxFile:
		err = &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("it has %d bytes; at most %d are read", info.Size(), ctrl.MaxFile)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func importCtrl(w world, from, to string, asJSON bool) error {
	r, err := ctrl.Import(plainFiles(from))
	if err != nil {
		return err
	}
	files := []newFile{{filepath.Join(to, config.BundlePolicy), []byte(r.PolicyYAML())}}
	if text := r.RiskYAML(); text != "" {
		files = append(files, newFile{filepath.Join(to, config.BundleRisk), []byte(text)})
	}
	if err := absent(files); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	var written []string
	for _, f := range files {
		if err := writeNew(f.path, f.text); err != nil {
			return err
		}
		written = append(written, filepath.ToSlash(f.path))
	}
	code := exitYes
	if len(r.Findings) > 0 {
		code = exitNo
	}
	if asJSON {
		err := printJSON(w.stdout, struct {
			SchemaVersion int            `json:"schema_version"`
			Files         []string       `json:"files"`
			Findings      []ctrl.Finding `json:"findings"`
		}{schemaVersion, written, r.Findings})
		return errors.Join(err, exit(code))
	}
	for _, f := range r.Findings {
		fmt.Fprintln(w.stdout, visible.Lines(f.String()))
	}
	for _, path := range written {
		fmt.Fprintln(w.stdout, visible.Text(path))
	}
	fmt.Fprintf(w.stderr, "pgfsm: %s; name the files in pgfsm.yaml (policy:, risk:), then: pgfsm policy lint\n",
		count(len(r.Findings), "finding"))
	return exit(code)
}
