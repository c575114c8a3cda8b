package ledger_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"golang.org/x/mod/sumdb/note"
	"pgfsm/fsm"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/tool"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/checkpoint/witnesstest"
	"pgfsm/traces/ledger/ledgertest"
)

// verifierScript is the verifier in JavaScript. It was written from the reference pages and shares no code with this module.
const verifierScript = "checkpoint/testdata/verifier.mjs"

// A secondVerifier is a process of the verifier in JavaScript that works in a folder.
type secondVerifier struct {
	*testing.T
	node     string
	dir      string
	commands io.Writer
	answers  *bufio.Scanner
}

func newSecondVerifier(t *testing.T) *secondVerifier {
	t.Helper()
	node := tool.Path(t, "nodejs", "node")
	script, err := filepath.Abs(verifierScript)
	check.NoError(t, err)
	v := &secondVerifier{T: t, node: node, dir: t.TempDir()}
	cmd := exec.Command(node, script, "-")
	cmd.Dir, cmd.Stderr = v.dir, os.Stderr
	commands, err := cmd.StdinPipe()
	check.NoError(t, err)
	answers, err := cmd.StdoutPipe()
	check.NoError(t, err)
	check.NoError(t, cmd.Start())
	t.Cleanup(func() {
		if err := errors.Join(commands.Close(), cmd.Wait()); err != nil {
			t.Error(err)
		}
	})
	v.commands, v.answers = commands, bufio.NewScanner(answers)
	v.write("machine.md", v.read("../../docs/internals/machine.md"))
	return v
}

func (v *secondVerifier) write(name string, text []byte) {
	v.Helper()
	check.NoError(v, os.WriteFile(filepath.Join(v.dir, name), text, 0o600))
}

// read reads one of the files, or a file of the repository.
func (v *secondVerifier) read(name string) []byte {
	v.Helper()
	if !strings.Contains(name, "/") {
		name = filepath.Join(v.dir, name)
	}
	text, err := os.ReadFile(name)
	check.NoError(v, err)
	return text
}

// verify returns what the verifier says, and whether it verified the files.
func (v *secondVerifier) verify(command string) (string, bool) {
	v.Helper()
	fmt.Fprintln(v.commands, command)
	var answer struct {
		Intact bool   `json:"intact"`
		Text   string `json:"text"`
	}
	if !v.answers.Scan() {
		v.Fatalf("%s: no answer: %v", command, v.answers.Err())
	}
	check.NoError(v, json.Unmarshal(v.answers.Bytes(), &answer))
	return answer.Text, answer.Intact
}

// accepts fails the test unless the verifier verifies the files, and prints a text that contains what.
func (v *secondVerifier) accepts(command, what string) {
	v.Helper()
	if out, ok := v.verify(command); !ok || !strings.Contains(out, what) {
		v.Errorf("%s: verified %t, %s; want %q", command, ok, out, what)
	}
}

// refuses fails the test unless the verifier names the place that what describes.
func (v *secondVerifier) refuses(command, what string) {
	v.Helper()
	if out, ok := v.verify(command); ok || !strings.Contains(out, what) {
		v.Errorf("%s: verified %t, %q; want the error %q", command, ok, out, what)
	}
}

// changedBits changes single bits all over a file. The verifier must refuse each of the changed files.
func (v *secondVerifier) changedBits(file, command string) {
	v.Helper()
	const many = 50
	text := v.read(file)
	for i := range many {
		changed, at := bytes.Clone(text), i*len(text)/many
		changed[at] ^= 1 << (i % 7)
		v.write("changed", changed)
		if out, ok := v.verify(command); ok {
			v.Errorf("%s: bit %d of byte %d is changed in %s: verified, %s", command, i%7, at, file, out)
		}
	}
}

// export returns the lines of the log's entries from an index on.
func (d *fixture) export(from int64) []byte {
	d.TB.Helper()
	var b bytes.Buffer
	d.Inspect((&ledger.Exporter{To: &b, Next: from}).Export)
	return b.Bytes()
}

