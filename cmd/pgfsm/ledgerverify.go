package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

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

// verifyFlags say with what a log is compared.
type verifyFlags struct {
	keyFlags
	checkpoint string
	isGiven    bool // a checkpoint is given
	deep       bool
}

func (v *verifyFlags) addFlags(cmd *cobra.Command) {
	v.keyFlags.addFlags(cmd)
	cmd.Flags().StringVar(&v.checkpoint, "checkpoint", "", "the file with the checkpoint to compare, or - for standard input")
	cmd.Flags().BoolVar(&v.deep, "deep", false, "execute every run again, and compare what this build decides")
}

func newLedgerVerify(f *ledgerFlags) *cobra.Command {
	var v verifyFlags
	cmd := newCommand("verify", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		v.isGiven = cmd.Flags().Changed("checkpoint")
		return f.verify(&v, func(options ledger.VerifyOptions) (report ledger.Report, err error) {
			err = f.withLedger(stores.ToRead, func(o *openedLedger) error {
				return o.View(cmd.Context(), func(r ledger.Reader) (err error) {
					report, err = verifyLedger(cmd.Context(), r, options)
					return err
				})
			})
			return report, err
		})
	})
	v.addFlags(cmd)
	return cmd
}

func newLedgerVerifyExport(f *ledgerFlags) *cobra.Command {
	var v verifyFlags
	cmd := newCommand("verify-export FILE", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		v.isGiven = cmd.Flags().Changed("checkpoint")
		export, err := openInput(f.w, args[0])
		if err != nil {
			return err
		}
		defer export.Close()
		return f.verify(&v, func(options ledger.VerifyOptions) (ledger.Report, error) {
			return verifyExport(cmd.Context(), export, options)
		})
	})
	v.addFlags(cmd)
	return cmd
}

// verifyExport verifies an export in an SQLite file, which it removes.
func verifyExport(ctx context.Context, export io.Reader, o ledger.VerifyOptions) (report ledger.Report, err error) {
	dir, err := os.MkdirTemp("", "pgfsm-export-")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	store, err := stores.Open("sqlite:"+filepath.Join(dir, "export.db"), stores.ToWrite)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return ledger.VerifyExport(ctx, store, export, o)
}

// openInput opens a file, or standard input if the path is "-".
func openInput(w world, path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(w.stdin), nil
	}
	return os.Open(path)
}

// verify calls do with what a log is compared with, and prints the report.
func (f *ledgerFlags) verify(v *verifyFlags, do func(ledger.VerifyOptions) (ledger.Report, error)) error {
	var report ledger.Report
	opened, err := v.openCheckpoint(f.w)
	if err == nil {
		report, err = f.verifyWith(v, opened, do)
	}
	var fault *ledger.Fault // a fault of the checkpoint, the file, or a row
	if err != nil && !errors.As(err, &fault) {
		return err
	}
	return f.printVerified(&report, fault, opened)
}

// verifyWith calls do with the options of a verification, and shows the progress.
func (f *ledgerFlags) verifyWith(v *verifyFlags, opened *checkpoint.Opened,
	do func(ledger.VerifyOptions) (ledger.Report, error)) (report ledger.Report, err error) {
	keys, err := v.verifierKeys()
	if err != nil {
		return report, err
	}

	bar := cli.NewBar(f.w.stderr, "verifying", 0)
	defer func() { _ = bar.Finish() }()
	o := ledger.VerifyOptions{Keys: keys.Log, Progress: func(done, total int64) {
		if bar.GetMax64() != total {
			bar = cli.NewBar(f.w.stderr, "verifying", int(total))
		}
		_ = bar.Set64(done) // verify even if the bar cannot be drawn
	}}
	if opened != nil {
		o.Checkpoint = &opened.Checkpoint
	}
	if v.deep {
		if o.Replayer, err = newReplayer(); err != nil {
			return report, err
		}
	}
	return do(o)
}

// openCheckpoint reads the checkpoint to compare the log with: from a file, or from standard input if the
// path is "-". It returns nil if none is given. Without keys, it does not verify signatures. If a signature
// that the keys require is missing, invalid or too old, the error is a [*ledger.Fault].
func (v *verifyFlags) openCheckpoint(w world) (*checkpoint.Opened, error) {
	keys, err := v.verifierKeys()
	unverified := len(keys.Log)+len(keys.Witnesses) == 0

	switch {
	case err != nil:
		return nil, err
	case !v.isGiven && unverified:
		return nil, nil
	case !v.isGiven:
		return nil, errors.New("--key and --witness-key verify a checkpoint: name it with --checkpoint")
	}

	text, err := v.readCheckpoint(w)
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
	if err == nil {
		err = v.checkAge(opened)
	}
	if err != nil {
		return nil, &ledger.Fault{Table: "checkpoint", Key: v.checkpoint, What: err.Error(), Rule: checkpoint.RuleOf(err)}
	}
	return opened, nil
}

