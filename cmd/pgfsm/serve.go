package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/runner"
	"pgfsm/internal/runner/setup"
	"pgfsm/internal/visible"
	"pgfsm/internal/web"
	"pgfsm/internal/web/loopback"
	"pgfsm/mcp/upstream"
	"pgfsm/policy/lint"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/stores"
)

// gatewayOptions are the flags of serve.
type gatewayOptions struct {
	options
	listen  string
	admin   string
	stdio   bool
	verbose bool
	watch   bool
	logs    logOptions
}

func newServe(w world) *cobra.Command {
	var o gatewayOptions
	cmd := newCommand("serve", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		return o.serveGateway(cmd.Context(), w, cmd.Flags().Changed("admin"))
	})
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.listen, "listen", "", "the address for clients: a loopback address and a port, or with serve.tls any IP address and a port (default: serve.listen)")
	cmd.Flags().StringVar(&o.admin, "admin", "",
		"the address for decisions and health checks (default: serve.admin; with --stdio none)")
	cmd.Flags().BoolVar(&o.stdio, "stdio", false, "serve one client over standard input and output")
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "log every call")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "reload the configuration when one of its files changes")
	o.logs.addFlag(cmd)
	return cmd
}

// serveGateway opens everything, serves until ctx is done, and closes everything.
func (o *gatewayOptions) serveGateway(ctx context.Context, w world, adminWanted bool) (err error) {
	setGCPercent(w)
	log, err := o.logs.openLog(&w, o.verbose)
	if err != nil {
		return err
	}
	limitMemory(log, memlimit.FromCgroup)

	o.closed = true
	a, err := openApp(w, &o.options)
	if err != nil {
		return err
	}
	w.warnAll(a.Loaded.Literals)

	var l *openedLedger
	defer func() {
		if closeErr := a.Close(); closeErr != nil {
			log.Warn("closing", "error", visible.Error(closeErr))
		}
		err = l.closeAfter(err)
	}()

	// Signals are taken before anything starts, so that none of them ends the process.
	hangup := o.hangupSignals(a)
	if l, err = openServed(ctx, a, log); err != nil {
		return err
	}
	proved, err := a.startServed(ctx, log)
	if err != nil {
		return err
	}
	providers, err := setup.ServedIdentity(o.setupOptions(a.w), a.Loaded, log)
	if err != nil {
		return err
	}

	parts := a.runnerOptions(l)
	parts.Config = a.Served(providers)
	parts.Log, parts.Report = log, func(line string) { log.Info(visible.Line(line)) }
	if parts.Tracer, err = a.newTracer(parts.Report); err != nil {
		return err
	}
	defer shutDown(ctx, parts.Tracer)
	r, err := startRunner(ctx, parts, l, proved)
	if err != nil {
		return err
	}

	options, err := o.serviceOptions(ctx, a, l, log, adminWanted)
	running := false // a running service closes its listeners itself
	defer func() {
		if !running {
			err = errors.Join(err, closeAll(options.MCP, options.Socket, options.Admin))
		}
	}()
	if err != nil {
		return err
	}

	var files *setup.Reloader
	if !a.IsDemo() {
		files = setup.NewReloader(a.Setup, providers)
		options.Reload = files.Read
	}
	service, err := runner.NewService(ctx, r, options)
	if err != nil {
		return err
	}
	if err := o.printAddresses(w, log, &options); err != nil {
		return err
	}

	running = true
	defer notifySystemd(ctx, log)()
	defer o.reloadOn(ctx, service, files, hangup)()
	return service.Run(ctx)
}

// startRunner makes a runner, ends what earlier processes left, and records the active bundle, unless
// the gateway records nothing, with the claims that were proved for it.
func startRunner(ctx context.Context, parts runner.Options, l *openedLedger, proved []string) (*runner.Runner, error) {
	r, err := runner.New(parts)
	if err != nil {
		return nil, err
	}
	r.Recover(ctx)
	if l == nil {
		return r, nil
	}
	reason := ledger.ActivationReason{Cause: ledger.CauseStart, Proved: proved, Settings: parts.Recorded}
	return r, l.RecordActivation(ctx, parts.Bundle, reason)
}

