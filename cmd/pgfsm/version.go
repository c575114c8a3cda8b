package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/states"
	"pgfsm/traces"
)

// revision returns the commit that go build recorded, "" if it recorded none, and whether the checkout had uncommitted changes.
func revision() (commit string, modified bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	return commit, modified
}

func newVersion(w world) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:  "version",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			m, err := states.NewMachine()
			if err != nil {
				return err
			}
			commit, modified := revision()
			doc := cli.Document("version", cli.Version(), "revision", commit, "modified", modified, "go", runtime.Version(),
				"trace_format", traces.Format, "machine", string(m.Digest()))
			return w.print(asJSON, doc, cli.ExitYes, func(out io.Writer, _ ink) {
				switch {
				case commit == "":
					commit = "unknown"
				case modified:
					commit += " with changes"
				}
				fmt.Fprintf(out, "pgfsm %s (%s)\nrevision %s\ntrace format %s\nmachine %s\n",
					cli.Version(), runtime.Version(), commit, traces.Format, m.Digest())
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
