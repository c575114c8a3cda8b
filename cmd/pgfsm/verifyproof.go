package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/cli"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/traces"
	"pgfsm/traces/ledger/checkpoint"
)

// keyFlags name verifier keys.
type keyFlags struct{ log, witnesses []string }

func (f *keyFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.log, "key", nil, "a verifier key of the log, or the file with it; may be given again, and one of them must have signed")
	cmd.Flags().StringArrayVar(&f.witnesses, "witness-key", nil,
		"a verifier key of a witness, or the file with it; may be given again, and all of them must have cosigned")
}

// keys reads the verifier keys that the flags name.
func (f *keyFlags) keys() (k checkpoint.Keys, err error) {
	if k.Log, err = readKeys("key", f.log, checkpoint.LogVerifier); err != nil {
		return k, err
	}
	k.Witnesses, err = readKeys("witness-key", f.witnesses, checkpoint.WitnessVerifier)
	return k, err
}

// readKeys reads the keys of one flag. A value that is not a key names a file that contains one.
func readKeys(flag string, values []string, parse func(string) (note.Verifier, error)) (keys []note.Verifier, err error) {
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
	cmd := &cobra.Command{
		Use:  "verify-proof TRACE PROOF",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(f.log) == 0 {
				return errors.New("give the verifier key of the log with --key: without it nothing is verified")
			}
			keys, err := f.keys()
			if err != nil {
				return err
			}
			return verifyProof(w, args[0], args[1], keys, asJSON)
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// codeProofInvalid is the code for a proof that cannot be verified, or that belongs to a different trace.
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
	if err == nil && (!info.Mode().IsRegular() || info.Size() > traces.MaxTraceBytes) {
		err = fmt.Errorf("%s is not a regular file of at most %d bytes", path, traces.MaxTraceBytes)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// tellUnproven prints the reason that the proof is not verified.
func tellUnproven(w world, code string, err error, asJSON bool) error {
	return w.print(asJSON, cli.Document("ok", false, "code", code, "error", err.Error()), cli.ExitNo, func(out io.Writer, k ink) {
		fmt.Fprintf(out, "%s %s\n", k.mark(false), visible.Text(code+": "+err.Error()))
	})
}

// tellProven prints what a proof shows, and what it does not show.
func tellProven(w world, t *traces.Trace, v *checkpoint.Verified, asJSON bool) error {
	if asJSON {
		return cli.PrintJSON(w.stdout, cli.Document(
			"ok", true, "run_id", v.Run, "ended", v.Ended, "head", t.Head, "index", v.Index,
			"entries", v.Entries, "origin", v.Origin, "size", v.Size, "root", v.Root.String(),
			"signed_by", v.Signed, "cosigned_by", v.Cosigned,
		))
	}
	fmt.Fprintf(w.stdout, "%s run %s is in the log %s\n", newInk(w).mark(true), v.Run, visible.Text(v.Origin))
	fmt.Fprintf(w.stdout, "state %s\nhead %s\n", visible.Text(t.Outcome.State), t.Head)
	fmt.Fprintf(w.stdout, "%s of the run, up to entry %d of the log\n", counted(v.Entries, "entry", "entries"), v.Index)
	fmt.Fprintf(w.stdout, "size %d\nroot %s\n", v.Size, v.Root)
	printSigners(w.stdout, &v.Opened)
	if !v.Ended {
		fmt.Fprintln(w.stdout, "Not shown: the outcome of the trace. The run is held, and the log has its steps only")
	}
	if len(v.Cosigned) == 0 {
		fmt.Fprintln(w.stdout, "Not shown: that the log has no second history. Give the key of a witness with --witness-key")
	}
	_, err := fmt.Fprintln(w.stdout, "Not shown: that the run has no later entry")
	return err
}
