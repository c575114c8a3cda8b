package main

import (
	"github.com/spf13/cobra"
)

func newEval(w world) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval",
		Short: "Measure what the gates are worth",
		Long: `eval makes figures that can be made again: the gates alone, without servers and without a model; pgfsm beside an agent without gates;
and attacks in which the planner does exactly what the attacker wants.`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEvalGates(w), newEvalAttack(w), newEvalImport(w), newEvalE2E(w), newEvalReport(w), newEvalTraces(w))
	return cmd
}
