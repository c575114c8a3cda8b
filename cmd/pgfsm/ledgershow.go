package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"pgfsm/internal/canonical"
	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/runner"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/stores"
)

func newLedgerShow(f *ledgerFlags) *cobra.Command {
	return f.newViewCommand("show RUN", cobra.ExactArgs(1),
		func(ctx context.Context, o *openedLedger, r ledger.Reader, args []string) error {
			p, err := newReplayer()
			if err != nil {
				return err
			}
			run, err := ledger.FindRun(r, args[0])
			if err != nil {
				return err
			}

			q, err := r.Run(run)
			if err != nil {
				return noRun(run, err)
			}

			d, err := present.NewDetails(r, &q)
			if err != nil {
				return err
			}

			result, note, err := runner.CallResult(ctx, r, p, &q)
			if err != nil {
				note = "the result cannot be shown: " + err.Error()
			}

			if d.ResultNote = note; result != nil {
				d.Result = result
			}

			var events []present.Event
			for e, err := range ledger.EventsOf(r, run) {
				if err != nil {
					return err
				}
				events = append(events, present.NewEvent(&e))
			}

			doc := struct {
				present.Details
				Events []present.Event `json:"events"`
			}{d, events}
			asked, facts := splitRows(d.Rows(events, o.timestamp()))
			return f.printDocument(doc, templatePrinter("run", struct {
				*present.Details
				Asked, Facts []present.Row
				Track        present.Track
				Events       []present.Event
				Rest         string
			}{&d, asked, facts, present.NewTrack(&d.Request), events, "pgfsm ledger trace " + run + " writes all of it"}))
		})
}

// askedRows names the rows of a run with what was asked, by whom, and what became of it.
var askedRows = []string{"Run", "Status", "Requested", "Actor", "On behalf of", "Question", "Request", "Task", "Tool", "Code", "Reason"}

// splitRows separates the rows that askedRows names from the others.
func splitRows(rows []present.Row) (asked, others []present.Row) {
	for _, row := range rows {
		if slices.Contains(askedRows, row.Name) {
			asked = append(asked, row)
		} else {
			others = append(others, row)
		}
	}
	return asked, others
}

func newLedgerStatus(f *ledgerFlags) *cobra.Command {
	return f.newCommand("status", cobra.NoArgs, stores.ToRead,
		func(ctx context.Context, o *openedLedger, _ []string) error {
			last, err := checkpoint.Last(o.checkpoints.Dir)
			if err != nil {
				return err
			}
			d, err := ledger.ReadReplicas(ctx, o.store, o.store.Now())
			if err != nil {
				return err
			}
			d.Checkpoint = last.Size
			return f.printDocument(d, func(out io.Writer, k ink) {
				templatePrinter("replicas", struct {
					ledger.Replicas
					Lines []present.Row
				}{d, present.ReplicaRows(&d)})(out, k)
				if len(d.Replicas) == 0 {
					fmt.Fprintln(f.w.stderr, "No gateway runs on this ledger.")
				}
				if d.BundlesDiffer {
					fmt.Fprintln(f.w.stderr, "The replicas have different bundles: give each the same configuration, and restart those that have another.")
				}
			})
		})
}

func newLedgerSummary(f *ledgerFlags) *cobra.Command {
	var since string
	cmd := f.newViewCommand("summary", cobra.NoArgs,
		func(_ context.Context, o *openedLedger, r ledger.Reader, _ []string) error {
			start, err := ledger.ParsePast(since, o.store.Now())
			if err != nil {
				return fmt.Errorf("--since %w", err)
			}
			a, err := ledger.ReadActivity(r, start, o.timestamp())
			if err != nil {
				return err
			}
			d := present.NewSummary(&a)
			return f.printDocument(d, templatePrinter("summary", &d))
		})
	cmd.Flags().StringVar(&since, "since", present.DefaultPeriod, "runs that were requested since this `TIME`")
	return cmd
}

func newLedgerTrace(f *ledgerFlags) *cobra.Command {
	var out string
	var all bool
	cmd := newCommand("trace RUN | --all -o DIR", cobra.MaximumNArgs(1), func(cmd *cobra.Command, args []string) error {
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
		return f.withLedger(stores.ToRead, func(o *openedLedger) error {
			return o.View(cmd.Context(), func(r ledger.Reader) error {
				if all {
					return f.writeTraces(cmd.Context(), r, p, out)
				}
				return f.writeTrace(cmd.Context(), r, p, args[0], out)
			})
		})
	})

	cmd.Flags().StringVarP(&out, "output", "o", "",
		"the file, or with --all the folder, to write to (default: standard output)")
	cmd.Flags().BoolVar(&all, "all", false, "write the traces of all runs that have one")

	return cmd
}

// writeTrace writes the trace of one run.
func (f *ledgerFlags) writeTrace(ctx context.Context, r ledger.Reader, p *traces.Replayer, run, out string) error {
	run, err := ledger.FindRun(r, run)
	if err != nil {
		return err
	}
	doc, err := ledger.Trace(ctx, r, run, p)
	if err != nil {
		return noRun(run, err)
	}
	if out == "" {
		_, err := forScreen(f.w.stdout, f.w.stdout).Write(doc)
		return err
	}
	return safefile.Write(out, doc, 0o600)
}

// writeTraces writes the traces of all runs that have one, and prints the number of runs without.
func (f *ledgerFlags) writeTraces(ctx context.Context, r ledger.Reader, p *traces.Replayer, folder string) error {
	written, open, err := ledger.WriteTraces(ctx, r, p, folder)
	if err != nil {
		return err
	}
	erased, err := ledger.CountErased(r)
	if err != nil {
		return err
	}
	folder = filepath.ToSlash(folder)
	return f.printDocument(cli.Document("folder", folder, "written", written, "open", open, "erased", erased), func(out io.Writer, _ ink) {
		fmt.Fprintf(out, "%s in %s", cli.Count(written, "trace"), visible.Text(folder))
		if open > 0 {
			fmt.Fprintf(out, "; %s under way and without one yet", cli.Count(open, "run is", "runs are"))
		}
		if erased > 0 {
			fmt.Fprintf(out, "; %s erased", cli.Count(erased, "run was", "runs were"))
		}
		fmt.Fprintln(out)
	})
}

func newLedgerWhatIf(f *ledgerFlags) *cobra.Command {
	var bundle string
	cmd := f.newViewCommand("what-if RUN", cobra.ExactArgs(1),
		func(_ context.Context, _ *openedLedger, r ledger.Reader, args []string) error {
			p, err := newReplayer()
			if err != nil {
				return err
			}
			run, err := ledger.FindRun(r, args[0])
			if err != nil {
				return err
			}
			answer, err := ledger.TryBundle(r, p, run, canonical.Digest(bundle))
			switch {
			case errors.Is(err, ledger.ErrBundle) && bundle == "":
				return errors.New("no configuration is active: pgfsm serve records its configuration when it starts; name one with --bundle")
			case err != nil:
				return noRun(run, err)
			}
			d := present.NewWhatIf(run, &answer)
			return f.printDocument(d, templatePrinter("what-if", &d))
		})

	checkFirst(cmd, func() error {
		if err := notEmpty(cmd, "bundle"); err != nil || bundle == "" {
			return err
		}
		if _, err := canonical.ParseDigest(bundle); err != nil {
			return fmt.Errorf("--bundle: %w", err)
		}
		return nil
	})

	cmd.Flags().StringVar(&bundle, "bundle", "",
		"the digest of the configuration that judges (default: the active one)")
	return cmd
}
