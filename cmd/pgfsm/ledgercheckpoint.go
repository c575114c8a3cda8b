package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/cli"
	"pgfsm/internal/safefile"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/stores"
)

// codeInconsistent is the code for a log that does not contain a checkpoint, or whose witness has
// cosigned a different history.
const codeInconsistent = "log_inconsistent"

// publicMode is the mode of a file with a checkpoint.
const publicMode = 0o644

func newLedgerCheckpoint(f *ledgerFlags) *cobra.Command {
	var keys []string
	var out string
	o := consoleOptions{ledgerFlags: *f}
	local := f.newViewCommand("checkpoint", cobra.NoArgs,
		func(_ context.Context, o *openedLedger, r ledger.Reader, _ []string) error {
			return f.orInconsistent(f.writeCheckpoint(o, r, keys, out))
		})
	cmd := newCommand("checkpoint", cobra.NoArgs, func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("url") {
			return local.RunE(cmd, args)
		}
		address, err := o.adminAddress(cmd)
		if err != nil {
			return err
		}
		return f.writeRemoteCheckpoint(cmd.Context(), address, keys, out)
	})
	cmd.Flags().StringVar(&o.url, "url", "", "scheme, host and port of a service whose log to sign, instead of the ledger: see pgfsm reload")
	cmd.Flags().StringArrayVar(&keys, "key", nil,
		"a file with a private key; may be given again (default: checkpoints.key of the configuration)")
	cmd.Flags().StringVarP(&out, "output", "o", "", "the file to write to (default: standard output)")
	return cmd
}

// orInconsistent prints that a log differs from the one that was signed or cosigned before, and
// returns the exit code no. It returns other errors unchanged.
func (f *ledgerFlags) orInconsistent(err error) error {
	if errors.Is(err, checkpoint.ErrInconsistent) {
		return tellUnproven(f.w, codeInconsistent, err, f.json)
	}
	return err
}

// writeCheckpoint signs the state of the log and writes it to a file or to standard output.
func (f *ledgerFlags) writeCheckpoint(o *openedLedger, r ledger.Reader, keys []string, file string) error {
	c, signed, err := o.signCheckpoint(r, keys)
	if err != nil {
		return err
	}
	if file != "" {
		if signed, err = replaceCheckpoint(r, file, c, signed); err != nil {
			return err
		}
	}
	return f.printDocument(cli.Document("origin", c.Origin, "size", c.Size, "root", c.Root, "checkpoint", string(signed)),
		func(out io.Writer, _ ink) {
			if file == "" {
				_, _ = out.Write(signed) // the writer of standard output keeps the error
			}
		})
}

// replaceCheckpoint writes a signed checkpoint to a file. It keeps a checkpoint of the same size,
// because that may have cosignatures. It returns the new content of the file.
func replaceCheckpoint(r ledger.Reader, path string, c checkpoint.Checkpoint, signed []byte) ([]byte, error) {
	previous, _, err := safefile.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		signedBefore, err := ledger.Contains(r, previous)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if signedBefore == c {
			return previous, nil
		}
	}
	return signed, safefile.Replace(path, previous, signed, publicMode)
}

// signCheckpoint signs the state of the log with the keys in these files, or else with the
// configuration's keys.
func (o *openedLedger) signCheckpoint(r ledger.Reader, files []string) (c checkpoint.Checkpoint, signed []byte, err error) {
	signers, err := o.readSigners(r, files)
	if err != nil {
		return c, nil, err
	}
	if c, err = ledger.TakeCheckpoint(r); err != nil {
		return c, nil, err
	}
	signed, err = checkpoint.Sign(c, signers...)
	return c, signed, err
}

// readSigners reads private keys. They must be keys of the log.
func (o *openedLedger) readSigners(r ledger.Reader, files []string) (signers []note.Signer, err error) {
	if len(files) == 0 {
		files = o.checkpoints.Keys
	}

	if len(files) == 0 {
		return nil, errors.New("no key signs the checkpoint: write checkpoints: {key: FILE} in the configuration, or give --key FILE to " +
			"pgfsm ledger checkpoint (pgfsm ledger key new makes a key)")
	}
	logKeys, err := ledger.Keys(r)
	if err != nil {
		return nil, err
	}

	for _, file := range files {
		s, err := checkpoint.ReadSigner(file)
		if err != nil {
			return nil, err
		}
		begins := fmt.Sprintf("%s+%08x+", s.Name(), s.KeyHash())
		if !slices.ContainsFunc(logKeys,
			func(k ledger.Key) bool { return k.Removed == "" && strings.HasPrefix(k.Key, begins) }) {
			return nil, fmt.Errorf("%s is no key of this log, or was removed: pgfsm ledger key list shows the log's keys", file)
		}
		signers = append(signers, s)
	}

	return signers, nil
}

