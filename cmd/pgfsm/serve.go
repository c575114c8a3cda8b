package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/time/rate"

	"pgfsm/loopback"
	"pgfsm/policy/visible"
	"pgfsm/traces/ledger/api"
)

// gatewayOptions are the flags of serve.
type gatewayOptions struct {
	options
	listen  string
	admin   string
	stdio   bool
	verbose bool
}

func newServe(w world) *cobra.Command {
	var o gatewayOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Be the gateway: agents call tools through the machine",
		Long: `serve lets any MCP client use the configured servers through pgfsm. Clients see the effective allowlist; every
tools/call goes through the machine, with the request as the plan: validated, authorized, assessed, decided, made at most
once, and recorded.

  http://HOST:PORT/mcp                  all servers, tools named server__tool (streamable HTTP)
  http://HOST:PORT/sse                  the same, for clients of 2024
  http://HOST:PORT/servers/NAME/mcp     one server, under its own names

With a ledger (the key ledger), clients present a token of the role agent (pgfsm token create --role agent --name NAME);
without one they are "anonymous", on this machine only. Calls that a policy holds wait in the ledger; the admin address takes
the decisions (GET /openapi.yaml), and says how the gateway is: /healthz, /readyz.

--stdio serves one client over standard input and output, as a client's "command". docs/guide/gateway.md is the manual.

It ends on the first interrupt: calls that are under way are finished, for half a minute; then they are cut off, and recorded
as such. Exit codes: 0 ended as asked, 2 could not, or cut calls off.`,
		Example: `  pgfsm serve
  pgfsm serve -c pgfsm.yaml --listen 127.0.0.1:8787
  pgfsm serve -c pgfsm.yaml --stdio`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.serve(cmd.Context(), w, cmd.Flags().Changed("admin"))
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.listen, "listen", "", "where clients come: an address of this machine, and a port (default: serve.listen)")
	cmd.Flags().StringVar(&o.admin, "admin", "", "where people decide, and health is asked for (default: serve.admin; with --stdio none)")
	cmd.Flags().BoolVar(&o.stdio, "stdio", false, "serve one client over standard input and output")
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "log every call")
	return cmd
}

// gcPercent is how much garbage the gateway and the evaluation of the gates let come together where GOGC says nothing: a call leaves
// some tens of kilobytes behind, of a heap of a few megabytes. It costs memory, half as much again, and saves a tenth of the time.
const gcPercent = 400

// collectLess lets more garbage come together, unless GOGC says how much.
func collectLess(w world) {
	if w.env("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// serve opens everything, serves until ctx is done, and closes it in the order in which it depends on each other.
func (o *gatewayOptions) serve(ctx context.Context, w world, adminWanted bool) (err error) {
	w.stderr = &sharedWriter{to: w.stderr}
	collectLess(w)
	s := &service{
		w: w, log: slog.New(slog.NewTextHandler(w.stderr, &slog.HandlerOptions{Level: slog.LevelInfo})),
		unread: rate.Sometimes{Interval: time.Second},
	}
	if o.verbose {
		s.log = slog.New(slog.NewTextHandler(w.stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	defer func() { err = s.close(err) }()
	if err := s.open(ctx, &o.options); err != nil {
		return err
	}
	admin, err := o.adminOn(s, adminWanted)
	if err != nil {
		return err
	}
	var on net.Listener
	if !o.stdio {
		if on, err = loopback.Listen(either(o.listen, s.app.loaded.Serve.Listen)); err != nil {
			return errors.Join(fmt.Errorf("--listen: %w", err), closeIf(admin))
		}
	}
	if err := s.build(on, admin); err != nil {
		return errors.Join(err, closeIf(admin), closeIf(on))
	}
	return s.run(ctx, on, admin, o)
}

// adminOn opens the admin address. Where one client is served over stdio there is one only if it is asked for: many such
// processes run beside each other.
func (o *gatewayOptions) adminOn(s *service, wanted bool) (net.Listener, error) {
	if o.stdio && !wanted {
		return nil, nil
	}
	on, err := loopback.Listen(either(o.admin, s.app.loaded.Serve.Admin))
	if err != nil {
		return nil, fmt.Errorf("--admin: %w", err)
	}
	return on, nil
}

func either(flag, configured string) string {
	if flag != "" {
		return flag
	}
	return configured
}

func closeIf(on net.Listener) error {
	if on == nil {
		return nil
	}
	return on.Close()
}

// run serves until ctx is done.
func (s *service) run(ctx context.Context, on, admin net.Listener, o *gatewayOptions) error {
	within, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	if s.worker != nil {
		all.Go(func() { s.worker.Run(within) })
		all.Go(func() { s.sender.Run(within) })
	}
	failed := make(chan error, 1)
	if admin != nil {
		all.Go(func() {
			if err := api.Serve(within, admin, s.admin); err != nil {
				failed <- err
				stop() // people could not decide any more
			}
		})
	}
	var err error
	if o.stdio {
		if admin != nil {
			s.log.Info("admin", "address", "http://"+admin.Addr().String()) // standard output is the client's
		}
		err = s.gateway.ServeStdio(within, s.w.stdin, s.w.stdout, s.stdioIdentity)
	} else {
		if err = o.announce(s.w.stdout, on, admin); err == nil {
			err = s.gateway.Serve(within, on)
		}
	}
	stop()
	all.Wait()
	s.runner.Wait()
	select {
	case broken := <-failed:
		err = errors.Join(err, broken)
	default:
	}
	return err
}

// announce says where everything is.
func (o *gatewayOptions) announce(out io.Writer, on, admin net.Listener) error {
	if o.json {
		return printJSON(out, struct {
			SchemaVersion int    `json:"schema_version"`
			MCP           string `json:"mcp"`
			Admin         string `json:"admin"`
		}{schemaVersion, "http://" + on.Addr().String() + "/mcp", "http://" + admin.Addr().String()})
	}
	_, err := fmt.Fprintf(out, "mcp http://%s/mcp\nadmin http://%s\n", on.Addr(), admin.Addr())
	return err
}

// say is the log for those who write lines.
func (s *service) say(line string) { s.log.Info(visible.Text(line)) }

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
