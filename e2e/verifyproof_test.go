package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/test/cli"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
)

// TestVerifyProof shows the exit codes and what is printed, with keys as text and as files. Nothing but the named files is read.
func TestVerifyProof(t *testing.T) {
	h := newHouse(t, openPolicy, "checkpoints: {key: log.key}\n")
	in := func(name string) string { return filepath.Join(h.dir, name) }
	called := h.do("call", "--json", "puppet", "look", "{}")
	called.Want(t, exitYes)
	run := called.Member("/run_id")
	key := h.do("ledger", "key", "new", "-o", in("log.key"))
	key.Want(t, exitYes)
	vkey := strings.TrimSpace(key.Stdout)
	origin, _, _ := strings.Cut(vkey, "+")
	_, foreign, err := checkpoint.NewKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	service := witnesstest.New(t)
	service.Trust(t, vkey)
	trace := in("run.json")
	for _, args := range [][]string{
		{"trace", run, "-o", trace}, {"checkpoint", "-o", in("checkpoint")}, {"prove", run, "--checkpoint", in("checkpoint"), "-o", in("signed")},
		{"witness", service.URL, "--witness-key", service.Key, "--checkpoint", in("checkpoint")},
		{"prove", run, "--checkpoint", in("checkpoint"), "-o", in("cosigned")},
	} {
		h.do(append([]string{"ledger"}, args...)...).Want(t, exitYes)
	}
	other := filepath.FromSlash("../traces/testdata/good/ticket-fetched.json")
	cli.Write(t, in("log+1.pub"), vkey+"\n")
	doc := cli.Read(t, trace)
	digit := "0" // of the head
	if doc[len(doc)-10:len(doc)-9] == digit {
		digit = "1"
	}
	cli.Write(t, in("changed.json"), doc[:len(doc)-10]+digit+doc[len(doc)-9:])
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"signed", []string{trace, in("signed"), "--key", vkey}, exitYes, "Not shown: that the log has no second history"},
		{"key-in-a-file", []string{trace, in("signed"), "--key", in("log+1.pub")}, exitYes, "✓ run " + run},
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
			if out := r.Stdout + r.Stderr; r.Code != tt.code || !strings.Contains(out, tt.want) || strings.Contains(out, "PRIVATE") {
				t.Errorf("exit code %d, want %d and %q:\n%s", r.Code, tt.code, tt.want, out)
			}
		})
	}
}