// playLarge plays a run whose events are stored as a blob, and one with large arguments.
func (d *fixture) playLarge() {
	d.TB.Helper()
	large := strings.Repeat("long ", 2000)
	text, args := statestest.Find(d.TB, "policy-allows"), statestest.Find(d.TB, "policy-allows")
	text.Request.Text = canonical.Text(large)
	args.Request.Kind = states.KindCall
	args.Request.Text = canonical.Text(strings.Replace(statestest.GoodPlan, `"args":{`, `"args":{"sections":["`+large+`"],`, 1))
	for _, s := range []statestest.Scenario{text, args} {
		if o, _, err := d.play(ledgertest.NewID(d.TB), &s); err != nil || o.State != string(states.Answered) {
			d.TB.Fatalf("play() = %+v, %v", o, err)
		}
	}
}

// TestSecondVerifier verifies exports, checkpoints, proofs and traces of runs of every outcome with the verifier in JavaScript, which shares
// no code with this module, and has it name the first wrong place of changed ones.
func TestSecondVerifier(t *testing.T) {
	v := newSecondVerifier(t)
	d, w := newFixture(t), witnesstest.New(t)
	signer, vkey := d.newKey()
	w.Trust(t, vkey)
	v.write("early", d.signed(signer))
	d.fill()
	d.playLarge()
	signed := d.signed(signer)
	v.write("log.pub", []byte(vkey+"\n"))
	v.write("witness.pub", []byte(w.Key+"\n"))
	v.write("signed", signed)
	cosigned, err := cosign(t, w, signed, d.Store)
	check.NoError(t, err)
	v.write("cosigned", cosigned)

	other := newFixture(t)
	otherSigner, otherKey := other.newKey()
	other.passes(1)
	v.write("other.pub", []byte(otherKey+"\n"))
	v.write("other-log", other.signed(otherSigner))

	v.exports(d, signer)
	v.checkpoints()
	v.proofs(d)
	v.consistency(d, signer)
	v.prunedExport(d, signer)
}

// exports verifies exports of a log whose checkpoints are in the files, and changed ones.
func (v *secondVerifier) exports(d *fixture, signer note.Signer) {
	v.Helper()
	whole := d.export(0)
	v.write("export", whole)
	v.accepts("export export", "without a checkpoint")
	for _, checkpoint := range []string{"early", "signed", "cosigned"} {
		v.accepts("export export --key log.pub --checkpoint "+checkpoint, "are those of the checkpoint")
	}
	v.refuses("export export --key log.pub --checkpoint other-log", "checkpoint: its origin is")
	v.refuses("export export --key other.pub --checkpoint other-log", "the checkpoint is of another log")
	v.refuses("export export --key log.pub --witness-key witness.pub --checkpoint signed", "did not cosign")
	v.write("later", d.export(d.checkpoint().Size/2))
	v.accepts("export later", "are intact")
	v.refuses("export later --checkpoint signed", "does not begin with entry 0")

	v.changedExports(whole)
	v.forgedPrunes(whole, signer)

	v.changedBits("export", "export changed --key log.pub --checkpoint signed")

	rewritten := fixtureAt(v.T, d.forged(v.T, edits(ledger.CommandStarted, `"env":"test"`, `"env":"prod"`)), d.Clock)
	v.write("rewritten", rewritten.export(0))
	v.accepts("export rewritten", "without a checkpoint")
	v.refuses("export rewritten --checkpoint signed", "are not those of the checkpoint")
}

func (v *secondVerifier) checkpoints() {
	v.Helper()
	v.accepts("checkpoint signed --key log.pub", "a checkpoint of")
	v.accepts("checkpoint cosigned --key log.pub --witness-key witness.pub", "a checkpoint of")
	v.accepts("checkpoint cosigned --key log.pub", "a checkpoint of")
	v.refuses("checkpoint signed --key log.pub --witness-key witness.pub", "did not cosign it")
	v.refuses("checkpoint signed", "no key of the log is given")
	v.refuses("checkpoint signed --key other.pub", "its origin is")
	v.refuses("checkpoint signed --keys log.pub", "an unknown option")
	v.accepts("--help", "node verifier.mjs export")
	v.refuses("checkpoint signed --key witness.pub", "not an Ed25519 key of type 1")
	v.changedBits("cosigned", "checkpoint changed --key log.pub --witness-key witness.pub")
}

