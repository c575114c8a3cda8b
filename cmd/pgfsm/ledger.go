package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/stores"
)

// ledgerFlags name a ledger.
type ledgerFlags struct {
	w      world
	config string
	ledger string // overrides the configuration's ledger
	json   bool
}

func (f *ledgerFlags) addFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVarP(&f.config, "config", "c", "",
		"configuration file that names the ledger (default: PGFSM_CONFIG, ./pgfsm.yaml)")
	cmd.PersistentFlags().StringVar(&f.ledger, "ledger", "",
		"the ledger, sqlite:PATH or postgres://USER@HOST/DATABASE, instead of the configuration's")
	cmd.PersistentFlags().BoolVar(&f.json, "json", false, "print JSON")
}

func newLedger(w world) *cobra.Command {
	f := &ledgerFlags{w: w}
	cmd := cli.Group("ledger",
		newLedgerList(f), newLedgerTail(f), newLedgerShow(f), newLedgerStatus(f), newLedgerSummary(f),
		newLedgerTrace(f), newLedgerWhatIf(f),
		newLedgerVerify(f), newLedgerVerifyExport(f), newLedgerCheckpoint(f), newLedgerWitness(f), newLedgerProve(f), newLedgerKey(f),
		newLedgerRebuild(f),
		newLedgerExport(f), newLedgerImport(f), newLedgerClose(f), newLedgerPrune(f),
		newLedgerPruneOrder(f), newLedgerFind(f), newLedgerErase(f), newLedgerInit(f))
	f.addFlags(cmd)
	return cmd
}

// newCommand makes a command that opens the ledger for a purpose, and calls do.
func (f *ledgerFlags) newCommand(use string, args cobra.PositionalArgs, purpose stores.Purpose,
	do func(ctx context.Context, o *openedLedger, args []string) error,
) *cobra.Command {
	return newCommand(use, args, func(cmd *cobra.Command, args []string) error {
		return f.withLedger(purpose, func(o *openedLedger) error { return do(cmd.Context(), o, args) })
	})
}

// newManageCommand makes a command that opens the ledger for a purpose, and calls do with the
// [openedLedger.authorizeManager]. Then it revokes the tokens of connections that do has ended.
func (f *ledgerFlags) newManageCommand(use string, args cobra.PositionalArgs, purpose stores.Purpose,
	do func(ctx context.Context, o *openedLedger, caller ledger.Caller, args []string) error,
) *cobra.Command {
	return f.newCommand(use, args, purpose, func(ctx context.Context, o *openedLedger, args []string) error {
		var caller ledger.Caller
		err := o.View(ctx, func(r ledger.Reader) (err error) {
			caller, err = o.authorizeManager(ctx, r)
			return err
		})
		if err != nil {
			return err
		}
		var ended []ledger.Connection
		o.OnEnded(func(some []ledger.Connection) { ended = append(ended, some...) })
		err = do(ctx, o, caller, args)
		if len(ended) > 0 {
			o.revokeTokens(ctx, ended)
		}
		return err
	})
}

// newViewCommand makes a command that calls do with a consistent snapshot of the ledger.
func (f *ledgerFlags) newViewCommand(use string, args cobra.PositionalArgs,
	do func(ctx context.Context, o *openedLedger, r ledger.Reader, args []string) error,
) *cobra.Command {
	return f.newCommand(use, args, stores.ToRead, func(ctx context.Context, o *openedLedger, args []string) error {
		return o.View(ctx, func(r ledger.Reader) error { return do(ctx, o, r, args) })
	})
}

// printDocument prints a document as JSON or with the function text.
func (f *ledgerFlags) printDocument(doc any, text func(out io.Writer, k ink)) error {
	return f.w.printDocument(f.json, doc, cli.ExitYes, text)
}

