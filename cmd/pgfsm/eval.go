package main

import (
	"github.com/spf13/cobra"
)

func newEval(w world) *cobra.Command {
	return group("eval", "Measure what the gates achieve", `eval computes reproducible figures. gates tests each gate without servers and without a model. e2e compares pgfsm with
an agent without gates. attack runs attacks in which the planner does exactly what the attacker wants.`,
		newEvalGates(w), newEvalAttack(w), newEvalImport(w), newEvalE2E(w), newEvalReport(w), newEvalTraces(w))
}
