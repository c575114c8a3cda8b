//go:build !race

package gates

import (
	"bytes"
	"os"
	"runtime"
	"testing"
)

// TestCommittedResult: the file that the documents speak of is what the command writes today. `make eval` writes it anew.
func TestCommittedResult(t *testing.T) {
	_, got := runs(t, Options{Plans: DefaultPlans, Seed: DefaultSeed, Jobs: min(runtime.GOMAXPROCS(0), MaxJobs)})
	want, err := os.ReadFile("../results/offline_gate_eval.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the result has changed: look at git diff eval/results/ after `make eval`, and commit it")
	}
}
