package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/fsm"
	"pgfsm/internal/safefile"
	"pgfsm/states"
	"pgfsm/traces"
)

// pictures lists the formats for drawings of the machine, in the order of the help.
var pictures = []struct {
	name string
	draw func(*fsm.Spec, fsm.Marks) []byte
}{{"dot", fsm.DOT}, {"svg", fsm.SVG}, {"mermaid", fsm.Mermaid}}

func newGraph(w world) *cobra.Command {
	var format, trace, output string
	cmd := &cobra.Command{
		Use:  "graph",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
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
			return fmt.Errorf("unknown format %q: use dot, svg or mermaid", format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "dot", "dot, svg or mermaid")
	cmd.Flags().StringVar(&trace, "trace", "", "draw the path of this trace")
	cmd.Flags().StringVarP(&output, "output", "o", "", "the file to write to (default: standard output)")
	return cmd
}
