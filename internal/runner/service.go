package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/internal/hook"
	"pgfsm/internal/web"
	"pgfsm/internal/web/loopback"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/hooks"
)

// ServiceOptions select what a [Service] serves, and where. A nil listener or client is not served.
type ServiceOptions struct {
	MCP    net.Listener // agents' listener, for HTTP
	Socket net.Listener // serves the same as MCP
	Stdio  *Stdio       // the client over stdio
	Admin  net.Listener // listener of the console, the approvals API and health checks

	PublicURL string // scheme and host at which agents reach MCP; may be empty
	AdminURL  string // scheme and host at which people reach Admin; may be empty
	Reload    Reload // reads the configuration again; nil: it cannot be reloaded

	Hooks       []hooks.Hook
	Store       hooks.Store        // deliveries of Hooks in the runner's ledger
	Checkpoints *checkpoint.Writer // writes checkpoints of the runner's ledger
	// The configuration file as the user named it, for commands that people can copy; empty: the
	// default.
	Config string
	Info   upstream.Info // the gateway's name and version for clients
}

// Stdio is a client that starts the gateway as its child process.
type Stdio struct {
	In     io.Reader
	Out    io.Writer
	Client gateway.Identity
}

// A Service runs the gateway for agents and the approvals API for people over one Runner, with a
// worker and the sender of web hooks if there is a ledger.
type Service struct {
	options ServiceOptions
	runner  *Runner
	gateway *gateway.Gateway
	admin   *api.Handler
	worker  *Worker
	sender  *hooks.Sender
	reload  reloading
	claims  keptClaims
	// These limit the log lines about tokens: clients can cause any number.
	lookup  rate.Sometimes
	refused rate.Sometimes
}

// NewService returns a service. It serves nothing yet, but web hooks receive all events from now
// on.
func NewService(ctx context.Context, r *Runner, o ServiceOptions) (s *Service, err error) {
	s = &Service{
		options: o,
		runner:  r,
		lookup:  rate.Sometimes{Interval: time.Second},
		refused: rate.Sometimes{Interval: time.Second},
	}

	if r.options.Ledger != nil {
		s.worker = NewWorker(r)
		first := r.Configured().Config
		r.active.Replace(r.withConfig(s.withDecideURL(first)))
		decideAt := func(run string) string { return r.Configured().Serve.DecideAt(run) }
		s.sender, err = hooks.New(o.Store, hooks.Options{
			Hooks:        o.Hooks,
			Log:          r.options.Report,
			DecideAt:     decideAt,
			RemindBefore: time.Duration(first.Serve.RemindBefore) * time.Millisecond,
		})
		if err != nil {
			return nil, err
		}
		if err := s.sender.Begin(ctx); err != nil {
			return nil, err
		}
	}

	s.measureService()
	if o.MCP != nil || o.Stdio != nil {
		if err := s.newGateway(); err != nil {
			return nil, err
		}
	}

	if o.Admin != nil {
		s.newAdmin()
	}

	return s, nil
}

// withDecideURL returns the configuration with the address where people connect accounts. If it does not name the
// address where approvers decide, withDecideURL fills in the console's.
func (s *Service) withDecideURL(c Config) Config {
	console := c.Serve.AdminOrigin()
	if s.options.Admin != nil {
		console = cmp.Or(s.options.AdminURL, web.Origin(s.options.Admin))
		c.Serve.DecideURL = cmp.Or(c.Serve.DecideURL, console+api.CallPath+config.RunID)
	}
	c.ConnectURL = console + api.ConnectionsPath
	return c
}

