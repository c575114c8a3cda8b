package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pgfsm/fsm"
	"pgfsm/internal/cli"
	"pgfsm/states"
)

func newVerify(w world) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:  "verify",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return verify(w, states.Table().Spec(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// verify proves the claims about a table. If a proof fails, it returns the exit code no.
func verify(w world, spec *fsm.Spec, asJSON bool) error {
	proofs := fsm.Prove(spec)
	code := cli.ExitYes
	for _, p := range proofs {
		if !p.Holds {
			code = cli.ExitNo
		}
	}
	return w.print(asJSON, cli.Document("holds", code == cli.ExitYes, "proofs", proofs), code, func(out io.Writer, k ink) {
		for _, p := range proofs {
			fmt.Fprintf(out, "%s %s\n    %s\n", k.mark(p.Holds), p.Sentence, k.faint(p.Witness))
		}
		fmt.Fprintf(out, "%d proofs, %d rows, %d states\n", len(proofs), len(spec.Rows), len(spec.Places))
	})
}
