package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/canonical"
	"pgfsm/internal/cli"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/stores"
)

func newLedgerVerify(f *ledgerFlags) *cobra.Command {
	var path string
	var keys keyFlags
	var execute bool
	cmd := newCommand("verify", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		var report ledger.Report
		opened, err := givenCheckpoint(f.w, cmd.Flags().Changed("checkpoint"), path, &keys)
		if err == nil {
			err = f.withLedger(stores.ToRead, func(o *openedLedger) error {
				return o.View(cmd.Context(), func(r ledger.Reader) (err error) {
					report, err = verifyLedger(cmd.Context(), f.w, r, opened, &keys, execute)
					return err
				})
			})
		}
		var fault *ledger.Fault // a fault of the checkpoint, the file, or a row
		if err != nil && !errors.As(err, &fault) {
			return err
		}
		return f.printVerified(&report, fault, opened)
	})

	keys.addFlags(cmd)
	cmd.Flags().StringVar(&path, "checkpoint", "", "the file with the checkpoint to compare, or - for standard input")
	cmd.Flags().BoolVar(&execute, "deep", false, "execute every run again, and compare what this build decides")

	return cmd
}

// givenCheckpoint reads the checkpoint to compare the ledger with: from a file, or from standard
// input if the path is "-". It returns nil if none is given. Without keys, it does not verify
// signatures. If a signature that the keys require is missing or invalid, the error is a
// [*ledger.Fault].
func givenCheckpoint(w world, isGiven bool, path string, flags *keyFlags) (*checkpoint.Opened, error) {
	keys, err := flags.verifierKeys()
	unverified := len(keys.Log)+len(keys.Witnesses) == 0

	switch {
	case err != nil:
		return nil, err
	case !isGiven && unverified:
		return nil, nil
	case !isGiven:
		return nil, errors.New("--key and --witness-key verify a checkpoint: name it with --checkpoint")
	}

	var text []byte
	if path == "-" {
		text, err = io.ReadAll(io.LimitReader(w.stdin, checkpoint.MaxBytes))
	} else {
		text, _, err = safefile.Read(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s: %w; give - to read standard input", path, err)
		}
	}

	if err != nil {
		return nil, fmt.Errorf("--checkpoint: %w", err)
	}

	if unverified {
		c, err := checkpoint.Read(text)
		if err != nil {
			return nil, fmt.Errorf("--checkpoint: %w", err)
		}
		return &checkpoint.Opened{Checkpoint: c}, nil
	}

	opened, err := checkpoint.Open(text, keys)
	if err != nil {
		return nil, &ledger.Fault{Table: "checkpoint", Key: path, What: err.Error()}
	}
	return opened, nil
}

// verifyLedger verifies a ledger and its file.
func verifyLedger(ctx context.Context, w world, r ledger.Reader, opened *checkpoint.Opened, flags *keyFlags,
	deep bool) (report ledger.Report, err error) {
	keys, err := flags.verifierKeys()
	if err != nil {
		return report, err
	}
	bar := cli.NewBar(w.stderr, "verifying", 0)
	defer func() { _ = bar.Finish() }()
	o := ledger.VerifyOptions{Keys: keys.Log, Progress: func(done, total int64) {
		if bar.GetMax64() != total {
			bar = cli.NewBar(w.stderr, "verifying", int(total))
		}
		_ = bar.Set64(done) // verify even if the bar cannot be drawn
	}}
	if opened != nil {
		o.Checkpoint = &opened.Checkpoint
	}
	if deep {
		if o.Replayer, err = newReplayer(); err != nil {
			return report, err
		}
	}
	// A query of an altered file may show rows that are not there.
	if file, ok := r.(checker); ok {
		if err := file.Check(ctx); err != nil {
			return report, err
		}
	}
	return ledger.Verify(ctx, r, o)
}

// A checker is a reader that can check its whole file, including its schema and its indexes. If the
// file was altered or is damaged, the error is a [*ledger.Fault].
type checker interface {
	Check(ctx context.Context) error
}

// printVerified prints the findings. It returns the exit code no for a fault, and for a run that
// this build decides differently.
func (f *ledgerFlags) printVerified(d *ledger.Report, fault *ledger.Fault, c *checkpoint.Opened) error {
	code := cli.ExitYes
	if fault != nil || !d.Deep.OK() {
		code = cli.ExitNo
	}

	doc := struct {
		SchemaVersion int           `json:"schema_version"`
		OK            bool          `json:"ok"`
		Fault         *ledger.Fault `json:"fault,omitzero"`
		ledger.Report
		Checkpoint *comparedCheckpoint `json:"checkpoint,omitzero"`
	}{cli.SchemaVersion, code == cli.ExitYes, fault, *d, newComparedCheckpoint(c)}

	earlier := max(0, len(d.Prunes)-maxPrunes)
	text := templatePrinter("verified", struct {
		*ledger.Report
		Compared      *checkpoint.Opened
		Executed      int64
		EarlierPrunes int
		LastPrunes    []ledger.Prune
	}{d, c, int64(d.Deep.Same + d.Deep.Otherwise + d.Deep.Unjudged), earlier, d.Prunes[earlier:]})

	if fault != nil {
		text = templatePrinter("fault", fault)
	}
	return f.w.printDocument(f.json, doc, code, text)
}