// proofs verifies the traces of all runs, each with its proof.
func (v *secondVerifier) proofs(d *fixture) {
	v.Helper()
	cosigned := v.read("cosigned")
	var files []string
	seen, held, ended := make(map[fsm.State]bool), "", ""
	for _, run := range d.runs() {
		q := d.Run(run)
		d.Inspect(func(r ledger.Reader) error {
			p, err := ledger.Prove(r, run, cosigned)
			if errors.Is(err, ledger.ErrUnfinished) {
				return nil
			}
			if err != nil {
				return err
			}
			doc, err := ledger.Trace(context.Background(), r, run, d.replayer(nil))
			if err != nil {
				return err
			}
			trace, err := traces.Read(doc)
			check.NoError(v, err)
			if of, err := p.Verify(trace, trusted(v, d.keys()[0].Key)); err != nil || of.Run != run || of.Ended != (q.Ended != "") {
				v.Errorf("run %s: Verify() = %+v, %v", run, of, err)
			}
			v.write(run+".json", doc)
			v.write(run+".tlog-proof", p.Marshal())
			files = append(files, run+".json", run+".tlog-proof")
			seen[q.State] = true
			if q.State == states.Pending {
				held = run
			} else if q.State == states.Answered {
				ended = run
			}
			return nil
		})
	}
	v.accepts("proof "+strings.Join(files, " ")+" --machine machine.md --key log.pub --witness-key witness.pub", ended)
	for _, s := range []fsm.State{states.Answered, states.NeedsInfo, states.Blocked, states.Failed, states.Pending} {
		if !seen[s] {
			v.Errorf("no run with a proof is %s: the test is blind", s)
		}
	}
	v.changedProofs(d, ended, held)
}

// changedProofs verifies changed proofs of two runs, the first of which has ended while the second is held.
func (v *secondVerifier) changedProofs(d *fixture, ended, held string) {
	v.Helper()
	files := func(trace, proof string) string {
		return "proof " + trace + ".json " + proof + ".tlog-proof --key log.pub"
	}
	v.refuses(files(held, ended), "an entry of another run")
	v.refuses(files(ended, held), "an entry of another run")
	v.refuses("proof "+ended+".json "+ended+".tlog-proof", "no key of the log is given")
	v.refuses("proof "+ended+".json "+ended+".tlog-proof --key other.pub", "its origin is")

	v.write("otherwise.json", bytes.Replace(v.read(held+".json"), []byte(`"state":"pending"`), []byte(`"state":"blocked"`), 1))
	v.refuses("proof otherwise.json "+held+".tlog-proof --key log.pub", "head: does not match")
	v.changedBits(ended+".tlog-proof", "proof "+ended+".json changed --key log.pub --witness-key witness.pub")
	v.changedBits(ended+".json", "trace changed")
	v.changedBits(ended+".json", "proof changed "+ended+".tlog-proof --key log.pub")
	v.accepts("trace "+ended+".json --head "+string(d.Run(ended).Head), "the trace is intact")
	v.refuses("trace "+ended+".json --head "+string(d.Run(held).Head), "not the given one")
}

// prunedExport prunes the log and verifies the export of what is left against the checkpoint from before.
func (v *secondVerifier) prunedExport(d *fixture, signer note.Signer) {
	v.Helper()
	var followed bytes.Buffer
	follow := ledger.Exporter{To: &followed}
	d.Inspect(follow.Export)
	d.Clock.Add(time.Hour)
	if done := d.prunes(d.Clock.Now().Format(policy.TimeForm), signer); done.Runs == 0 {
		v.Fatalf("Prune() = %+v", done)
	}
	pruned := d.export(0)
	v.write("pruned", pruned)
	v.accepts("export pruned --key log.pub --checkpoint signed", "are those of the checkpoint")
	d.Inspect(follow.Export)
	v.write("followed", followed.Bytes())
	v.accepts("export followed --key log.pub --checkpoint signed", "are those of the checkpoint")
	v.changedExport(pruned, "pruned-more-than-named", inBody(`"type":"ledger.pruned"`, `\{"first":[0-9]+,"last":[0-9]+\},`, ""), "R32")
}

