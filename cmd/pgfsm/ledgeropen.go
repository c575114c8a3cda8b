package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// ledgerFlags say where a ledger is.
type ledgerFlags struct {
	config string
	ledger string // in place of the configuration's
	json   bool
}

func (f *ledgerFlags) register(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVarP(&f.config, "config", "c", "",
		"configuration file that names the ledger (default: PGFSM_CONFIG, ./pgfsm.yaml)")
	cmd.PersistentFlags().StringVar(&f.ledger, "ledger", "", "the ledger itself, sqlite:PATH, instead of the configuration's")
	cmd.PersistentFlags().BoolVar(&f.json, "json", false, "print JSON")
}

// sqlitePrefix begins the name of a ledger in an SQLite file: the only kind there is.
const sqlitePrefix = "sqlite:"

// ledgerPath finds the ledger's file: the flag, else the configuration.
func ledgerPath(w world, config, flag string) (string, error) {
	if flag != "" {
		path, ok := strings.CutPrefix(flag, sqlitePrefix)
		if !ok || path == "" {
			return "", fmt.Errorf("--ledger %q is not the name of a ledger: write sqlite:PATH", flag)
		}
		return path, nil
	}
	loaded, from, err := load(w, &options{config: config})
	if err != nil {
		return "", err
	}
	if loaded.Ledger == "" {
		return "", fmt.Errorf("%s names no ledger: add `ledger: \"sqlite:pgfsm.db\"` to a configuration, or give --ledger sqlite:PATH", from)
	}
	return loaded.Ledger, nil
}

// An openedLedger is a ledger at work. One that was opened to read only has no [ledger.Ledger].
type openedLedger struct {
	*ledger.Ledger
	store *sqlite.Store
	path  string
}

// A use is what a ledger is opened for.
type use int

const (
	toRead   use = iota
	toWrite      // once in a while
	toRecord     // many calls, for long: [sqlite.Options.Tail]
)

// openLedger opens the ledger that the flag names, or else the configuration. Nothing is made or changed by one that is opened
// to read only. One that is to be written is made where there is none.
func openLedger(w world, config, flag string, u use) (*openedLedger, error) {
	path, err := ledgerPath(w, config, flag)
	if err != nil {
		return nil, err
	}
	o := &openedLedger{path: path}
	if u == toRead {
		if err := ledgerThere(path); err != nil {
			return nil, err
		}
		o.store, err = sqlite.OpenReadOnly(path)
		return o, err
	}
	if o.store, err = sqlite.Open(path, sqlite.Options{Tail: u == toRecord}); err != nil {
		return nil, err
	}
	if o.Ledger, err = ledger.Open(context.Background(), o.store, ledger.Options{}); err != nil {
		return nil, errors.Join(err, o.store.Close())
	}
	return o, nil
}

// ledgerThere says clearly that there is no such file.
func ledgerThere(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no ledger %s: the first run with it makes it", path)
	}
	return nil
}

// View reads one consistent state.
func (o *openedLedger) View(ctx context.Context, do func(ledger.Reader) error) error {
	return o.store.View(ctx, do)
}

// verifyOpen refuses a ledger whose tokens or open requests are not as they were written: calls would be made by them.
func (o *openedLedger) verifyOpen(ctx context.Context) error {
	err := o.View(ctx, func(r ledger.Reader) error { return ledger.VerifyOpen(ctx, r) })
	if errors.Is(err, ledger.ErrTampered) {
		return fmt.Errorf("ledger %s: %w; keep the file, see what pgfsm ledger verify says of it, and restore a backup", o.path, err)
	}
	return err
}

// Close lets go of the ledger and of its file.
func (o *openedLedger) Close() error {
	var err error
	if o.Ledger != nil {
		err = o.Ledger.Close()
	}
	return errors.Join(err, o.store.Close())
}