func (s *Service) newGateway() error {
	parts, first := &s.runner.options, s.runner.Configured()
	settings, err := s.gatewayConfig(first)
	if err != nil {
		return err
	}

	o := gateway.Options{
		Config: settings,
		Tasks:  parts.Ledger != nil,
		Mask:   first.Secrets.Bytes,
		Redact: func(server string, text []byte) ([]byte, string) {
			return s.runner.Configured().redactMessage(server, text)
		},
		Limits: gateway.Limits{Sessions: first.Serve.Sessions},
		Info:   s.options.Info,
		Log:    s.runner.log,
	}

	o.Hooks.Limit = s.runner.limitRequest // set without limits, too: a reload may add some
	if parts.Tracer != nil {
		o.Begin = parts.Tracer.Begin
	}

	if l := parts.Ledger; l != nil {
		o.Passed = s.recordPassage
		o.Hooks.Status = func(ctx context.Context, caller gateway.Identity, run string) ([]byte, error) {
			return s.runner.Configured().Status(ctx, caller, run)
		}
		o.Hooks.RefusedScope = s.refusedScope
		o.Hooks.Delegator = s
	}

	s.gateway, err = gateway.New(o)
	return err
}

// gatewayConfig returns the gateway's part of a configuration.
func (s *Service) gatewayConfig(g *ConfiguredRunner) (c gateway.Config, err error) {
	c = gateway.Config{Upstreams: g.Upstreams, Calls: g, Account: g.account, MaxAge: g.catalogMaxAge()}
	c.Front.Required = g.Required
	for _, e := range g.Serve.Expose {
		words, err := gateway.ParseExpose(e.Words)
		if err != nil {
			return c, fmt.Errorf("servers.%s.expose: %w", e.Server, err)
		}
		c.Servers = append(c.Servers, gateway.Server{Name: e.Server, Expose: words, Sessions: e.Sessions,
			Person: g.Connections.Find(e.Server) != nil})
	}
	if s.options.MCP != nil {
		c.Front.Hosts = hostNames(s.options.MCP, s.options.PublicURL, g.Serve.Hosts)
	}
	if s.options.Socket != nil {
		c.Front.Hosts = append(c.Front.Hosts, hook.SocketHost)
	}
	s.setAgentAuthenticator(&c, g.Identity)
	c.Observe = g.measureRequest
	return c, nil
}

func (s *Service) newAdmin() {
	first := s.runner.Configured()
	o := api.Options{
		Hosts:    hostNames(s.options.Admin, s.options.AdminURL, first.Serve.Hosts),
		Ready:    s.unreadyCauses,
		Warnings: s.warnings,
		Metrics:  s.runner.metrics.Write,
		Log:      s.runner.options.Report,
	}

	if l := s.runner.options.Ledger; l != nil {
		o.Ledger, o.Replayer, o.Voted, o.Result = l, s.runner.replayer, s.handleVote, s.runner.CallResult
		o.Connectable, o.Connected = s.connectable, s.noteConnection
		l.OnEnded(s.revokeEnded)
		o.Callers = s.peopleAuthenticator(s.options.AdminURL)
		if w := s.options.Checkpoints; w != nil {
			o.Checkpoints = w.Dir
		}
		if s.options.Reload != nil {
			o.Reload = s.reloadFor
		}

		if i := first.Identity; i != nil {
			for _, p := range i.SignIn {
				o.Providers = append(o.Providers, &consoleProvider{p, s})
			}
		}

		if first.Upstreams != nil {
			o.Bundle, o.Servers = func() *policy.Bundle { return s.runner.Configured().Bundle }, s.knownServers
			o.AskServers, o.Explain, o.Claims = s.askServers, s.explainCall, s.proveClaims
			o.Definition = func(server, tool string) (canonical.Digest, bool) {
				return s.runner.Configured().definitionDigest(server, tool)
			}
		}
	}

	s.admin = api.New(o)
}

// hostNames returns the Host headers with which clients reach a listener. Clients may omit the port
// 443, or write it.
func hostNames(listener net.Listener, url string, others []string) []string {
	names := slices.Concat(loopback.Hosts(listener), others)
	if _, host, ok := strings.Cut(strings.ToLower(url), "://"); ok {
		host = strings.TrimSuffix(host, ":443")
		names = append(names, host, host+":443")
	}
	return names
}

// recordPassage records a message other than tools/call before it is relayed.
func (s *Service) recordPassage(ctx context.Context, p gateway.Passed) error {
	return s.runner.options.Ledger.RecordPassage(ctx, ledger.Passage{
		By:        callerOf(p.Identity),
		Server:    p.Server,
		Direction: p.Direction,
		Method:    p.Method,
		Digest:    ledger.ParamsDigest(p.Params),
	})
}