// consistency verifies proofs between checkpoints of many sizes, and has every changed one refused.
func (v *secondVerifier) consistency(d *fixture, signer note.Signer) {
	v.Helper()
	size := d.checkpoint().Size
	for _, pair := range [][2]int64{
		{0, 1}, {1, 1}, {1, 2}, {1, size}, {2, 3}, {3, 4}, {3, 7}, {4, 7}, {4, 8}, {6, 7}, {6, 8}, {7, 8}, {8, 9}, {31, 64}, {32, 64},
		{32, 33}, {33, size}, {size - 1, size}, {size, size},
	} {
		d.Inspect(func(r ledger.Reader) error {
			var signed [2][]byte
			var heads [2]checkpoint.Checkpoint
			for i, n := range pair {
				c, err := checkpoint.Take(signer.Name(), n, r)
				check.NoError(v, err)
				heads[i] = c
				signed[i], err = checkpoint.Sign(c, signer)
				check.NoError(v, err)
			}
			p, err := checkpoint.ProveConsistency(heads[0], signed[1], r)
			check.NoError(v, err)
			if _, _, err := p.Verify(signed[0], trusted(v, d.keys()[0].Key)); err != nil {
				v.Errorf("%d to %d: Verify() = %v", pair[0], pair[1], err)
			}
			v.write("old", signed[0])
			v.write("growth", p.Marshal())
			v.accepts("consistency old growth --key log.pub", "are those of the earlier checkpoint")
			for i := range p.Hashes {
				changed := *p
				changed.Hashes = slices.Clone(p.Hashes)
				changed.Hashes[i][0]++
				if _, _, err := changed.Verify(signed[0], trusted(v, d.keys()[0].Key)); checkpoint.RuleOf(err) != "R49" {
					v.Errorf("%d to %d, hash %d changed: Verify() = %v", pair[0], pair[1], i, err)
				}
				v.write("growth", changed.Marshal())
				v.refuses("consistency old growth --key log.pub", "R49")
			}
			return nil
		})
	}
}

// TestSecondVerifierOnStoredTraces verifies the examples in traces/testdata. All forged ones are refused but the one whose facts only the
// gates can judge.
func TestSecondVerifierOnStoredTraces(t *testing.T) {
	v := newSecondVerifier(t)
	good, err := filepath.Glob("../testdata/good/*.json")
	if err != nil || len(good) == 0 {
		t.Fatalf("Glob() = %q, %v", good, err)
	}
	var files []string
	for _, file := range good {
		v.write(filepath.Base(file), v.read(file))
		files = append(files, filepath.Base(file))
	}
	v.accepts("trace --machine machine.md "+strings.Join(files, " "), "the trace is intact")
	if out, err := exec.Command(v.node, append([]string{verifierScript, "trace"}, good...)...).CombinedOutput(); err != nil {
		t.Errorf("as a command: %v\n%s", err, out)
	}
	bad, err := filepath.Glob("../testdata/bad/*.txt")
	if err != nil || len(bad) == 0 {
		t.Fatalf("Glob() = %q, %v", bad, err)
	}
	for _, file := range bad {
		says, doc, _ := bytes.Cut(v.read(file), []byte("\n"))
		v.write("trace", doc)
		out, ok := v.verify("trace trace --machine machine.md")
		if needsGates := filepath.Base(file) == "facts-forged.txt"; ok != needsGates {
			t.Errorf("%s: %s: verified %t, %q", file, says, ok, out)
		}
	}
	exit := new(exec.ExitError)
	if out, err := exec.Command(v.node, verifierScript, "trace", bad[0]).CombinedOutput(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("as a command: %v, want exit code 1\n%s", err, out)
	}
}
