package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/present"
	"pgfsm/internal/runner"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger"
)

// reloadTime bounds a request for a reload: policy tests and the comparison with recorded calls
// take a while.
const reloadTime = 2 * time.Minute

// maxReloadAnswer bounds the answer in bytes.
const maxReloadAnswer = 1 << 20

func newReload(w world) *cobra.Command {
	o := consoleOptions{ledgerFlags: ledgerFlags{w: w}}
	cmd := newCommand("reload", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		address, err := o.adminAddress(cmd)
		if err != nil {
			return err
		}
		return o.requestReload(cmd.Context(), w, address)
	})
	cmd.Flags().StringVarP(&o.config, "config", "c", "",
		"configuration file (default: PGFSM_CONFIG, ./pgfsm.yaml, the embedded demo)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON document")
	cmd.Flags().StringVar(&o.url, "url", "", "scheme, host and port of the admin address (default: the configuration's serve.admin_url, or its serve.admin)")
	return cmd
}

// requestReload asks the gateway at an address, and prints its answer.
func (o *consoleOptions) requestReload(ctx context.Context, w world, address string) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTime)
	defer cancel()
	body, answer, err := w.askGateway(ctx, http.MethodPost, address+"/reload", maxReloadAnswer)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return o.printRefusal(w, answer, body)
	}

	var reloaded present.Reload
	if err := json.Unmarshal(body, &reloaded); err != nil {
		return fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}

	return w.printDocument(o.json, reloaded, cli.ExitYes, templatePrinter("reload", &reloaded))
}

// printRefusal prints the reason that the gateway did not reload.
func (o *consoleOptions) printRefusal(w world, answer *http.Response, body []byte) error {
	var p struct {
		Code   ledger.RefusalCode `json:"code"`
		Detail string             `json:"detail"`
	}
	if err := json.Unmarshal(body, &p); err != nil || p.Code == "" ||
		answer.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("the gateway could not reload: it answered %s: %s", visible.Text(answer.Status),
			visible.Lines(p.Detail))
	}
	if o.json {
		return orRefused(w, true, &ledger.Refusal{Code: p.Code, Message: p.Detail})
	}
	fmt.Fprintf(w.stderr, "pgfsm: refused, nothing changed, %s: %s\n", visible.Text(string(p.Code)),
		visible.Lines(p.Detail))
	return cli.Exit(cli.ExitNo)
}

// hangupSignals returns a channel of all SIGHUPs from now on, so a SIGHUP while the gateway starts
// or stops does not end the process. With --stdio, SIGHUP ends the process, because the client's
// terminal may hang up. It also ends the embedded demo.
func (o *gatewayOptions) hangupSignals(a *app) <-chan os.Signal {
	hangup := make(chan os.Signal, 1)
	if !o.stdio && !a.IsDemo() {
		signal.Notify(hangup, syscall.SIGHUP)
	}
	return hangup
}

// reloadOn reloads at each of the signals and, with --watch, when a file changes. The returned
// function stops this, and closes the servers of the configuration that is active then.
func (o *gatewayOptions) reloadOn(ctx context.Context, s *runner.Service, files *setup.Reloader,
	hangup <-chan os.Signal) func() {
	if files == nil {
		return func() {}
	}

	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	reload := func(cause ledger.Cause) {
		_, _ = s.Reload(ctx, cause, nil) // Reload logs the result
	}
	group.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangup:
				reload(ledger.CauseSignal)
			}
		}
	})

	if o.watch {
		group.Go(func() { files.Watch(ctx, func() { reload(ledger.CauseWatch) }) })
	}

	return func() {
		cancel()
		group.Wait()
		files.Close()
	}
}
