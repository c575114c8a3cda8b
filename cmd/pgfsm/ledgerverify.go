package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"pgfsm/policy/visible"
	"pgfsm/safefile"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
)

func newLedgerVerify(w world, f *ledgerFlags) *cobra.Command {
	var path string
	var keys keyFlags
	var execute bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Verify that nobody changed the ledger",
		Long: `verify reads the whole ledger and changes nothing. It checks every entry and every hash of the tree, every row that is
computed from entries, and every large value. It also checks that every call has a decision. It names the first wrong row, and exits
with 1.

A user who can write the file can delete the last rows, or recompute the whole file. Only a checkpoint (pgfsm ledger
checkpoint) that is stored elsewhere reveals that: --checkpoint compares the ledger with it. Without a checkpoint,
verify cannot detect that the last rows are missing. --key and --witness-key verify the signatures of the checkpoint.

--deep also executes every run again with this build, and counts the runs that it decides as recorded, decides
otherwise, or cannot judge because it does not read the run's bundle or inputs. It names the first run that it decides
otherwise and the first that it cannot judge, and then exits with 1.`,
		Example: `  pgfsm ledger checkpoint -o /elsewhere/pgfsm.checkpoint
  pgfsm ledger verify --checkpoint /elsewhere/pgfsm.checkpoint --key /elsewhere/pgfsm-log.pub`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := ledger.VerifyOptions{}
			var given *givenCheckpoint
			if cmd.Flags().Changed("checkpoint") {
				c, err := readCheckpoint(w, path, &keys)
				if fault := new(ledger.Fault); errors.As(err, &fault) {
					return tellVerified(w, ledger.Report{}, fault, nil, f.json)
				}
				if err != nil {
					return fmt.Errorf("--checkpoint: %w", err)
				}
				given, o.Checkpoint = c, &c.Checkpoint
			} else if len(keys.log)+len(keys.witnesses) > 0 {
				return errors.New("--key and --witness-key verify a checkpoint: name it with --checkpoint")
			}
			if execute {
				var err error
				if o.Replayer, err = newReplayer(); err != nil {
					return err
				}
			}
			err := f.view(cmd.Context(), w, func(r ledger.Reader) error { return verifyLedger(cmd.Context(), w, r, o, given, f.json) })
			if fault := new(ledger.Fault); errors.As(err, &fault) { // the file is not opened because it holds more than rows
				return tellVerified(w, ledger.Report{}, fault, given, f.json)
			}
			return err
		},
	}
	keys.register(cmd)
	cmd.Flags().StringVar(&path, "checkpoint", "", "the file with the checkpoint to compare, or - for standard input")
	cmd.Flags().BoolVar(&execute, "deep", false, "execute every run again, and compare what this build decides")
	return cmd
}

// A givenCheckpoint is a checkpoint to compare the ledger with. Opened says who signed it; without a key of the log, that is not verified.
type givenCheckpoint struct {
	checkpoint.Checkpoint
	opened *checkpoint.Opened // nil: no signature was verified
}

// readCheckpoint reads a checkpoint from a file, or from standard input if the path is "-". The error is a [*ledger.Fault] if a signature that
// the keys require is missing or invalid.
func readCheckpoint(w world, path string, with *keyFlags) (c *givenCheckpoint, err error) {
	keys, err := with.keys()
	if err != nil {
		return nil, err
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
		return nil, err
	}
	c = new(givenCheckpoint)
	if len(keys.Log)+len(keys.Witnesses) == 0 {
		c.Checkpoint, err = checkpoint.Read(text)
		return c, err
	}
	if c.opened, err = checkpoint.Open(text, keys); err != nil {
		return nil, &ledger.Fault{Table: "checkpoint", Key: path, What: err.Error()}
	}
	c.Checkpoint = c.opened.Checkpoint
	return c, nil
}

func verifyLedger(ctx context.Context, w world, r ledger.Reader, o ledger.VerifyOptions, given *givenCheckpoint, asJSON bool) error {
	bar := newBar(w, "verifying", 0)
	o.Progress = func(done, total int64) {
		if bar.GetMax64() != total {
			bar = newBar(w, "verifying", int(total))
		}
		_ = bar.Set64(done) // a bar that cannot be drawn is no reason not to verify
	}
	report, err := ledger.Verify(ctx, r, o)
	if whole, ok := r.(checker); ok && err == nil {
		err = whole.Check(ctx)
	}
	_ = bar.Finish()
	var fault *ledger.Fault
	if err != nil && !errors.As(err, &fault) {
		return err
	}
	return tellVerified(w, report, fault, given, asJSON)
}