// checkpointWriter returns the writer of the configured checkpoints; nil if the configuration names
// no folder.
func (o *openedLedger) checkpointWriter(ctx context.Context, log *slog.Logger) (*checkpoint.Writer, error) {
	c := &o.checkpoints
	if c.Dir == "" {
		return nil, nil
	}
	w := &checkpoint.Writer{Dir: c.Dir, Every: time.Duration(c.Every) * time.Millisecond, Log: log}
	w.View = func(ctx context.Context, do func(checkpoint.Checkpoint, tlog.HashReader) error) error {
		return o.View(ctx, func(r ledger.Reader) error {
			current, err := ledger.TakeCheckpoint(r)
			if err != nil {
				return err
			}
			return do(current, r)
		})
	}
	return w, o.View(ctx, func(r ledger.Reader) (err error) {
		w.Signers, err = o.readSigners(r, nil)
		return err
	})
}

func newLedgerWitness(f *ledgerFlags) *cobra.Command {
	var file, vkey string
	cmd := newCommand("witness URL --witness-key KEY", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		keys, err := readKeys("witness-key", []string{vkey}, checkpoint.WitnessVerifier)
		if err != nil {
			return err
		}
		target, err := checkpoint.NewWitness(args[0], keys[0])
		if err != nil {
			return err
		}
		return f.withLedger(stores.ToRead, func(o *openedLedger) error {
			return f.orInconsistent(o.requestCosignature(cmd.Context(), target,
				file))
		})
	})
	cmd.Flags().StringVar(&vkey, "witness-key", "", "the verifier key of the witness, or the file with it")
	cmd.Flags().StringVar(&file, "checkpoint", "", "the file with the signed checkpoint (default: a new checkpoint)")
	cli.MustFlags(cmd, "witness-key")
	return cmd
}

// requestCosignature requests a witness's cosignature for the checkpoint in a file, or for a new
// one.
func (o *openedLedger) requestCosignature(ctx context.Context, target *checkpoint.Witness, file string) error {
	var signed []byte
	err := o.View(ctx, func(r ledger.Reader) (err error) {
		signed, err = o.signedCheckpoint(r, file)
		return err
	})
	if err != nil {
		return err
	}

	// A log's hashes never change, so each read can use its own snapshot while the witness answers.
	tree := tlog.HashReaderFunc(func(indexes []int64) (hashes []tlog.Hash, err error) {
		err = o.store.ReadCommitted(ctx, func(r ledger.Reader) error {
			hashes, err = r.ReadHashes(indexes)
			return err
		})
		return hashes, err
	})

	cosigned, err := target.Cosign(ctx, signed, tree)
	if err != nil {
		return err
	}
	if file != "" {
		return safefile.Replace(file, signed, cosigned, publicMode)
	}

	_, err = o.w.stdout.Write(cosigned)
	return err
}

// signedCheckpoint reads the checkpoint in a file, which the log must contain; without a file, it
// signs the state of the log.
func (o *openedLedger) signedCheckpoint(r ledger.Reader, file string) (signed []byte, err error) {
	if file == "" {
		_, signed, err = o.signCheckpoint(r, nil)
		return signed, err
	}
	if signed, _, err = safefile.Read(file); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if _, err := ledger.Contains(r, signed); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return signed, nil
}

func newLedgerProve(f *ledgerFlags) *cobra.Command {
	var file, out string
	var consistency bool
	cmd := f.newViewCommand("prove RUN", cobra.RangeArgs(1, 2),
		func(_ context.Context, o *openedLedger, r ledger.Reader, args []string) error {
			switch {
			case consistency && len(args) == 2 && file == "":
				return f.orInconsistent(o.writeConsistency(r, args[0], args[1], out))
			case !consistency && len(args) == 1:
				return f.orInconsistent(o.writeProof(r, args[0], file, out))
			}
			return errors.New("prove needs one RUN, or --consistency and two files with checkpoints, the earlier one first")
		})
	cmd.Flags().BoolVar(&consistency, "consistency", false, "prove that the second of two checkpoints contains the entries of the first")
	cmd.Flags().StringVar(&file, "checkpoint", "",
		"the file with a signed checkpoint that covers the run (default: a new checkpoint)")
	cmd.Flags().StringVarP(&out, "output", "o", "", "the file to write to (default: standard output)")
	return cmd
}

