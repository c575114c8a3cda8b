package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/safefile"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgurl"
	"pgfsm/traces/ledger/stores"
)

func newLedgerInit(f *ledgerFlags) *cobra.Command {
	return newCommand("init", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		url, _, err := f.namedLedger()
		if err != nil {
			return err
		}
		if !pgurl.IsURL(url) {
			return errors.New("a ledger in a file needs no init: give --ledger postgres://USER@HOST/DATABASE")
		}
		roles, err := postgres.Migrate(cmd.Context(), url)
		if err != nil {
			return err
		}
		fmt.Fprintln(f.w.stderr, "pgfsm: the tables are ready; run these statements with psql to make the roles:")
		_, err = io.WriteString(f.w.stdout, roles)
		return err
	})
}

func newLedgerRebuild(f *ledgerFlags) *cobra.Command {
	var check bool
	cmd := newCommand("rebuild", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		purpose := stores.ToChange
		if check {
			purpose = stores.ToRead
		}
		return f.withLedger(purpose, func(o *openedLedger) error { return f.rebuildRows(cmd.Context(), o, check) })
	})
	cmd.Flags().BoolVar(&check, "check", false, "only name the rows that differ")
	return cmd
}

func (f *ledgerFlags) rebuildRows(ctx context.Context, o *openedLedger, check bool) (err error) {
	var different []ledger.Fault
	if check {
		err = o.View(ctx, func(r ledger.Reader) (err error) {
			different, err = ledger.Rebuild(ctx, r, nil)
			return err
		})
	} else {
		err = o.Update(ctx, func(tx ledger.Tx) (err error) {
			different, err = ledger.Rebuild(ctx, tx, tx)
			return err
		})
	}

	if err != nil {
		return err
	}

	code, summary := cli.ExitYes, cli.Count(len(different), "row replaced", "rows replaced")
	if check {
		summary = cli.Count(len(different), "row differs", "rows differ")
	}
	if check && len(different) > 0 {
		code = cli.ExitNo
	}

	doc := cli.Document("rebuilt", !check, "different", different)
	return f.w.printDocument(f.json, doc, code, func(out io.Writer, k ink) {
		for i := range different {
			templatePrinter("fault", &different[i])(out, k)
		}
		fmt.Fprintln(out, summary)
	})
}

func newLedgerExport(f *ledgerFlags) *cobra.Command {
	var follow bool
	var since string
	cmd := f.newCommand("export", cobra.NoArgs, stores.ToRead,
		func(ctx context.Context, o *openedLedger, _ []string) error {
			return o.exportEntries(ctx, since, follow)
		})
	checkFirst(cmd, func() (err error) {
		if since == "" {
			return nil
		}
		if since, err = ledger.ParseTime(since); err != nil {
			return fmt.Errorf("--since %w", err)
		}
		return nil
	})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "also write new entries as they are recorded")
	cmd.Flags().StringVar(&since, "since", "", "a date, or a time in UTC (default: the beginning)")
	return cmd
}

// exportEntries writes the entries from a time on, and then new ones if follow is set.
func (o *openedLedger) exportEntries(ctx context.Context, since string, follow bool) error {
	out := bufio.NewWriter(o.w.stdout)
	x := ledger.Exporter{To: forScreen(o.w.stdout, out)}
	if since != "" {
		err := o.View(ctx, func(r ledger.Reader) (err error) {
			x.Next, err = ledger.FirstEntryAt(r, since)
			return err
		})
		if err != nil {
			return err
		}
	}
	err := ledger.Poll(ctx, ledger.PollInterval, func() (bool, error) {
		err := o.View(ctx, x.Export)
		return !follow, errors.Join(err, out.Flush())
	})
	if follow && ctx.Err() != nil {
		return nil // the user ended it
	}
	return err
}

