package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

func newLedgerTrace(w world, f *ledgerFlags) *cobra.Command {
	var out string
	var all bool
	cmd := &cobra.Command{
		Use:  "trace RUN | --all -o DIR",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return errors.New("name one RUN, or give --all")
			}
			if all && out == "" {
				return errors.New("--all needs -o DIR: it writes one file a run")
			}
			p, err := newReplayer()
			if err != nil {
				return err
			}
			return f.view(cmd.Context(), w, func(r ledger.Reader) error {
				if all {
					return writeTraces(cmd.Context(), w, r, p, out, f.json)
				}
				return writeTrace(cmd.Context(), w, r, p, args[0], out)
			})
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the file, or with --all the folder, to write to (default: standard output)")
	cmd.Flags().BoolVar(&all, "all", false, "write the traces of all runs that have one")
	return cmd
}

// writeTrace writes the trace of one run.
func writeTrace(ctx context.Context, w world, r ledger.Reader, p *traces.Replayer, run, out string) error {
	run, err := ledger.FindRun(r, run)
	if err != nil {
		return err
	}
	doc, err := ledger.Trace(ctx, r, run, p)
	if err != nil {
		return noRun(run, err)
	}
	if out == "" {
		_, err := forScreen(w.stdout, w.stdout).Write(doc)
		return err
	}
	return safefile.Write(out, doc, 0o600)
}

// writeTraces writes the traces of all runs that have one, and says how many have none yet.
func writeTraces(ctx context.Context, w world, r ledger.Reader, p *traces.Replayer, folder string, asJSON bool) error {
	written, open, err := ledger.WriteTraces(ctx, r, p, folder)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(w.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			Folder        string `json:"folder"`
			Written       int    `json:"written"`
			Open          int    `json:"open"`
		}{schemaVersion, filepath.ToSlash(folder), written, open})
	}
	fmt.Fprintf(w.stdout, "%s in %s", count(written, "trace"), visible.Text(filepath.ToSlash(folder)))
	if open > 0 {
		fmt.Fprintf(w.stdout, "; %s under way and without one yet", counted(open, "run is", "runs are"))
	}
	fmt.Fprintln(w.stdout)
	return nil
}
