package ledger_test

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/checkpoint"
)

// A checkpointForm is a signed checkpoint in a form that may be malformed. The first line of the corpus has only the keys.
type checkpointForm struct {
	Name    string `json:"name"`
	Note    string `json:"note"`
	Base64  []byte `json:"base64"`  // the note, if it is not UTF-8
	Log     string `json:"log"`     // the key of the log, if it is not that of the others
	Witness string `json:"witness"` // the key of the witness; only in the first line
	Intact  bool   `json:"intact"`
}

// opens reports whether this module accepts a checkpoint that a log has signed and a witness has cosigned.
func opens(t *testing.T, signed []byte, log, witness string) bool {
	t.Helper()
	logKey, err := checkpoint.LogVerifier(log)
	if err != nil {
		return false
	}
	witnessKey, err := checkpoint.WitnessVerifier(witness)
	check.NoError(t, err)
	_, err = checkpoint.Open(signed, checkpoint.Keys{Log: []note.Verifier{logKey}, Witnesses: []note.Verifier{witnessKey}})
	return err == nil
}

// TestVerifiersAgreeOnMalformedCheckpoints shows that both verifiers accept the same forms of checkpoints: those of the reference.
func TestVerifiersAgreeOnMalformedCheckpoints(t *testing.T) {
	v := newSecondVerifier(t)
	lines := bytes.Split(bytes.TrimSpace(v.read("checkpoint/testdata/malformed.jsonl")), []byte("\n"))
	var keys checkpointForm
	check.NoError(t, json.Unmarshal(lines[0], &keys))
	v.write("witness.pub", []byte(keys.Witness))
	for _, line := range lines[1:] {
		form := checkpointForm{Log: keys.Log}
		check.NoError(t, json.Unmarshal(line, &form))
		signed := append(form.Base64, form.Note...)
		v.write("log.pub", []byte(form.Log))
		v.write("form", signed)
		if intact := opens(t, signed, form.Log, keys.Witness); intact != form.Intact {
			t.Errorf("%s: Open() accepts it: %t, want %t", form.Name, intact, form.Intact)
		}
		if says, intact := v.verify("checkpoint form --key log.pub --witness-key witness.pub"); intact != form.Intact {
			t.Errorf("%s: the verifier in JavaScript accepts it: %t, want %t: %s", form.Name, intact, form.Intact, says)
		}
	}
}
