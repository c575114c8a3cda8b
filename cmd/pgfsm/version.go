package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"pgfsm/states"
	"pgfsm/traces"
)

// release is set by the build: -ldflags "-X main.release=v1.2.3".
var release = ""

// version is the release, or the version or the revision that the build records.
func version() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case release != "":
		return release
	case !ok:
		return "devel"
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	name := "devel"
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			name += "-" + s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			name += "-modified"
		}
	}
	return name
}

func newVersion(w world) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the trace format and the machine's digest",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			m, err := states.NewMachine()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(w.stdout, struct {
					SchemaVersion int    `json:"schema_version"`
					Version       string `json:"version"`
					Go            string `json:"go"`
					TraceFormat   string `json:"trace_format"`
					Machine       string `json:"machine"`
				}{schemaVersion, version(), runtime.Version(), traces.Format, string(m.Digest())})
			}
			_, err = fmt.Fprintf(w.stdout, "pgfsm %s (%s)\ntrace format %s\nmachine %s\n",
				version(), runtime.Version(), traces.Format, m.Digest())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