func (v *verifyFlags) readCheckpoint(w world) ([]byte, error) {
	if v.checkpoint == "-" {
		return io.ReadAll(io.LimitReader(w.stdin, checkpoint.MaxBytes))
	}
	text, _, err := safefile.Read(v.checkpoint)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s: %w; give - to read standard input", v.checkpoint, err)
	}
	return text, err
}

// errNoWitness means that nobody says how old a checkpoint is.
var errNoWitness = errors.New("--max-age needs --witness-key: only the cosignature of a witness says when a checkpoint was the last one")

// checkAge checks that each witness cosigned a checkpoint as lately as --max-age says.
func (f *keyFlags) checkAge(opened *checkpoint.Opened) error {
	for _, c := range opened.Cosigned {
		if f.maxAge != 0 && time.Since(c.At) > f.maxAge {
			return fmt.Errorf("%s cosigned it at %s, more than %v ago: ask for a newer checkpoint", visible.Text(c.Witness),
				c.At.Format(time.RFC3339), f.maxAge)
		}
	}
	return nil
}

// verifyLedger verifies a ledger and its file.
func verifyLedger(ctx context.Context, r ledger.Reader, o ledger.VerifyOptions) (report ledger.Report, err error) {
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

// printVerified prints the findings. It returns the exit code no for a fault, and for a run that this build
// decides differently. A checkpoint whose signatures nobody verified shows nothing: the exit code is that of
// a command that failed.
func (f *ledgerFlags) printVerified(d *ledger.Report, fault *ledger.Fault, c *checkpoint.Opened) error {
	code := cli.ExitYes
	d.Complete = d.Complete && len(c.Signed) > 0
	switch {
	case fault != nil || !d.Deep.OK():
		code = cli.ExitNo
	case c != nil && !d.Complete:
		code = cli.ExitFailed
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

// keyFlags say whose signatures are needed.
type keyFlags struct {
	log, witnesses []string
	maxAge         time.Duration // 0: any
}

func (f *keyFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.log, "key", nil,
		"a verifier key of the log, or the file with it; may be given again, and one of them must have signed")
	cmd.Flags().StringArrayVar(&f.witnesses, "witness-key", nil,
		"a verifier key of a witness, or the file with it; may be given again, and all of them must have cosigned")
	cmd.Flags().DurationVar(&f.maxAge, "max-age", 0,
		"how long ago the witnesses may have cosigned the checkpoint, as in 36h (default: any time)")
}

// verifierKeys reads the verifier keys that the flags name.
func (f *keyFlags) verifierKeys() (k checkpoint.Keys, err error) {
	if k.Log, err = readKeys("key", f.log, checkpoint.LogVerifier); err != nil {
		return k, err
	}
	k.Witnesses, err = readKeys("witness-key", f.witnesses, checkpoint.WitnessVerifier)
	if err == nil && f.maxAge != 0 && len(k.Witnesses) == 0 {
		err = errNoWitness
	}
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

var errNoKey = errors.New("give the verifier key of the log with --key: without it nothing is verified")

func newVerifyProof(w world) *cobra.Command {
	return newVerifyCommand(w, "verify-proof TRACE PROOF", verifyProof)
}

// newVerifyCommand makes a command that verifies two files without the ledger, with keys.
func newVerifyCommand(w world, use string,
	verify func(w world, first, second string, f *keyFlags, keys checkpoint.Keys, asJSON bool) error) *cobra.Command {
	var f keyFlags
	var asJSON bool
	cmd := newCommand(use, cobra.ExactArgs(2), func(_ *cobra.Command, args []string) error {
		if len(f.log) == 0 {
			return errNoKey
		}
		keys, err := f.verifierKeys()
		if err != nil {
			return err
		}
		return verify(w, args[0], args[1], &f, keys, asJSON)
	})
	f.addFlags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// codeProofInvalid is the code for a proof that cannot be verified, or that belongs to a different
// trace.
const codeProofInvalid = "proof_invalid"

func verifyProof(w world, trace, proof string, f *keyFlags, keys checkpoint.Keys, asJSON bool) error {
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
	if err == nil {
		err = f.checkAge(&v.Opened)
	}
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
			fmt.Fprintf(out, "%s %s%s\n", k.mark(false), visible.Text(code+": "+err.Error()), checkpoint.RuleOf(err).Cited())
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
