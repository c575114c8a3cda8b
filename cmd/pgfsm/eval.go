package main

import (
	"github.com/spf13/cobra"
)

func newEval(w world) *cobra.Command {
	return group("eval", "Measure what the gates achieve", `eval computes reproducible figures: of the gates alone, without servers and without a model; of pgfsm beside an agent without
gates; and of attacks in which the planner does exactly what the attacker wants.`,
		newEvalGates(w), newEvalAttack(w), newEvalImport(w), newEvalE2E(w), newEvalReport(w), newEvalTraces(w))
}
