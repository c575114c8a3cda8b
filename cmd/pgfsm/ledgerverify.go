package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/policy/visible"
	"pgfsm/safefile"
	"pgfsm/traces/ledger"
)

func newLedgerVerify(w world, f *ledgerFlags) *cobra.Command {
	var checkpoint string
	var execute bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Verify that nobody changed the ledger",
		Long: `verify reads the whole ledger and changes nothing. It checks every entry and every hash of the tree, every row that is
computed from entries, and every large value. It also checks that every call has a decision. It names the first wrong row, and exits
with 1.

A user who can write the file can delete the last rows, or recompute the whole file. Only a checkpoint (pgfsm ledger
checkpoint) that is stored elsewhere reveals that: --checkpoint compares the ledger with it. Without a checkpoint,
verify cannot detect that the last rows are missing.

--deep also executes every run again with this build, and counts the runs that it decides as recorded, decides
otherwise, or cannot judge because it does not read the run's bundle or inputs. It names the first run that it decides
otherwise and the first that it cannot judge, and then exits with 1.`,
		Example: `  pgfsm ledger checkpoint > /elsewhere/pgfsm.checkpoint
  pgfsm ledger verify --checkpoint /elsewhere/pgfsm.checkpoint`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := ledger.VerifyOptions{}
			if cmd.Flags().Changed("checkpoint") {
				c, err := readCheckpoint(w, checkpoint)
				if err != nil {
					return fmt.Errorf("--checkpoint: %w", err)
				}
				o.Checkpoint = &c
			}
			if execute {
				var err error
				if o.Replayer, err = newReplayer(); err != nil {
					return err
				}
			}
			err := f.view(cmd.Context(), w, func(r ledger.Reader) error { return verifyLedger(cmd.Context(), w, r, o, f.json) })
			if fault := new(ledger.Fault); errors.As(err, &fault) { // the file is not opened because it holds more than rows
				return tellVerified(w, ledger.Report{}, fault, o.Checkpoint, f.json)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&checkpoint, "checkpoint", "", "the file with the checkpoint to compare, or - for standard input")
	cmd.Flags().BoolVar(&execute, "deep", false, "execute every run again, and compare what this build decides")
	return cmd
}

// maxCheckpointBytes bounds what is read as a checkpoint.
const maxCheckpointBytes = 64 << 10

// readCheckpoint reads a checkpoint from a file, or from standard input if the path is "-".
func readCheckpoint(w world, path string) (c ledger.Checkpoint, err error) {
	from := w.stdin
	if path != "-" {
		f, err := safefile.Open(path)
		if err != nil {
			return c, err
		}
		defer f.Close()
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file; give - to read standard input", path)
		}
		if err != nil {
			return c, err
		}
		from = f
	}
	text, err := io.ReadAll(io.LimitReader(from, maxCheckpointBytes))
	if err != nil {
		return c, err
	}
	return ledger.ParseCheckpoint(text)
}

func verifyLedger(ctx context.Context, w world, r ledger.Reader, o ledger.VerifyOptions, asJSON bool) error {
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
	return tellVerified(w, report, fault, o.Checkpoint, asJSON)
}

// A checker is a reader that can say whether the file that it reads is whole, with its indexes. The error is a [*ledger.Fault] if not.
type checker interface {
	Check(ctx context.Context) error
}

// tellVerified prints what was found. A fault, or a run that this build does not decide as recorded, is the exit code no.
func tellVerified(w world, d ledger.Report, fault *ledger.Fault, c *ledger.Checkpoint, asJSON bool) (err error) {
	switch {
	case asJSON:
		err = printJSON(w.stdout, struct {
			SchemaVersion int           `json:"schema_version"`
			OK            bool          `json:"ok"`
			Fault         *ledger.Fault `json:"fault,omitzero"`
			ledger.Report
		}{schemaVersion, fault == nil && d.Deep.OK(), fault, d})
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

func printVerified(w world, d *ledger.Report, c *ledger.Checkpoint) error {
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
	} else {
		fmt.Fprintln(w.stdout, "Completeness is unproven: without a checkpoint (pgfsm ledger checkpoint), verify cannot detect that the last rows are missing")
	}
	_, err := fmt.Fprintf(w.stdout, "origin %s\nsize %d\nroot %s\n", visible.Text(d.Origin), d.Size, d.Root)
	return err
}

func newLedgerCheckpoint(w world, f *ledgerFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "checkpoint",
		Short: "Print a checkpoint, with which verify detects deleted last rows",
		Long: `checkpoint prints the state of the log: its name, how many entries it has, and the hash of the tree over them. Store it
where users who can write the ledger cannot write, and give it to verify --checkpoint.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.view(cmd.Context(), w, func(r ledger.Reader) error {
				c, err := ledger.TakeCheckpoint(r)
				if err != nil {
					return err
				}
				if f.json {
					return printJSON(w.stdout, struct {
						SchemaVersion int       `json:"schema_version"`
						Origin        string    `json:"origin"`
						Size          int64     `json:"size"`
						Root          tlog.Hash `json:"root"`
					}{schemaVersion, c.Origin, c.Size, c.Root})
				}
				_, err = io.WriteString(w.stdout, c.String())
				return err
			})
		},
	}
}