// writeProof writes the proof of a run to a file or to standard output.
func (o *openedLedger) writeProof(r ledger.Reader, run, file, out string) error {
	signed, err := o.signedCheckpoint(r, file)
	if err != nil {
		return err
	}
	if run, err = ledger.FindRun(r, run); err != nil {
		return err
	}
	p, err := ledger.Prove(r, run, signed)
	if err != nil {
		return noRun(run, err)
	}
	return o.writeOutput(p.Marshal(), out, 0o600)
}

// writeOutput writes to a file, or to standard output.
func (o *openedLedger) writeOutput(text []byte, file string, mode fs.FileMode) error {
	if file == "" {
		_, err := o.w.stdout.Write(text)
		return err
	}
	return safefile.Write(file, text, mode)
}

// writeConsistency writes the proof that a checkpoint contains the entries of an earlier one.
func (o *openedLedger) writeConsistency(r ledger.Reader, oldFile, newFile, out string) error {
	old, err := o.signedCheckpoint(r, oldFile)
	if err != nil {
		return err
	}
	signed, err := o.signedCheckpoint(r, newFile)
	if err != nil {
		return err
	}
	earlier, err := checkpoint.Read(old)
	if err != nil {
		return err
	}
	p, err := checkpoint.ProveConsistency(earlier, signed, r)
	if err != nil {
		return err
	}
	return o.writeOutput(p.Marshal(), out, publicMode)
}

func newLedgerKey(f *ledgerFlags) *cobra.Command {
	return cli.Group("key", newLedgerKeyNew(f), newLedgerKeyAdd(f), newLedgerKeyList(f), newLedgerKeyRemove(f))
}

func newLedgerKeyNew(f *ledgerFlags) *cobra.Command {
	var out, origin string
	added := f.newManageCommand("new -o FILE", cobra.NoArgs, stores.ToWrite,
		func(ctx context.Context, o *openedLedger, by ledger.Caller, _ []string) error {
			origin, err := o.Origin(ctx)
			if err != nil {
				return err
			}

			private, vkey, err := checkpoint.NewKey(origin)
			if err != nil {
				return err
			}
			if err := checkpoint.WriteKey(out, private); err != nil {
				return err
			}
			if err := o.AddKey(ctx, by, vkey); err != nil {
				return errors.Join(err, os.Remove(out))
			}
			return f.printDocument(cli.Document("key", vkey), linePrinter("%s\n", vkey))
		})

	cmd := newCommand("new -o FILE", cobra.NoArgs, func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("origin") {
			return added.RunE(cmd, args)
		}
		private, vkey, err := checkpoint.NewKey(origin)
		if err != nil {
			return fmt.Errorf("--origin: %w", err)
		}
		if err := checkpoint.WriteKey(out, private); err != nil {
			return err
		}
		return f.printDocument(cli.Document("key", vkey), linePrinter("%s\n", vkey))
	})
	cmd.Flags().StringVarP(&out, "output", "o", "", "the new file for the private key")
	cmd.Flags().StringVar(&origin, "origin", "", "the name of the log, if you cannot open its ledger: pgfsm ledger key add adds the key there")
	cli.MustFlags(cmd, "output")

	return cmd
}

func newLedgerKeyAdd(f *ledgerFlags) *cobra.Command {
	return f.newManageCommand("add VERIFIER-KEY", cobra.ExactArgs(1), stores.ToWrite,
		func(ctx context.Context, o *openedLedger, by ledger.Caller, args []string) error {
			if _, err := o.Origin(ctx); err != nil {
				return err
			}
			if err := o.AddKey(ctx, by, args[0]); err != nil {
				return err
			}
			return f.printDocument(cli.Document("key", args[0]), linePrinter("The key %s is added.\n", args[0]))
		})
}

func newLedgerKeyList(f *ledgerFlags) *cobra.Command {
	return f.newViewCommand("list", cobra.NoArgs, func(_ context.Context, _ *openedLedger, r ledger.Reader, _ []string) error {
		keys, err := ledger.Keys(r)
		if err != nil {
			return err
		}
		return f.printList(cli.Document("keys", keys), "keys", keys, len(keys),
			"The log has no keys yet; pgfsm ledger key new makes one.")
	})
}

func newLedgerKeyRemove(f *ledgerFlags) *cobra.Command {
	return f.newManageCommand("remove VERIFIER-KEY", cobra.ExactArgs(1), stores.ToChange,
		func(ctx context.Context, o *openedLedger, by ledger.Caller, args []string) error {
			if err := o.RemoveKey(ctx, by, args[0]); err != nil {
				return err
			}
			return f.printDocument(cli.Document("key", args[0]), linePrinter("The key %s is removed.\n", args[0]))
		})
}
