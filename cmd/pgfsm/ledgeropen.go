package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/config"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
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
	cmd.PersistentFlags().StringVar(&f.ledger, "ledger", "", "the ledger, sqlite:PATH, instead of the configuration's")
	cmd.PersistentFlags().BoolVar(&f.json, "json", false, "print JSON")
}

// ledgerURL returns the URL of the ledger: the flag, else the configuration.
func ledgerURL(w world, file, flag string) (string, error) {
	if flag != "" {
		if err := config.CheckLedger(flag); err != nil {
			return "", fmt.Errorf("--ledger %q %w: write sqlite:PATH", flag, err)
		}
		return flag, nil
	}
	loaded, from, err := load(w, &options{config: file})
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
	store ledger.Store
	url   string
}

// openLedger opens the ledger that the flag names, or else the configuration. Nothing is made or changed by one that is opened
// to read only. One that is to be written is made where there is none.
func openLedger(w world, file, flag string, purpose stores.Purpose) (*openedLedger, error) {
	url, err := ledgerURL(w, file, flag)
	if err != nil {
		return nil, err
	}
	o := &openedLedger{url: url}
	if o.store, err = stores.Open(url, purpose); err != nil {
		return nil, err
	}
	if purpose == stores.ToRead {
		return o, nil
	}
	if o.Ledger, err = ledger.Open(context.Background(), o.store, ledger.Options{}); err != nil {
		return nil, errors.Join(err, o.store.Close())
	}
	return o, nil
}

// View reads one consistent state.
func (o *openedLedger) View(ctx context.Context, do func(ledger.Reader) error) error {
	return o.store.View(ctx, do)
}

// verifyOpen refuses a ledger whose tokens or open requests are not as they were written: calls would be made by them.
func (o *openedLedger) verifyOpen(ctx context.Context) error {
	err := o.View(ctx, func(r ledger.Reader) error { return ledger.VerifyOpen(ctx, r) })
	if errors.Is(err, ledger.ErrTampered) {
		return fmt.Errorf("ledger %s: %w; keep the file, see what pgfsm ledger verify says of it, and restore a backup", o.url, err)
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
