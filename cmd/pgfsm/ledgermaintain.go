package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
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

func newLedgerClose(f *ledgerFlags) *cobra.Command {
	var to string
	cmd := f.newManageCommand("close --to LEDGER", cobra.NoArgs, stores.ToChange,
		func(ctx context.Context, o *openedLedger, caller ledger.Caller, _ []string) error {
			target := stores.Name(to)
			if err := o.CloseLog(ctx, target, caller); err != nil {
				return err
			}
			const text = "The ledger is closed; its log goes on in %s. Export it, and import the export there.\n"
			return f.printDocument(cli.Document("target", target), linePrinter(text, target))
		})

	checkFirst(cmd, func() error {
		if err := config.CheckLedger(to); err != nil { // the URL may contain a password
			return fmt.Errorf("the URL after --to %w: write sqlite:PATH or postgres://USER@HOST/DATABASE", err)
		}
		return nil
	})

	cmd.Flags().StringVar(&to, "to", "", "the new ledger, sqlite:PATH or postgres://USER@HOST/DATABASE")
	cli.MustFlags(cmd, "to")

	return cmd
}

func newLedgerImport(f *ledgerFlags) *cobra.Command {
	return newCommand("import [FILE]", cobra.MaximumNArgs(1), func(cmd *cobra.Command, args []string) error {
		export, err := openInput(f.w, append(args, "-")[0])
		if err != nil {
			return err
		}
		defer export.Close()

		url, loaded, err := f.namedLedger()
		if err != nil {
			return err
		}
		// The folder of checkpoints may have some of this log, which the store does not contain yet.
		o, err := openStore(f.w, url, stores.ToWrite, loaded)
		if err != nil {
			return err
		}
		return o.closeAfter(orRefused(f.w, f.json, f.importLog(cmd.Context(), o, export)))
	})
}

// importLog imports an export, which must contain the last checkpoint in the configured folder.
func (f *ledgerFlags) importLog(ctx context.Context, o *openedLedger, export io.Reader) error {
	options := ledger.ImportOptions{
		Authorize: func(r ledger.Reader) (ledger.Caller, error) { return o.authorizeManager(ctx, r) },
	}
	last, err := checkpoint.Last(o.checkpoints.Dir)
	if err != nil {
		return err
	}
	if last.Size > 0 {
		options.Checkpoint = &last
	}

	if err := ledger.Import(ctx, o.store, export, options); err != nil {
		return err
	}

	return o.View(ctx, func(r ledger.Reader) error {
		current, err := ledger.TakeCheckpoint(r)
		if err != nil {
			return err
		}
		return f.printDocument(cli.Document("origin", current.Origin, "size", current.Size),
			linePrinter("The log goes on here, with %s. Name this ledger in the configuration of every gateway.\n",
				cli.Count(current.Size, "entry", "entries")))
	})
}
