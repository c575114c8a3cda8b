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
	return &cobra.Command{
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
			return writeStarter(w, dir)
		},
	}
}

func writeStarter(w world, dir string) error {
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
	for _, f := range files {
		if err := writeNew(f.path, f.text); err != nil {
			return err
		}
		fmt.Fprintln(w.stdout, f.path)
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