// printList prints a document with n rows as JSON or by a template. Without rows, it prints the
// text none on standard error.
func (f *ledgerFlags) printList(doc any, template string, rows any, n int, none string) error {
	if n == 0 && !f.json {
		fmt.Fprintln(f.w.stderr, none)
	}
	return f.printDocument(doc, templatePrinter(template, rows))
}

// An openedLedger is an open ledger. Its [ledger.Ledger] is nil if it was opened only for reading.
type openedLedger struct {
	*ledger.Ledger
	w           world
	store       ledger.Store
	name        string
	checkpoints config.Checkpoints
	loaded      *config.Loaded // the configuration that names the ledger; nil if a flag names it
}

// namedLedger returns the URL of the ledger that the flag or else the configuration names. In the
// second case, it returns the configuration, too.
func (f *ledgerFlags) namedLedger() (url string, loaded *config.Loaded, err error) {
	if f.ledger != "" {
		if err := config.CheckLedger(f.ledger); err != nil {
			return "", nil, fmt.Errorf("the URL after --ledger %w: write sqlite:PATH or postgres://USER@HOST/DATABASE", err)
		}
		return f.ledger, nil, nil
	}
	loaded, _, err = loadConfig(f.w, &options{config: f.config})
	if err != nil {
		return "", nil, err
	}
	url, err = loaded.LedgerURL(f.w.getenv, safefile.ReadTrusted)
	return url, loaded, err
}

// openConfigured opens the ledger that a configuration names.
func openConfigured(w world, loaded *config.Loaded, purpose stores.Purpose) (*openedLedger, error) {
	url, err := loaded.LedgerURL(w.getenv, safefile.ReadTrusted)
	if err != nil {
		return nil, err
	}
	return openStored(w, url, purpose, loaded)
}

// openStored opens the ledger with this URL.
func openStored(w world, url string, purpose stores.Purpose, loaded *config.Loaded) (*openedLedger, error) {
	o, err := openStore(w, url, purpose, loaded)
	if err != nil || purpose == stores.ToRead {
		return o, err
	}
	options := ledger.Options{Build: cli.Version(), Origin: o.checkpoints.Origin}
	if loaded != nil {
		options.Settings = setup.LedgerSettings(loaded)
	}
	if o.Ledger, err = ledger.Open(context.Background(), o.store, options); err != nil {
		return nil, errors.Join(err, o.store.Close())
	}
	if err := errors.Join(o.checkName(), o.checkWhole()); err != nil {
		return nil, errors.Join(err, o.Close(), o.store.Close())
	}
	return o, nil
}

// openStore opens the store of the ledger with this URL. Messages contain the ledger's name only,
// because a URL may contain a password.
func openStore(w world, url string, purpose stores.Purpose, loaded *config.Loaded) (o *openedLedger, err error) {
	o = &openedLedger{w: w, name: config.LedgerName(url), loaded: loaded}
	open := stores.Open
	if loaded != nil {
		o.checkpoints = loaded.Checkpoints
		if loaded.DefaultLedger {
			open = openDefault
		}
	}
	if o.store, err = open(url, purpose); err != nil {
		return nil, err
	}
	return o, nil
}

// openDefault opens the ledger in the folder of traces. To write, it makes the folder if necessary.
func openDefault(url string, purpose stores.Purpose) (store ledger.Store, err error) {
	folder := filepath.Dir(strings.TrimPrefix(url, "sqlite:"))
	if purpose == stores.ToWrite {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		store, err = stores.Open(url, purpose)
	}
	if err == nil || errors.Is(err, stores.ErrMissing) {
		return store, err
	}
	return nil, fmt.Errorf("runs cannot be recorded in the folder %s: %w; set traces.dir or SAFE_TRACE_DIR to a folder on a local disk "+
		"that this user may write", folder, err)
}