// A checker is a reader that can say whether the file that it reads is whole, with its indexes. The error is a [*ledger.Fault] if not.
type checker interface {
	Check(ctx context.Context) error
}

// tellVerified prints what was found. A fault, or a run that this build does not decide as recorded, is the exit code no.
func tellVerified(w world, d ledger.Report, fault *ledger.Fault, c *givenCheckpoint, asJSON bool) (err error) {
	switch {
	case asJSON:
		err = printJSON(w.stdout, struct {
			SchemaVersion int           `json:"schema_version"`
			OK            bool          `json:"ok"`
			Fault         *ledger.Fault `json:"fault,omitzero"`
			ledger.Report
			Checkpoint *comparedCheckpoint `json:"checkpoint,omitzero"`
		}{schemaVersion, fault == nil && d.Deep.OK(), fault, d, c.compared()})
	case fault == nil:
		err = printVerified(w, &d, c)
	default:
		_, err = fmt.Fprintf(w.stdout, "%s %s %s: %s\n", newInk(w).mark(false), fault.Table, visible.Clip(fault.Key, maxTold),
			visible.Clip(fault.What, 4*maxTold))
	}
	if err == nil && (fault != nil || !d.Deep.OK()) {
		err = exit(exitNo)
	}
	return err
}

// A comparedCheckpoint is the checkpoint that a ledger was compared with, as --json prints it.
type comparedCheckpoint struct {
	Size       int64         `json:"size"`
	Verified   bool          `json:"verified"` // its signatures
	SignedBy   []string      `json:"signed_by"`
	CosignedBy []cosignature `json:"cosigned_by"`
}

func (c *givenCheckpoint) compared() *comparedCheckpoint {
	if c == nil {
		return nil
	}
	if c.opened == nil {
		return &comparedCheckpoint{Size: c.Size, SignedBy: []string{}, CosignedBy: []cosignature{}}
	}
	return &comparedCheckpoint{c.Size, true, c.opened.Signed, cosignatures(c.opened)}
}

func printVerified(w world, d *ledger.Report, c *givenCheckpoint) error {
	k := newInk(w)
	fmt.Fprintf(w.stdout, "%s %s, %s, %s, %s verified\n", k.mark(true), counted(int(d.Entries), "entry", "entries"), count(int(d.Requests), "request"),
		count(int(d.Blobs), "blob"), count(int(d.Tokens), "token"))
	if n := d.Deep.Same + d.Deep.Otherwise + d.Deep.Unjudged; n > 0 {
		fmt.Fprintf(w.stdout, "%s executed again: %d decided as recorded, %d otherwise, %d cannot be judged by this build\n",
			count(int(n), "run"), d.Deep.Same, d.Deep.Otherwise, d.Deep.Unjudged)
	}
	for _, first := range []*ledger.Fault{d.Deep.FirstOtherwise, d.Deep.FirstUnjudged} {
		if first != nil {
			fmt.Fprintf(w.stdout, "%s run %s: %s\n", k.mark(false), first.Key, visible.Clip(first.What, 4*maxTold))
		}
	}
	if d.Pruned > 0 {
		fmt.Fprintf(w.stdout, "%s were pruned; their hashes are in the tree\n", counted(int(d.Pruned), "entry", "entries"))
	}
	for _, note := range d.Notes {
		fmt.Fprintf(w.stdout, "Not verified: %s\n", visible.Text(note))
	}
	if c != nil {
		fmt.Fprintf(w.stdout, "Complete up to the checkpoint of %d entries\n", c.Size)
		printSigners(w, c.opened)
	} else {
		fmt.Fprintln(w.stdout, "Completeness is unproven: without a checkpoint (pgfsm ledger checkpoint), verify cannot detect that the last rows are missing")
	}
	_, err := fmt.Fprintf(w.stdout, "origin %s\nsize %d\nroot %s\n", visible.Text(d.Origin), d.Size, d.Root)
	return err
}

// printSigners prints who signed a checkpoint.
func printSigners(w world, o *checkpoint.Opened) {
	if o == nil {
		fmt.Fprintln(w.stdout, "The signatures of the checkpoint were not verified: give the verifier key of the log with --key")
		return
	}
	for _, key := range o.Signed {
		fmt.Fprintf(w.stdout, "signed by %s\n", visible.Text(key))
	}
	for _, c := range cosignatures(o) {
		fmt.Fprintf(w.stdout, "cosigned by %s at %s\n", visible.Text(c.Key), c.At)
	}
}
