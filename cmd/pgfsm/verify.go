package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/fsm"
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

// verify proves what a table says and ends with no where a proof fails.
func verify(w world, spec *fsm.Spec, asJSON bool) error {
	proofs := fsm.Prove(spec)
	code := exitYes
	for _, p := range proofs {
		if !p.Holds {
			code = exitNo
		}
	}
	if asJSON {
		return errors.Join(printJSON(w.stdout, document("holds", code == exitYes, "proofs", proofs)), exit(code))
	}

	ink := newInk(w)
	for _, p := range proofs {
		fmt.Fprintf(w.stdout, "%s %s\n    %s\n", ink.mark(p.Holds), p.Sentence, ink.faint(p.Witness))
	}
	fmt.Fprintf(w.stdout, "%d proofs, %d rows, %d states\n", len(proofs), len(spec.Rows), len(spec.Places))
	return exit(code)
}
