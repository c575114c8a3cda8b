package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pgfsm/config"
	"pgfsm/loopback"
	"pgfsm/policy/visible"
	"pgfsm/runner"
	"pgfsm/safefile"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/hooks"
	"pgfsm/traces/ledger/stores"
)

// serveOptions are the flags of approvals serve.
type serveOptions struct {
	*ledgerFlags
	admin    string
	hosts    []string
	noResume bool
}

// defaultAdmin is where the service listens where nobody says.
const defaultAdmin = "127.0.0.1:9464"

func newApprovalsServe(w world, f *ledgerFlags) *cobra.Command {
	o := serveOptions{ledgerFlags: f}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Take decisions over HTTP, and make approved calls",
		Long: `serve lets people and chat tools decide over HTTP: GET /pending, GET /requests, GET /status/ID, POST /approve/ID,
POST /deny/ID; GET /openapi.yaml describes them. Every caller presents a token (pgfsm token create), also on this machine.
serve sends the configuration's web hooks, makes approved calls, and ends runs that were denied, that expired, or whose
process is gone. With --no-resume it only takes decisions and calls no tool.

It listens on this machine only. For other machines, put a reverse proxy with TLS before it, and name the proxy's host
with --host.

After the first interrupt, calls under way have half a minute to finish; then serve cuts them off and records that.
Exit codes: 0 stopped by an interrupt, 2 could not.`,
		Example: `  pgfsm approvals serve -c pgfsm.yaml
  pgfsm approvals serve --admin 127.0.0.1:8080 --host approvals.example.com --no-resume`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.serve(cmd.Context(), w) },
	}
	cmd.Flags().StringVar(&o.admin, "admin", defaultAdmin, "the address to listen on: of this machine, and a port")
	cmd.Flags().StringArrayVar(&o.hosts, "host", nil, "a host name that a proxy sends in the Host header; may be given again")
	cmd.Flags().BoolVar(&o.noResume, "no-resume", false, "only take decisions; other processes make the calls")
	return cmd
}

// serve opens everything, serves until ctx is done, and closes it in the reverse order.
func (o *serveOptions) serve(ctx context.Context, w world) (err error) {
	w.stderr = &sharedWriter{to: w.stderr}
	told, err := o.hooks(w)
	if err != nil {
		return err
	}
	on, err := loopback.Listen(o.admin)
	if err != nil {
		return fmt.Errorf("--admin: %w", err)
	}
	defer on.Close()
	l, err := openLedger(w, o.config, o.ledger, stores.ToWrite)
	if err != nil {
		return err
	}
	defer func() { err = closing(w, l, err) }()
	if err := l.verifyOpen(ctx); err != nil {
		return err
	}
	parts := runner.Options{Ledger: l.Ledger, Report: w.warn}
	if !o.noResume {
		a, err := open(w, &options{config: o.config})
		if err != nil {
			return err
		}
		defer func() {
			if closing := a.close(); closing != nil {
				w.warn("warning: " + closing.Error())
			}
		}()
		if err := a.start(ctx); err != nil {
			return err
		}
		parts = a.runnerOptions(l)
	}
	r, err := runner.New(parts)
	if err != nil {
		return err
	}
	all, err := runner.NewService(ctx, r, runner.ServiceOptions{Admin: on, Hosts: o.hosts, Hooks: told, Store: l.store})
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "http://%s\n", on.Addr())
	return all.Run(ctx)
}

// hooks are the configuration's web hooks, with their secrets. A ledger that is named by a flag needs no configuration to be
// decided in; then nobody is told.
func (o *serveOptions) hooks(w world) (told []hooks.Hook, err error) {
	for _, host := range o.hosts {
		if !api.HostName(host) {
			return nil, fmt.Errorf("--host %q is no host name, alone or with a port", visible.Text(host))
		}
	}
	loaded, _, err := load(w, &options{config: o.config})
	if err != nil {
		return nil, err
	}
	return hooksOf(w, loaded)
}

// hooksOf are a configuration's web hooks, with their secrets.
func hooksOf(w world, loaded *config.Loaded) (told []hooks.Hook, err error) {
	resolved, err := loaded.ResolveHooks(w.getenv, safefile.ReadTrusted)
	if err != nil {
		return nil, err
	}
	for _, h := range resolved {
		told = append(told, hooks.Hook{URL: h.URL, Secret: h.Secret, Events: hookEvents(h)})
	}
	return told, nil
}

// hookEvents says in the words of the sender what the configuration says in its own.
func hookEvents(h config.Hook) (kinds []string) {
	for _, e := range h.Events {
		switch e {
		case config.HookRequested:
			kinds = append(kinds, hooks.Requested)
		case config.HookDecided:
			kinds = append(kinds, hooks.Decided)
		}
	}
	return kinds
}