// startServed starts the servers that calls need, and returns the ids of the claims that are proved. It
// logs an error if no call will be made, if a policy is probably a mistake, or if a claim is not proved.
func (a *app) startServed(ctx context.Context, log *slog.Logger) (proved []string, err error) {
	if cause := a.Loaded.Closed; cause != nil {
		log.Error("every call is refused: the allowlist cannot be read", "error", visible.Error(cause))
	}
	catalog, err := a.catalog(ctx, a.Bundle, false)
	if err != nil {
		return nil, err
	}
	for _, f := range lint.Lint(a.Bundle.Content(), catalog) {
		if f.Severity == lint.Error {
			place := a.Loaded.LintError(f)
			log.Error("policy lint", "code", f.Code, "file", place.File, "line", place.Line, "error",
				visible.Text(place.Problem))
		}
	}
	proved, unproved, err := a.ProveClaims(ctx, catalog)
	if err != nil {
		return nil, err
	}
	for _, c := range unproved {
		log.Error("claim", "id", visible.Text(c.ID), "error", visible.Text(c.Problem))
	}
	return proved, a.Start(ctx)
}

// openServed opens the ledger of a service, and the keys of people's connections; nil if the service records nothing. It
// may return an open ledger along with an error.
func openServed(ctx context.Context, a *app, log *slog.Logger) (*openedLedger, error) {
	if err := a.OpenConnections(); err != nil {
		return nil, err
	}
	if a.Loaded.ServesUnrecorded() {
		log.Warn("nothing is recorded: serve.record is none, so calls that a policy holds are refused, and no token is accepted")
		return nil, nil
	}
	l, err := openConfigured(a.w, a.Loaded, stores.ToWrite)
	if err != nil {
		return nil, err
	}
	return l, l.verifyOpen(ctx)
}

// serviceOptions returns the options of the service, with open listeners. It returns the open
// listeners along with an error, too.
func (o *gatewayOptions) serviceOptions(ctx context.Context, a *app, l *openedLedger, log *slog.Logger, adminWanted bool) (
	options runner.ServiceOptions, err error,
) {
	configured := &a.Loaded.Serve
	options = runner.ServiceOptions{
		PublicURL: configured.PublicURL,
		AdminURL:  configured.AdminURL,
		Info:      upstream.Info{Name: "pgfsm", Version: cli.Version()},
		Config:    o.config,
	}

	secured, err := openTLS(configured.TLS, func(err error) { log.Error("TLS", "error", visible.Error(err)) })
	if err != nil {
		return options, err
	}

	if l != nil {
		options.Store = l.Ledger
		if options.Hooks, err = setup.Hooks(o.setupOptions(a.w), a.Loaded); err != nil {
			return options, err
		}
		if options.Checkpoints, err = l.checkpointWriter(ctx, log); err != nil {
			return options, fmt.Errorf("checkpoints: %w", err)
		}
	}

	if o.stdio {
		options.Stdio = &runner.Stdio{In: a.w.stdin, Out: a.w.stdout}
		if options.Stdio.Client, err = a.identifyCaller(ctx, l, "serve"); err != nil {
			return options, err
		}
	}

	// Over stdio, listen at an admin address only if a flag requests it, because many such
	// processes run at the same time.
	if !o.stdio || adminWanted {
		if options.Admin, err = openListener(secured, cmp.Or(o.admin, configured.Admin), configured.AdminURL); err != nil {
			return options, fmt.Errorf("serve.admin (flag --admin): %w", err)
		}
	}

	if !o.stdio {
		if options.MCP, err = openListener(secured, cmp.Or(o.listen, configured.Listen), configured.PublicURL); err != nil {
			return options, fmt.Errorf("serve.listen (flag --listen): %w", err)
		}
		if configured.Socket != "" {
			if options.Socket, err = loopback.ListenSocket(configured.Socket); err != nil {
				return options, fmt.Errorf("serve.socket: %w", err)
			}
			log.Info("socket", "path", visible.Text(configured.Socket))
		}
	}

	return options, nil
}