func newLedgerPrune(f *ledgerFlags) *cobra.Command {
	var before string
	cmd := f.newManageCommand("prune --before TIME", cobra.NoArgs, stores.ToChange,
		func(ctx context.Context, o *openedLedger, caller ledger.Caller, _ []string) error {
			pruned, err := o.Prune(ctx, before, caller)
			if err != nil {
				return err
			}

			doc := struct {
				SchemaVersion int    `json:"schema_version"`
				Before        string `json:"before"`
				ledger.Pruned
			}{cli.SchemaVersion, before, pruned}
			return f.printDocument(doc, func(out io.Writer, _ ink) {
				fmt.Fprintf(out, "%s of %s from before %s removed\n", cli.Count(pruned.Entries, "entry", "entries"),
					cli.Count(pruned.Runs, "run"), before)
				if pruned.Kept > 0 {
					fmt.Fprintf(out, "Not removed, because they had not ended by then: %s\n",
						cli.Count(pruned.Kept, "run"))
				}
			})
		})

	checkFirst(cmd, func() (err error) {
		if before, err = ledger.ParseTime(before); err != nil {
			return fmt.Errorf("--before %w", err)
		}
		return nil
	})

	cmd.Flags().StringVar(&before, "before", "", "a date, or a time in UTC")
	cli.MustFlags(cmd, "before")

	return cmd
}

func newLedgerCopy(f *ledgerFlags) *cobra.Command {
	return newCommand("copy FROM TO", cobra.ExactArgs(2), func(cmd *cobra.Command, args []string) error {
		const text = "The log goes on in %s, with %s entries. Name this ledger in the configuration of every gateway.\n"
		return f.moveLog(cmd.Context(), args[0], args[1], text, ledger.Copy)
	})
}

// moveLog opens two ledgers and calls do, which closes the first and begins or continues the
// second. Then it prints the state of the second.
func (f *ledgerFlags) moveLog(ctx context.Context, from, to, text string,
	do func(ctx context.Context, from, to ledger.Store, m ledger.Move) error,
) (err error) {
	ledgers := [2]openedLedger{{w: f.w}, {w: f.w}}
	defer func() {
		for i := range ledgers {
			if ledgers[i].store != nil {
				err = ledgers[i].closeAfter(err)
			}
		}
	}()

	for i, purpose := range []stores.Purpose{stores.ToChange, stores.ToWrite} {
		url := []string{from, to}[i]
		if err := config.CheckLedger(url); err != nil {
			// The URL may contain a password.
			return fmt.Errorf("%s %w", []string{"the old ledger's URL", "the new ledger's URL"}[i], err)
		}
		if ledgers[i].store, err = stores.Open(url, purpose); err != nil {
			return err
		}
	}

	caller, err := ledgers[0].authorizeManager(ctx)
	if err != nil {
		return orRefused(f.w, f.json, err)
	}
	if err := do(ctx, ledgers[0].store, ledgers[1].store, ledger.Move{Target: stores.Name(to), By: caller}); err != nil {
		return orRefused(f.w, f.json, err)
	}

	return ledgers[1].View(ctx, func(r ledger.Reader) error {
		current, err := ledger.TakeCheckpoint(r)
		if err != nil {
			return err
		}
		return f.printDocument(cli.Document("origin", current.Origin, "size", current.Size, "target", stores.Name(to)),
			linePrinter(text, stores.Name(to), current.Size))
	})
}

func newLedgerContinue(f *ledgerFlags) *cobra.Command {
	var origin string
	var files []string
	cmd := newCommand("continue-after-loss TO", cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
		url, loaded, err := f.namedLedger()
		if err != nil {
			return err
		}
		if len(files) == 0 && loaded != nil && loaded.Checkpoints.Dir != "" {
			if files, err = checkpoint.Files(loaded.Checkpoints.Dir); err != nil {
				return err
			}
		}
		if len(files) == 0 {
			return errors.New("there is no checkpoint to compare the ledger with: name its files with --checkpoint")
		}

		signed := make([][]byte, len(files))
		for i, file := range files {
			if signed[i], _, err = safefile.Read(file); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}

		if origin == "" {
			origin = "pgfsm-log-" + rand.Text()
		}

		const text = "A new log begins in %s, with %s entry. Name this ledger in the configuration, and another checkpoints.dir.\n"
		return f.moveLog(cmd.Context(), url, args[0], text,
			func(ctx context.Context, url, to ledger.Store, m ledger.Move) error {
				return ledger.ContinueAfterLoss(ctx, url, to, signed, origin, m)
			})
	})

	cmd.Flags().StringArrayVar(&files, "checkpoint", nil,
		"a file with a signed checkpoint of the ledger; may be given again (default: all in checkpoints.dir)")
	cmd.Flags().StringVar(&origin, "origin", "", "the name of the new log (default: a random name)")

	return cmd
}
