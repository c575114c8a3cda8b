package main

import (
	"github.com/spf13/cobra"
)

func newEval(w world) *cobra.Command {
	return group("eval",
		newEvalGates(w), newEvalAttack(w), newEvalImport(w), newEvalE2E(w), newEvalReport(w), newEvalTraces(w))
}
