package main

import (
	"github.com/spf13/cobra"
)

func newEval(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure what the gates achieve",
		Long: `eval computes reproducible figures: of the gates alone, without servers and without a model; of pgfsm beside an agent without
gates; and of attacks in which the planner does exactly what the attacker wants.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEvalGates(w), newEvalAttack(w), newEvalImport(w), newEvalE2E(w), newEvalReport(w), newEvalTraces(w))
	return cmd
}
