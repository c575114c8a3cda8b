package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"pgfsm/fsm"
	"pgfsm/internal/cli"
	"pgfsm/internal/safefile"
	"pgfsm/states"
	"pgfsm/traces"
)

// pictures lists the formats for drawings of the machine, in the order of the help.
var pictures = []struct {
	name string
	draw func(*fsm.Spec, fsm.Marks) []byte
}{{"dot", fsm.DOT}, {"svg", fsm.SVG}}

func newGraph(w world) *cobra.Command {
	var format, trace, output string
	cmd := newCommand("graph", cobra.NoArgs, func(*cobra.Command, []string) error {
		m, err := states.NewMachine()
		if err != nil {
			return err
		}

		var marks fsm.Marks
		if trace != "" {
			t, err := traces.ReadFile(trace)
			if err != nil {
				return err
			}
			for _, s := range t.Steps {
				marks = append(marks, fsm.Mark{From: s.From, On: s.Trigger, To: s.To})
			}
		}

		for _, p := range pictures {
			if p.name != format {
				continue
			}
			picture := p.draw(m.Spec(), marks)
			if output != "" {
				if err := safefile.CheckReplaceable(output, "", trace); err != nil {
					return fmt.Errorf("%s: %w", output, err)
				}
				return safefile.Write(output, picture, publicMode)
			}
			_, err := w.stdout.Write(picture)
			return err
		}

		return fmt.Errorf("unknown format %q: use dot or svg", format)
	})

	cmd.Flags().StringVar(&format, "format", "dot", "dot or svg")
	cmd.Flags().StringVar(&trace, "trace", "", "draw the path of this trace")
	cmd.Flags().StringVarP(&output, "output", "o", "", "the file to write to (default: standard output)")

	return cmd
}

func newVerify(w world) *cobra.Command {
	var asJSON bool
	cmd := newCommand("verify", cobra.NoArgs, func(*cobra.Command, []string) error {
		return proveTable(w, states.Table().Spec(), asJSON)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// proveTable proves the claims about a table. If a proof fails, it returns the exit code no.
func proveTable(w world, spec *fsm.Spec, asJSON bool) error {
	proofs := fsm.Prove(spec)
	code := cli.ExitYes
	for _, p := range proofs {
		if !p.Holds {
			code = cli.ExitNo
		}
	}
	return w.printDocument(asJSON, cli.Document("holds", code == cli.ExitYes, "proofs", proofs), code,
		func(out io.Writer, k ink) {
			for _, p := range proofs {
				fmt.Fprintf(out, "%s %s\n    %s\n", k.mark(p.Holds), p.Sentence, k.faint(p.Witness))
			}
			fmt.Fprintf(out, "%d proofs, %d rows, %d states\n", len(proofs), len(spec.Rows), len(spec.Places))
		})
}

// buildRevision returns the commit that go build recorded, "" if it recorded none, and whether the
// checkout had uncommitted changes.
func buildRevision() (commit string, modified bool) {
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
	cmd := newCommand("version", cobra.NoArgs, func(*cobra.Command, []string) error {
		m, err := states.NewMachine()
		if err != nil {
			return err
		}
		commit, modified := buildRevision()
		doc := cli.Document("version", cli.Version(), "revision", commit, "modified", modified, "go",
			runtime.Version(),
			"trace_format", traces.Format, "machine", string(m.Digest()))
		return w.printDocument(asJSON, doc, cli.ExitYes, func(out io.Writer, _ ink) {
			switch {
			case commit == "":
				commit = "unknown"
			case modified:
				commit += " with changes"
			}
			fmt.Fprintf(out, "pgfsm %s (%s)\nrevision %s\ntrace format %s\nmachine %s\n",
				cli.Version(), runtime.Version(), commit, traces.Format, m.Digest())
		})
	})

	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