// closeAll closes listeners that are not served.
func closeAll(listeners ...net.Listener) error {
	var errs []error
	for _, l := range listeners {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	return errors.Join(errs...)
}

// publicOrigin returns the origin at which clients reach a listener. If the listener's own address
// differs, note tells it to people.
func publicOrigin(public string, l net.Listener) (origin, note string) {
	origin = web.Origin(l)
	if public != "" && public != origin {
		return public, ", listening on " + origin
	}
	return origin, ""
}

// printAddresses prints the addresses. Over stdio, standard output belongs to the client.
func (o *gatewayOptions) printAddresses(w world, log *slog.Logger, options *runner.ServiceOptions) error {
	switch {
	case o.stdio && options.Admin != nil:
		log.Info("admin", "address", web.Origin(options.Admin))
		return nil
	case o.stdio:
		return nil
	}
	mcp, mcpNote := publicOrigin(options.PublicURL, options.MCP)
	admin, adminNote := publicOrigin(options.AdminURL, options.Admin)
	if o.json {
		return cli.PrintJSON(w.stdout, cli.Document(
			"mcp", mcp+"/mcp", "admin", admin, "listen", web.Origin(options.MCP),
			"listen_admin", web.Origin(options.Admin),
		))
	}
	_, err := fmt.Fprintf(w.stdout, "mcp %s/mcp%s\nadmin %s%s\n", mcp, mcpNote, admin, adminNote)
	return err
}

// A sharedWriter lets several goroutines write lines.
type sharedWriter struct {
	mu sync.Mutex
	to io.Writer
}

func (s *sharedWriter) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(b)
}

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
	cmd := newCommand("serve", cobra.NoArgs, func(cmd *cobra.Command, _ []string) error {
		return o.serveApprovals(cmd.Context())
	})
	checkFirst(cmd, func() error {
		for _, host := range o.hosts {
			if !api.HostName(host) {
				return fmt.Errorf("--host %q is no host name, alone or with a port", visible.Text(host))
			}
		}
		return nil
	})
	cmd.Flags().StringVar(&o.admin, "admin", defaultAdmin,
		"the address to listen on: a loopback address and a port, or with serve.tls any IP address and a port")
	cmd.Flags().StringArrayVar(&o.hosts, "host", nil,
		"a host name that a proxy sends in the Host header; may be given again")
	o.logs.addFlag(cmd)
	cmd.Flags().BoolVar(&o.noResume, "no-resume", false, "only take decisions; other processes make the calls")
	return cmd
}

// serveApprovals opens everything, and serves until ctx is done.
func (o *serveOptions) serveApprovals(ctx context.Context) error {
	log, err := o.logs.openLog(&o.w, false)
	if err != nil {
		return err
	}

	w := o.w
	flags := options{config: o.config}
	loaded, _, err := loadConfig(w, &flags)
	if err != nil {
		return err
	}
	hooks, err := setup.Hooks(flags.setupOptions(w), loaded)
	if err != nil {
		return err
	}
	providers, err := setup.ServedIdentity(flags.setupOptions(w), loaded, log)
	if err != nil {
		return err
	}

	configured := &loaded.Serve
	secured, err := openTLS(configured.TLS, func(err error) { w.warn(visible.Error(err)) })
	if err != nil {
		return err
	}
	admin, err := openListener(secured, o.admin, configured.AdminURL)
	if err != nil {
		return fmt.Errorf("--admin: %w", err)
	}
	defer admin.Close()

	return o.withLedger(stores.ToWrite, func(l *openedLedger) error {
		if err := l.verifyOpen(ctx); err != nil {
			return err
		}

		parts := runner.Options{
			Ledger: l.Ledger,
			Report: w.warn,
			Log:    log,
			Config: runner.Config{Serve: loaded.Serve},
		}
		// Making approved calls needs the servers; deciding about them does not.
		if !o.noResume {
			a, err := openApp(w, &flags)
			if err != nil {
				return err
			}
			defer a.closeOrWarn()
			if err := errors.Join(a.OpenConnections(), a.Start(ctx)); err != nil {
				return err
			}
			parts = a.runnerOptions(l)
			parts.Log, parts.Allowlists = log, a.Allowlists()
			if parts.Tracer, err = a.newTracer(w.warn); err != nil {
				return err
			}
			defer shutDown(ctx, parts.Tracer)
		}
		parts.Identity, parts.Serve.Hosts = providers, o.hosts
		r, err := runner.New(parts)
		if err != nil {
			return err
		}
		service, err := runner.NewService(ctx, r, runner.ServiceOptions{
			Admin: admin, AdminURL: configured.AdminURL, Hooks: hooks, Store: l.store, Config: o.config,
		})
		if err != nil {
			return err
		}
		origin, note := publicOrigin(configured.AdminURL, admin)
		fmt.Fprintln(w.stdout, origin+note)
		defer notifySystemd(ctx, log)()
		return service.Run(ctx)
	})
}
