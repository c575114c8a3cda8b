package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"pgfsm/internal/runner"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/stores"
)

// serveOptions are the flags of approvals serve.
type serveOptions struct {
	*ledgerFlags
	admin    string
	hosts    []string
	noResume bool
	logs     logOptions
}

// defaultAdmin is the default of --admin.
const defaultAdmin = "127.0.0.1:9464"

func newApprovalsServe(f *ledgerFlags) *cobra.Command {
	o := serveOptions{ledgerFlags: f}
	cmd := &cobra.Command{
		Use:  "serve",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.serve(cmd.Context()) },
	}
	cmd.Flags().StringVar(&o.admin, "admin", defaultAdmin, "the address to listen on: a loopback address and a port, or with serve.tls any IP address and a port")
	cmd.Flags().StringArrayVar(&o.hosts, "host", nil, "a host name that a proxy sends in the Host header; may be given again")
	o.logs.register(cmd)
	cmd.Flags().BoolVar(&o.noResume, "no-resume", false, "only take decisions; other processes make the calls")
	return cmd
}

// serve opens everything, and serves until ctx is done.
func (o *serveOptions) serve(ctx context.Context) error {
	o.w.stderr = &sharedWriter{to: o.w.stderr}
	w := o.w
	for _, host := range o.hosts {
		if !api.HostName(host) {
			return fmt.Errorf("--host %q is no host name, alone or with a port", visible.Text(host))
		}
	}
	log, err := o.logs.open(&w, slog.LevelInfo)
	if err != nil {
		return err
	}
	from := options{config: o.config}
	loaded, _, err := load(w, &from)
	if err != nil {
		return err
	}
	told, err := setup.Hooks(from.setup(w), loaded)
	if err != nil {
		return err
	}
	providers, err := setup.ServedIdentity(from.setup(w), loaded, log)
	if err != nil {
		return err
	}
	configured := &loaded.Serve
	secured, err := openTLS(configured.TLS, func(err error) { w.warn(visible.Error(err)) })
	if err != nil {
		return err
	}
	on, err := listen(secured, o.admin, configured.AdminURL)
	if err != nil {
		return fmt.Errorf("--admin: %w", err)
	}
	defer on.Close()
	return o.use(stores.ToWrite, func(l *openedLedger) error {
		if err := l.verifyOpen(ctx); err != nil {
			return err
		}
		parts := runner.Options{Ledger: l.Ledger, Report: w.warn, Log: log, Config: runner.Config{Serve: loaded.Serve}}
		if !o.noResume {
			a, err := open(w, &from)
			if err != nil {
				return err
			}
			defer a.close()
			if err := a.Start(ctx); err != nil {
				return err
			}
			parts = a.runnerOptions(l)
			parts.Log, parts.Allowlists = log, a.Allowlists()
			if parts.Tracer, err = a.tracer(w.warn); err != nil {
				return err
			}
			defer shutDown(ctx, parts.Tracer)
		}
		parts.Identity, parts.Serve.Hosts = providers, o.hosts
		r, err := runner.New(parts)
		if err != nil {
			return err
		}
		all, err := runner.NewService(ctx, r, runner.ServiceOptions{
			Admin: on, AdminURL: configured.AdminURL, Hooks: told, Store: l.store, Config: o.config,
		})
		if err != nil {
			return err
		}
		origin, note := reached(configured.AdminURL, on)
		fmt.Fprintln(w.stdout, origin+note)
		defer notify(ctx, log)()
		return all.Run(ctx)
	})
}