// unreadyCauses returns the causes that make the service unready.
func (s *Service) unreadyCauses(ctx context.Context) (causes []api.NotReady) {
	if err := s.runner.Configured().Closed; err != nil {
		causes = append(causes, api.NotReady{Reason: api.AllowlistUnreadable, Err: err})
	}
	if err := s.runner.Ready(); err != nil {
		causes = append(causes, api.NewNotReady(err, api.NotRecording))
	}
	if s.worker == nil {
		return causes
	}
	if err := s.worker.Ready(); err != nil {
		causes = append(causes, api.NewNotReady(err, api.WorkerBehind))
	}
	return causes
}

// warnings returns problems that leave the service ready.
func (s *Service) warnings() []string {
	warnings := []string{}
	if s.worker != nil && s.worker.OtherBundle() {
		warnings = append(warnings, api.WarnBundleDiffers)
	}
	if i := s.runner.Configured().Identity; i != nil && !i.Providers.Ready() {
		warnings = append(warnings, api.WarnIdentityProvider)
	}
	if u := s.runner.Configured().Upstreams; u != nil {
		if open, most := u.Processes(); open*5 >= most*4 {
			warnings = append(warnings, api.WarnServerSessions)
		}
	}
	return warnings
}

// Run serves until ctx is done, the client of Stdio is gone, a listener fails, or this process
// cannot use the ledger any more. It finishes requests under way, for half a minute at most; when
// Run returns, their runs are recorded. It closes the listeners.
func (s *Service) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(ctx, func() { s.reload.ended.Store(true) })()
	var parts errgroup.Group
	start := func(part func() error) { // the service ends with this part
		parts.Go(func() error {
			defer stop()
			return part()
		})
	}

	// Helpers end with ctx, and their end does not end the service.
	var helpers sync.WaitGroup
	if s.worker != nil {
		helpers.Go(func() { s.worker.Run(ctx) })
		helpers.Go(func() { s.sender.Run(ctx) })
		helpers.Go(func() { s.followConnections(ctx) })
	}

	for _, w := range s.runner.warnUnusable(ctx, s.runner.Configured().Connections) {
		s.runner.log.Warn("connections", "warning", w)
	}

	if i := s.runner.Configured().Identity; i != nil {
		helpers.Go(func() { i.Providers.Run(ctx) })
	}

	o := &s.options
	if w := o.Checkpoints; w != nil {
		start(func() error { return explainFatal(w.Run(ctx)) })
	}

	if l := s.runner.options.Ledger; l != nil {
		start(func() error {
			select {
			case err := <-l.FatalError():
				return explainFatal(err)
			case <-ctx.Done():
				return nil
			}
		})
	}

	for _, l := range []net.Listener{o.MCP, o.Socket} {
		if l != nil {
			start(func() error { return s.gateway.Serve(ctx, l) })
		}
	}

	if o.Stdio != nil {
		start(func() error { return s.gateway.ServeStdio(ctx, o.Stdio.In, o.Stdio.Out, o.Stdio.Client) })
	}

	if o.Admin != nil {
		defer context.AfterFunc(ctx, s.admin.Close)()
		start(func() error { return api.Serve(ctx, o.Admin, s.admin) })
	}

	// Every part has drained; runs under way are still to be recorded to their end.
	err := parts.Wait()
	helpers.Wait()
	s.reload.ended.Store(true)
	s.reload.awaitRetired()
	s.runner.Wait()
	s.runner.accounts.Wait() // new tokens must be in the ledger

	return err
}

// explainFatal tells the operator what to do after an error of [ledger.Ledger.FatalError].
func explainFatal(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrLedgerClosed):
		return fmt.Errorf("the service has ended: %w", err)
	case errors.Is(err, ledger.ErrLost), errors.Is(err, checkpoint.ErrInconsistent):
		return fmt.Errorf("the service has ended: %w; make no other copy of the ledger active: restore one that has the entries, "+
			"or begin a new ledger: docs/operate/backup.md#after-a-loss", err)
	}
	return fmt.Errorf("the service has ended: %w; start it again: it continues as a new replica, and runs whose calls were under way "+
		"here are indeterminate", err)
}