// checkName returns an error if the log was created under a different name than the
// configuration's.
func (o *openedLedger) checkName() error {
	if o.checkpoints.Origin == "" {
		return nil
	}
	return o.View(context.Background(), func(r ledger.Reader) error {
		origin, err := ledger.Origin(r)
		switch {
		case errors.Is(err, ledger.ErrNotFound): // an empty log gets the name with its first entry
			return nil
		case err != nil:
			return err
		case origin != o.checkpoints.Origin:
			return fmt.Errorf("the log was made with the name %s, and checkpoints.origin is %s: write the log's name, or leave the key out",
				visible.Text(origin), o.checkpoints.Origin)
		}
		return nil
	})
}

// findRun returns the id of the run that a person names, by the rules of [ledger.FindRun].
func (o *openedLedger) findRun(ctx context.Context, text string) (id string, err error) {
	err = o.View(ctx, func(r ledger.Reader) (err error) {
		id, err = ledger.FindRun(r, text)
		return err
	})
	return id, err
}

// timestamp returns the time of the clock that all processes of the ledger share.
func (o *openedLedger) timestamp() string { return o.store.Now().UTC().Format(policy.TimeForm) }

// checkWhole returns an error if the log does not contain the last checkpoint in the configured
// folder: then it lost entries, and no process may add to it.
func (o *openedLedger) checkWhole() error {
	if o.checkpoints.Dir == "" {
		return nil
	}
	last, err := checkpoint.Last(o.checkpoints.Dir)
	if err != nil || last.Size == 0 {
		return err
	}
	err = o.View(context.Background(), func(r ledger.Reader) error {
		current, err := ledger.TakeCheckpoint(r)
		if errors.Is(err, ledger.ErrNotFound) { // the log is empty
			current, err = checkpoint.Checkpoint{Origin: last.Origin}, nil
		}
		if err != nil {
			return err
		}
		return last.Contained(current, r)
	})
	if errors.Is(err, checkpoint.ErrInconsistent) {
		err = fmt.Errorf("%w; restore a copy that has the entries, or begin a new ledger: docs/operate/backup.md#after-a-loss", err)
	}
	return err
}

// View calls do with a consistent snapshot.
func (o *openedLedger) View(ctx context.Context, do func(ledger.Reader) error) error {
	return o.store.View(ctx, do)
}

// verifyOpen refuses a ledger with altered tokens or open requests, because they authorize calls.
func (o *openedLedger) verifyOpen(ctx context.Context) error {
	err := o.View(ctx, func(r ledger.Reader) error { return ledger.VerifyOpen(ctx, r) })
	if errors.Is(err, ledger.ErrTampered) {
		return fmt.Errorf("ledger %s: %w; keep the file, see what pgfsm ledger verify says of it, and restore a backup", o.name, err)
	}
	return err
}

// withLedger opens the ledger for a purpose, calls do, and closes the ledger.
func (f *ledgerFlags) withLedger(purpose stores.Purpose, do func(*openedLedger) error) error {
	url, loaded, err := f.namedLedger()
	if err != nil {
		return err
	}
	o, err := openStored(f.w, url, purpose, loaded)
	if err != nil {
		return err
	}
	return o.closeAfter(orRefused(f.w, f.json, do(o)))
}

// closeAfter closes the ledger, which may be nil, and returns err. It only warns if the ledger
// cannot be closed, because the command's result is complete.
func (o *openedLedger) closeAfter(err error) error {
	if o == nil {
		return err
	}
	var closeErr error
	if o.Ledger != nil {
		closeErr = o.Ledger.Close()
	}
	if closeErr = errors.Join(closeErr, o.store.Close()); closeErr != nil {
		fmt.Fprintf(o.w.stderr, "pgfsm: warning: %s\n", visible.Lines(closeErr.Error()))
	}
	return err
}

// noRun replaces [ledger.ErrNotFound] by an error that names the run.
func noRun(run string, err error) error {
	if errors.Is(err, ledger.ErrNotFound) {
		return fmt.Errorf("the ledger has no run %q: it was never there, or was pruned or erased; pgfsm ledger list shows the last ones", run)
	}
	return err
}