// A comparedCheckpoint is the --json form of the checkpoint that a ledger was compared with.
type comparedCheckpoint struct {
	Size       int64                    `json:"size"`
	Verified   bool                     `json:"verified"` // the signatures were verified
	SignedBy   []string                 `json:"signed_by"`
	CosignedBy []checkpoint.Cosignature `json:"cosigned_by"`
}

func newComparedCheckpoint(c *checkpoint.Opened) *comparedCheckpoint {
	if c == nil {
		return nil
	}
	return &comparedCheckpoint{c.Size, len(c.Signed) > 0, c.Signed, c.Cosigned}
}

// maxPrunes bounds the prunes that verify lists.
const maxPrunes = 10

// maxRanges bounds the ranges in a line.
const maxRanges = 5

// rangesText writes ranges of entries.
func rangesText(ranges []ledger.Range) string {
	var words []string
	for _, r := range ranges[:min(len(ranges), maxRanges)] {
		word := fmt.Sprintf("%d to %d", r.First, r.Last)
		if r.First == r.Last {
			word = fmt.Sprint(r.First)
		}
		words = append(words, word)
	}
	if n := len(ranges) - maxRanges; n > 0 {
		words = append(words, cli.Count(n, "more range"))
	}
	return "entries " + strings.Join(words, ", ")
}

// keyFlags name verifier keys.
type keyFlags struct{ log, witnesses []string }

func (f *keyFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.log, "key", nil,
		"a verifier key of the log, or the file with it; may be given again, and one of them must have signed")
	cmd.Flags().StringArrayVar(&f.witnesses, "witness-key", nil,
		"a verifier key of a witness, or the file with it; may be given again, and all of them must have cosigned")
}

// verifierKeys reads the verifier keys that the flags name.
func (f *keyFlags) verifierKeys() (k checkpoint.Keys, err error) {
	if k.Log, err = readKeys("key", f.log, checkpoint.LogVerifier); err != nil {
		return k, err
	}
	k.Witnesses, err = readKeys("witness-key", f.witnesses, checkpoint.WitnessVerifier)
	return k, err
}

// readKeys reads the keys of one flag. A value that is not a key names a file that contains one.
func readKeys(flag string, values []string, parse func(string) (note.Verifier, error)) (keys []note.Verifier,
	err error) {
	for _, value := range values {
		key, err := parse(value)
		if err != nil {
			text, _, noFile := safefile.Read(value)
			switch {
			case noFile == nil:
				key, err = parse(strings.TrimSpace(string(text)))
			case !strings.Contains(value, "+"): // every key contains a plus sign
				err = noFile
			}
		}
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func newVerifyProof(w world) *cobra.Command {
	var f keyFlags
	var asJSON bool
	cmd := newCommand("verify-proof TRACE PROOF", cobra.ExactArgs(2), func(_ *cobra.Command, args []string) error {
		if len(f.log) == 0 {
			return errors.New("give the verifier key of the log with --key: without it nothing is verified")
		}
		keys, err := f.verifierKeys()
		if err != nil {
			return err
		}
		return verifyProof(w, args[0], args[1], keys, asJSON)
	})
	f.addFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// codeProofInvalid is the code for a proof that cannot be verified, or that belongs to a different
// trace.
const codeProofInvalid = "proof_invalid"

func verifyProof(w world, trace, proof string, keys checkpoint.Keys, asJSON bool) error {
	text, err := readProof(proof)
	if err != nil {
		return err
	}
	t, err := traces.ReadFile(trace)
	switch {
	case errors.Is(err, traces.ErrTampered):
		return tellUnproven(w, traces.CodeTampered, err, asJSON)
	case err != nil:
		return err
	}
	p, err := checkpoint.ParseProof(text)
	if err != nil {
		return tellUnproven(w, codeProofInvalid, fmt.Errorf("%s: %w", proof, err), asJSON)
	}
	v, err := p.Verify(t, keys)
	if err != nil {
		return tellUnproven(w, codeProofInvalid, fmt.Errorf("%s: %w", proof, err), asJSON)
	}
	return tellProven(w, t, v, asJSON)
}

// readProof reads a proof. A proof contains everything in the run's trace.
func readProof(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > traces.MaxTraceBytes {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, traces.MaxTraceBytes)
	}
	return os.ReadFile(path)
}

// tellUnproven prints the reason that the proof is not verified.
func tellUnproven(w world, code string, err error, asJSON bool) error {
	return w.printDocument(asJSON, cli.Document("ok", false, "code", code, "error", err.Error()), cli.ExitNo,
		func(out io.Writer, k ink) {
			fmt.Fprintf(out, "%s %s\n", k.mark(false), visible.Text(code+": "+err.Error()))
		})
}

// tellProven prints what a proof shows, and what it does not show.
func tellProven(w world, t *traces.Trace, v *checkpoint.Verified, asJSON bool) error {
	return w.printDocument(asJSON, cli.Document(
		"ok", true, "run_id", v.Run, "ended", v.Ended, "head", t.Head, "index", v.Index,
		"entries", v.Entries, "origin", v.Origin, "size", v.Size, "root", v.Root.String(),
		"signed_by", v.Signed, "cosigned_by", v.Cosigned,
	), cli.ExitYes, templatePrinter("proven", struct {
		*checkpoint.Verified
		State string
		Head  canonical.Digest
	}{v, t.Outcome.State, t.Head}))
}
