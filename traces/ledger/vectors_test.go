package ledger_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
	"pgfsm/traces/ledger/ledgertest"
)

// vectors has test vectors for authors of verifiers: a small log with its key, checkpoints, a cosignature, proofs and a prune.
const vectors = "testdata/vectors"

// writeVectors makes the vectors anew.
func writeVectors(t *testing.T) {
	t.Helper()
	write := func(name string, text []byte) {
		check.NoError(t, os.WriteFile(filepath.Join(vectors, name), text, 0o644))
	}
	check.NoError(t, os.MkdirAll(vectors, 0o755))
	d, w := newFixture(t), witnesstest.New(t)
	signer, vkey := d.newKey()
	w.Trust(t, vkey)
	d.passes(1)
	first := d.signed(signer)
	held := d.called(ledger.Anonymous)
	d.delivers(held, ledger.ByRepeat)
	cosigned, err := cosign(t, w, d.signed(signer), d.Store)
	check.NoError(t, err)
	write("log.pub", []byte(vkey+"\n"))
	write("witness.pub", []byte(w.Key+"\n"))
	write("first.checkpoint", first)
	write("cosigned.checkpoint", cosigned)
	export := func(name string) {
		var text bytes.Buffer
		x := ledger.Exporter{To: &text}
		d.Inspect(x.Export)
		write(name, text.Bytes())
	}
	export("export.jsonl")
	d.Inspect(func(r ledger.Reader) error {
		run, err := ledger.Prove(r, held, cosigned)
		check.NoError(t, err)
		write("run.tlog-proof", run.Marshal())
		trace, err := ledger.Trace(context.Background(), r, held, d.replayer(nil))
		check.NoError(t, err)
		write("run.json", trace)
		earlier, err := checkpoint.Read(first)
		check.NoError(t, err)
		growth, err := checkpoint.ProveConsistency(earlier, cosigned, r)
		check.NoError(t, err)
		write("growth", growth.Marshal())
		return nil
	})
	ended := d.runs()[0]
	d.Clock.Add(time.Hour)
	order := ordered(t, signer, ledger.PruneOrder{Kind: ledger.PruneErasure, Entries: []ledger.Range{d.rangeOf(ended)}})
	_, err = d.Prune(t.Context(), ledger.PruneRequest{Order: order, Reason: "mistake"}, root)
	check.NoError(t, err)
	export("pruned.jsonl")
}

// TestVectors: both verifiers verify the stored vectors.
func TestVectors(t *testing.T) {
	if golden.Updating() {
		writeVectors(t)
	}
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(vectors, name))
		check.NoError(t, err)
		return text
	}
	keys := trusted(t, strings.TrimSpace(string(read("log.pub"))))
	witness, err := checkpoint.WitnessVerifier(strings.TrimSpace(string(read("witness.pub"))))
	check.NoError(t, err)
	keys.Witnesses = append(keys.Witnesses, witness)
	opened, err := checkpoint.Open(read("cosigned.checkpoint"), keys)
	check.NoError(t, err)
	for _, name := range []string{"export.jsonl", "pruned.jsonl"} {
		report, err := ledger.VerifyExport(t.Context(), ledgertest.NewStore(t), bytes.NewReader(read(name)),
			ledger.VerifyOptions{Keys: keys.Log, Checkpoint: &opened.Checkpoint})
		if err != nil || !report.Complete {
			t.Errorf("%s: VerifyExport() = %+v, %v", name, report, err)
		}
	}
	trace, err := traces.Read(read("run.json"))
	check.NoError(t, err)
	proof, err := checkpoint.ParseProof(read("run.tlog-proof"))
	check.NoError(t, err)
	if v, err := proof.Verify(trace, keys); err != nil || !v.Ended {
		t.Errorf("Verify() = %+v, %v", v, err)
	}
	growth, err := checkpoint.ParseConsistency(read("growth"))
	check.NoError(t, err)
	if _, _, err := growth.Verify(read("first.checkpoint"), keys); err != nil {
		t.Errorf("Verify() = %v", err)
	}

	v := newSecondVerifier(t)
	in := func(names ...string) (paths string) {
		for _, name := range names {
			path, err := filepath.Abs(filepath.Join(vectors, name))
			check.NoError(t, err)
			paths += " " + path
		}
		return paths
	}
	with := " --key" + in("log.pub") + " --witness-key" + in("witness.pub")
	v.accepts("export"+in("export.jsonl", "pruned.jsonl")+" --checkpoint"+in("cosigned.checkpoint")+with, "are those of the checkpoint")
	v.accepts("proof"+in("run.json", "run.tlog-proof")+with, "records the trace of run")
	v.accepts("consistency"+in("first.checkpoint", "growth")+with, "are those of the earlier checkpoint")
}
