package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/traces"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
)

// TestVerifyProof shows the exit codes and what is printed, with keys as text and as files. Nothing but the named files is read.
func TestVerifyProof(t *testing.T) {
	const origin = "pgfsm-log-1"
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	trace := filepath.FromSlash("../../traces/testdata/good/document-fetched.json")
	other := filepath.FromSlash("../../traces/testdata/good/ticket-fetched.json")
	read, err := traces.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	leaf := fmt.Appendf(nil, `{"at":"2026-11-23T12:00:00Z","by":"","events":[{"head":%q,"type":"run.ended"}],"n":0,"prev":"","run":%q}`,
		read.Head, read.Header.RunID)
	tree := tlog.HashReaderFunc(func([]int64) ([]tlog.Hash, error) { return []tlog.Hash{tlog.RecordHash(leaf)}, nil })
	private, vkey, err := checkpoint.NewKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	_, foreign, err := checkpoint.NewKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkpoint.WriteKey(in("log.key"), private); err != nil {
		t.Fatal(err)
	}
	signer, err := checkpoint.ReadSigner(in("log.key"))
	if err != nil {
		t.Fatal(err)
	}
	head, err := checkpoint.Take(origin, 1, tree)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := checkpoint.Sign(head, signer)
	if err != nil {
		t.Fatal(err)
	}
	service := witnesstest.New(t)
	service.Trust(t, vkey)
	prove := func(name string, signed []byte) {
		p, err := checkpoint.Prove(signed, tree, 0, []checkpoint.Entry{{Leaf: leaf}})
		if err = errors.Join(err, os.WriteFile(in(name), p.Marshal(), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	prove("signed", signed)
	witnessKey, err := checkpoint.WitnessVerifier(service.Key)
	if err != nil {
		t.Fatal(err)
	}
	witness, err := checkpoint.NewWitness(service.URL, witnessKey)
	if err != nil {
		t.Fatal(err)
	}
	cosigned, err := witness.Cosign(t.Context(), signed, tree)
	if err != nil {
		t.Fatal(err)
	}
	prove("cosigned", cosigned)
	write(t, in("log+1.pub"), vkey+"\n")
	doc := textOf(t, trace)
	write(t, in("changed.json"), doc[:len(doc)-10]+"0"+doc[len(doc)-9:])
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"signed", []string{trace, in("signed"), "--key", vkey}, exitYes, "Not shown: that the log has no second history"},
		{"key-in-a-file", []string{trace, in("signed"), "--key", in("log+1.pub")}, exitYes, "✓ run " + read.Header.RunID},
		{"cosigned", []string{trace, in("cosigned"), "--key", vkey, "--witness-key", service.Key}, exitYes, "cosigned by witness.example/w1+"},
		{"json", []string{trace, in("cosigned"), "--key", vkey, "--witness-key", service.Key, "--json"}, exitYes, `"ended": true`},
		{"several-keys", []string{trace, in("signed"), "--key", foreign, "--key", vkey}, exitYes, "signed by " + origin},
		{"not-cosigned", []string{trace, in("signed"), "--key", vkey, "--witness-key", service.Key}, exitNo, "has not cosigned it"},
		{"another-key", []string{trace, in("signed"), "--key", foreign}, exitNo, "proof_invalid: "},
		{"another-key-json", []string{trace, in("signed"), "--key", foreign, "--json"}, exitNo, `"code": "proof_invalid"`},
		{"another-trace", []string{other, in("signed"), "--key", vkey}, exitNo, "and the trace is of the run"},
		{"changed-trace", []string{in("changed.json"), in("signed"), "--key", vkey}, exitNo, "trace_tampered: "},
		{"no-proof", []string{trace, in("log+1.pub"), "--key", vkey}, exitNo, "not a proof of a run"},
		{"no-trace", []string{in("signed"), in("signed"), "--key", vkey}, exitCould, "not a trace"},
		{"no-key", []string{trace, in("signed")}, exitCould, "give the verifier key"},
		{"no-such-key-file", []string{trace, in("signed"), "--key", in("none")}, exitCould, "no such file"},
		{"private-key", []string{trace, in("signed"), "--key", in("log.key")}, exitCould, "not a verifier key"},
		{"no-such-proof", []string{trace, in("none"), "--key", vkey}, exitCould, "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := command(t.Context(), nil, append([]string{"verify-proof"}, tt.args...)...)
			if out := r.stdout + r.stderr; r.code != tt.code || !strings.Contains(out, tt.want) || strings.Contains(out, "PRIVATE") {
				t.Errorf("exit code %d, want %d and %q:\n%s", r.code, tt.code, tt.want, out)
			}
		})
	}
}
