package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"pgfsm/config"
	"pgfsm/policy/settings"
)

// readFull fills b from r and takes a shorter file for what it is.
func readFull(r io.Reader, b []byte) (int, error) {
	n, err := io.ReadFull(r, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func newInit(w world) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "init [FOLDER]",
		Short: "Write a commented starter configuration",
		Long: `init writes pgfsm.yaml, the allowlist it names and the JSON Schema that editors check it with to the folder
(default: here). It overwrites nothing. The configuration calls the servers of "pgfsm demo".`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return writeStarter(w, dir, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func writeStarter(w world, dir string, asJSON bool) error {
	files := []struct {
		path string
		text []byte
	}{
		{filepath.Join(dir, config.Name), settings.Starter()},
		{filepath.Join(dir, "allowlist.json"), settings.StarterAllowlist()},
		{filepath.Join(dir, "pgfsm.schema.json"), settings.Schema()},
	}
	for _, f := range files {
		if _, err := os.Lstat(f.path); err == nil {
			return fmt.Errorf("%s is there already, and nothing is overwritten: move it away first", f.path)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var written []string
	for _, f := range files {
		if err := writeNew(f.path, f.text); err != nil {
			return err
		}
		written = append(written, filepath.ToSlash(f.path))
	}
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int      `json:"schema_version"`
			Files         []string `json:"files"`
		}{schemaVersion, written})
	}
	for _, path := range written {
		fmt.Fprintln(w.stdout, path)
	}
	fmt.Fprintf(w.stderr, "pgfsm: edit it, then: pgfsm config check -c %s\n", files[0].path)
	return nil
}

// writeNew writes a file that must not exist yet, for its owner alone.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
