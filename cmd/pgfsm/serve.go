package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/spf13/cobra"

	"pgfsm/runner"
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
		Short: "Run the gateway: agents call tools through the machine",
		Long: `serve lets any MCP client use the configured servers through pgfsm. Clients see the effective allowlist. The machine
takes every tools/call as a plan: it validates, authorizes and assesses the call, makes it at most once, and records it.

  http://HOST:PORT/mcp                  all servers, tools named server__tool (streamable HTTP)
  http://HOST:PORT/sse                  the same, for clients of 2024-11-05
  http://HOST:PORT/servers/NAME/mcp     one server, under its own names

With a ledger (the key ledger), clients present a token of the role agent (pgfsm token create --role agent --name NAME).
Without a token they are "anonymous", on this machine only. Calls that a policy holds wait in the ledger. The admin address
takes the decisions (GET /openapi.yaml) and has the health checks /healthz and /readyz.

--stdio serves one client over standard input and output, as a client's "command". docs/guide/gateway.md is the manual.

After the first interrupt, calls under way have half a minute to finish; then serve cuts them off and records that.
Exit codes: 0 stopped by an interrupt, 2 could not, or cut calls off.`,
		Example: `  pgfsm serve
  pgfsm serve -c pgfsm.yaml --listen 127.0.0.1:8787
  pgfsm serve -c pgfsm.yaml --stdio`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.serve(cmd.Context(), w, cmd.Flags().Changed("admin"))
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.listen, "listen", "", "the address for clients: of this machine, and a port (default: serve.listen)")
	cmd.Flags().StringVar(&o.admin, "admin", "", "the address for decisions and health checks (default: serve.admin; with --stdio none)")
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

// serve opens everything, serves until ctx is done, and closes it in the reverse order.
func (o *gatewayOptions) serve(ctx context.Context, w world, adminWanted bool) (err error) {
	w.stderr = &sharedWriter{to: w.stderr}
	collectLess(w)
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	s := &service{w: w, log: slog.New(slog.NewTextHandler(w.stderr, &slog.HandlerOptions{Level: level}))}
	defer func() { err = s.close(err) }()
	if err := s.open(ctx, &o.options); err != nil {
		return err
	}
	r, err := s.runner(ctx)
	if err != nil {
		return err
	}
	so, err := s.options(ctx, o, adminWanted)
	if err != nil {
		return errors.Join(err, closeAll(so.MCP, so.Admin))
	}
	all, err := runner.NewService(ctx, r, so)
	if err == nil {
		err = s.announce(o, &so)
	}
	if err != nil {
		return errors.Join(err, closeAll(so.MCP, so.Admin))
	}
	return all.Run(ctx)
}

func either(flag, configured string) string {
	if flag != "" {
		return flag
	}
	return configured
}

// announce prints the addresses. Over stdio standard output is the client's.
func (s *service) announce(o *gatewayOptions, so *runner.ServiceOptions) error {
	switch {
	case o.stdio && so.Admin != nil:
		s.log.Info("admin", "address", "http://"+so.Admin.Addr().String())
		return nil
	case o.stdio:
		return nil
	case o.json:
		return printJSON(s.w.stdout, struct {
			SchemaVersion int    `json:"schema_version"`
			MCP           string `json:"mcp"`
			Admin         string `json:"admin"`
		}{schemaVersion, "http://" + so.MCP.Addr().String() + "/mcp", "http://" + so.Admin.Addr().String()})
	}
	_, err := fmt.Fprintf(s.w.stdout, "mcp http://%s/mcp\nadmin http://%s\n", so.MCP.Addr(), so.Admin.Addr())
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
