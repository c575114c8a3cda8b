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
	labels "pgfsm/policy/origin"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
	"pgfsm/traces/ledger/ledgertest"
)

// vectors has test vectors for authors of verifiers: a small log with its key, checkpoints, a cosignature, proofs, a prune, and calls whose
// arguments come from a session.
const vectors = "testdata/vectors"

// fromEverywhere makes calls of a session whose arguments come from a prompt, a trusted result, an own call and nowhere. It returns the
// entry of the prompt, the run with the trusted result, and the last run, which is held.
func fromEverywhere(t *testing.T, d *fixture) (prompt int64, searched, held string) {
	t.Helper()
	s := newSession(t, d)
	s.label(labels.ToolLabel{Tool: send, Creates: []string{"/id"}})
	s.prompt("Send the minutes to carl@example.com.")
	session := s.request.Session
	s.request.Session, s.request.MCPSession = nil, states.MCPSession("s-2")
	s.call(contacts, `{"name":"Dora"}`, `{"content":[]}`)
	s.request.Session, s.request.MCPSession = session, ""
	searched = s.call(contacts, "{}", contactsFound).RunID
	s.call(send, `{"to":["carl@example.com"]}`, `{"content":[],"structuredContent":{"id":"mail-1702"}}`)
	held = s.call(send, `{"subject":"Minutes","to":["carl@example.com","Bob <bob@example.com>","mail-1702","eve@example.com",{"carl@example.com":true}],"urgent":true}`,
		`{"content":[]}`).RunID
	return s.index(ledger.PromptCaptured, 0), searched, held
}

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
	ended := d.runs()[0]
	first := d.signed(signer)
	held := d.called(ledger.Anonymous)
	d.delivers(held, ledger.ByRepeat)
	prompt, searched, _ := fromEverywhere(t, d)
	d.sound()
	cosigned, err := cosign(t, w, d.signed(signer), d.Store)
	check.NoError(t, err)
	write("log.pub", []byte(vkey+"\n"))
	write("witness.pub", []byte(w.Key+"\n"))
	write("first.checkpoint", first)
	write("cosigned.checkpoint", cosigned)
	write("export.jsonl", d.export(0))
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
	d.Clock.Add(time.Hour)
	gone := []ledger.Range{d.rangeOf(ended), {First: prompt, Last: prompt}, d.rangeOf(searched)}
	order := ordered(t, signer, ledger.PruneOrder{Kind: ledger.PruneErasure, Entries: gone})
	_, err = d.Prune(t.Context(), ledger.PruneRequest{Order: order, Reason: "mistake"}, root)
	check.NoError(t, err)
	write("pruned.jsonl", d.export(0))

	other, before, s := newFixture(t), statestest.Find(t, "policy-allows"), statestest.Find(t, "origins-not-looked-for")
	before.Request.Task = s.Request.Task
	_, _, err = other.play(ledgertest.NewID(t), &before)
	check.NoError(t, err)
	run, rec := other.begin(ledgertest.NewID(t), &s)
	defer rec.Abandon()
	_, err = other.Machine.Advance(t.Context(), run, s.Entry(), rec) // not rec.Effects, which would look
	check.NoError(t, err)
	write("failed-look.jsonl", other.export(0))
}

// vector reads one of the vectors.
func vector(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(vectors, name))
	check.NoError(t, err)
	return text
}

// TestVectors: both verifiers verify the stored vectors.
func TestVectors(t *testing.T) {
	if golden.Updating() {
		writeVectors(t)
	}
	read := func(name string) []byte { return vector(t, name) }
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

// TestVectorsOfOrigins: the vectors have each origin, in a call that is held. Both verifiers refuse changed ones, and name the rule.
func TestVectorsOfOrigins(t *testing.T) {
	for _, has := range []string{
		`"origin":"request"`, `"origin":"trusted"`, `"origin":"own"`, `"origin":"none"`, `"form":"address"`, `"name":true`, `"exempt":true`, `"untrusted":true`,
	} {
		if !bytes.Contains(vector(t, "export.jsonl"), []byte(has)) {
			t.Errorf("no vector has %s", has)
		}
	}
	const own, source, failed = `"origin":"own"`, `("origin":"own","place":"/id","role":"target","source":")`, `"failed":"[^"]*"`
	v := newSecondVerifier(t)
	for _, c := range []struct{ file, of, from, to, rule string }{
		{"failed-look.jsonl", failed, failed, "$0", ""},
		{"failed-look.jsonl", failed, failed, `"failed":""`, "R50"},
		{"failed-look.jsonl", failed, failed + ",", "", "R50"},
		{"failed-look.jsonl", failed, `,"private":true`, "", "R50"},
		{"failed-look.jsonl", failed, `"untrusted":true`, `"runs":1,$0`, "R50"},
		{"export.jsonl", own, own, "$0", ""},
		{"export.jsonl", own, `"earlier":3`, `"earlier":2`, "R50"},
		{"export.jsonl", own, `"prompts":1`, `"prompts":2`, "R50"},
		{"export.jsonl", own, `"runs":2`, `"runs":1`, "R50"},
		{"export.jsonl", own, own, `"origin":"known"`, "R50"},
		{"export.jsonl", own, source + "[0-9]+", "${1}1", "R50"},
		{"export.jsonl", own, source + "[0-9]+", "${1}14", "R50"},
		{"export.jsonl", own, source + "[0-9]+", "${1}17", "R50"},
		{"export.jsonl", own, source, "${1}0", "R50"},
		{"export.jsonl", own, `"last":"sha256:[0-9a-f]+`, "${0}0", "R1"},
		{"export.jsonl", own, `"last":"sha256:[0-9a-f]+`, `"last":"`, "R1"},
		{"export.jsonl", own, `"binding":"sha256:[0-9a-f]+`, `"binding":"`, "R1"},
		{"pruned.jsonl", own, own, "$0", ""},
		{"pruned.jsonl", own, `"runs":2`, `"runs":0`, "R50"},
		{"pruned.jsonl", own, source + "[0-9]+", "${1}14", "R50"},
	} {
		x := &exportedLines{t, strings.Split(strings.TrimSuffix(string(vector(t, c.file)), "\n"), "\n")}
		inBody(c.of, c.from, c.to)(x)
		changed := []byte(strings.Join(x.lines, "\n") + "\n")
		_, err := ledger.VerifyExport(t.Context(), ledgertest.NewStore(t), bytes.NewReader(changed), ledger.VerifyOptions{})
		v.write("changed", changed)
		out, intact := v.verify("export changed")
		cited := ledger.Rule(c.rule).Cited()
		if (err == nil) != (c.rule == "") || intact != (c.rule == "") || err != nil && !strings.Contains(err.Error(), cited) || !strings.Contains(out, cited) {
			t.Errorf("%s, %s instead of %s: VerifyExport() = %v; the second verifier says %s", c.file, c.to, c.from, err, out)
		}
	}
}
