package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"pgfsm/config"
	"pgfsm/loopback"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/console"
	"pgfsm/traces/ledger/hooks"
	"pgfsm/web"
)

// ServiceOptions say what a [Service] serves, and where. What is nil is not served.
type ServiceOptions struct {
	MCP   net.Listener // for agents, over HTTP
	Stdio *Stdio       // for one agent
	Admin net.Listener // for people who decide: the console and the API, and for health checks

	Hosts      []string          // names of the service in Host headers, beside the addresses of the listeners and the hosts of the URLs
	PublicURL  string            // scheme and host at which agents reach MCP; may be empty
	AdminURL   string            // scheme and host at which people reach Admin; may be empty
	Middleware []web.Middleware  // wraps the handlers of both listeners; the first one sees a request first
	Agents     web.Authenticator // verifies the callers of MCP; nil: by the ledger's tokens of the role agent, and by Identity
	People     web.Authenticator // verifies the callers of Admin; nil: by the ledger's tokens, and by Identity
	Identity   *Identity         // nil: there are no identity providers
	Required   bool              // no caller of MCP is anonymous

	Hooks       []hooks.Hook
	Store       hooks.Store        // of the runner's ledger, for Hooks
	Checkpoints *checkpoint.Writer // of the runner's ledger
	Closed      error              // why every call of an agent is refused
	Config      string             // the configuration file as the user named it, for commands that people can copy; empty: the default
	Allowlists  []string           // the files that keep the pins, the default one first; empty: there is none that can be changed
	Info        upstream.Info      // how the gateway names itself to clients
}

// Stdio is a client that starts the gateway as its child process.
type Stdio struct {
	In     io.Reader
	Out    io.Writer
	Client gateway.Identity
}

// A Service runs the gateway for agents and the approvals API for people over one Runner, with a worker and the sender of web hooks
// if there is a ledger.
type Service struct {
	options ServiceOptions
	runner  *Runner
	gateway *gateway.Gateway
	admin   http.Handler
	console *console.Handler // nil without a ledger
	worker  *Worker
	sender  *hooks.Sender
	// These limit the log lines about tokens: clients can cause any number.
	lookup  rate.Sometimes
	refused rate.Sometimes
}

// NewService returns a service. It serves nothing yet, but web hooks are told of everything that happens from now on.
func NewService(ctx context.Context, r *Runner, o ServiceOptions) (s *Service, err error) {
	s = &Service{options: o, runner: r, lookup: rate.Sometimes{Interval: time.Second}, refused: rate.Sometimes{Interval: time.Second}}
	if r.options.Ledger != nil {
		s.worker = NewWorker(r)
		configured := &r.options.Serve
		if o.Admin != nil && configured.DecideURL == "" {
			configured.DecideURL = cmp.Or(o.AdminURL, web.Origin(o.Admin)) + console.CallPath + config.RunID
		}
		s.sender, err = hooks.New(o.Store, hooks.Options{
			Hooks: o.Hooks, Log: r.options.Report, DecideAt: configured.DecideAt, RemindBefore: time.Duration(configured.RemindBefore) * time.Millisecond,
		})
		if err != nil {
			return nil, err
		}
		if len(o.Hooks) > 0 {
			if err := s.sender.Begin(ctx); err != nil {
				return nil, err
			}
		}
	}
	if err := s.measureService(); err != nil {
		return nil, err
	}
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

func (s *Service) newGateway() (err error) {
	parts := &s.runner.options
	o := gateway.Options{
		Upstreams: parts.Upstreams, Calls: s.runner, Tasks: parts.Ledger != nil, Mask: parts.Secrets.Bytes, MaxAge: s.runner.catalogMaxAge(),
		Limits: gateway.Limits{Sessions: parts.Serve.Sessions}, Info: s.options.Info, Log: s.runner.log,
		Clients: s.options.Agents, Required: s.options.Required, Middleware: s.options.Middleware,
	}
	if parts.Serve.Rate != nil {
		o.Limit = s.runner.limitRequest
	}
	if parts.Metrics != nil || parts.Tracer != nil {
		o.Observe = s.runner.measureRequest
	}
	if parts.Tracer != nil {
		o.Begin = parts.Tracer.Begin
	}
	for _, e := range parts.Serve.Expose {
		words, err := gateway.ParseExpose(e.Words)
		if err != nil {
			return fmt.Errorf("servers.%s.expose: %w", e.Server, err)
		}
		o.Servers = append(o.Servers, gateway.Server{Name: e.Server, Expose: words})
	}
	if s.options.MCP != nil {
		o.Hosts = hosts(s.options.MCP, s.options.PublicURL, s.options.Hosts)
	}
	if parts.Ledger != nil {
		o.Passed, o.Status = s.recordPassage, s.runner.Status
	}
	if o.Clients == nil {
		s.agents(&o, s.options.PublicURL)
	}
	s.gateway, err = gateway.New(o)
	return err
}

func (s *Service) newAdmin() {
	o := api.Options{
		Callers: s.options.People, Hosts: hosts(s.options.Admin, s.options.AdminURL, s.options.Hosts), Ready: s.ready,
		Warnings: s.warnings, Log: s.runner.options.Report,
	}
	if m := s.runner.options.Metrics; m != nil {
		o.Metrics = m.Write
	}
	if w := s.options.Checkpoints; w != nil {
		o.Checkpoints = w.Dir
	}
	l := s.runner.options.Ledger
	if l == nil {
		s.admin = api.New(o)
		return
	}
	if o.Callers == nil {
		o.Callers = s.people(s.options.AdminURL)
	}
	o.Ledger, o.Replayer, o.Voted, o.Result = l, s.runner.replayer, s.voted, s.runner.CallResult
	forConsole := console.Options{
		Ledger: l, Replayer: s.runner.replayer, Hosts: o.Hosts, Voted: o.Voted, Result: o.Result, Log: o.Log, Checkpoints: o.Checkpoints,
	}
	if i := s.options.Identity; i != nil {
		forConsole.Providers = i.SignIn
	}
	if s.runner.options.Upstreams != nil {
		o.Bundle, o.Servers = s.runner.options.Bundle, s.knownServers
		forConsole.Bundle, forConsole.Servers, forConsole.AskServers, forConsole.Explain = o.Bundle, o.Servers, s.askServers, s.explain
	}
	served := api.New(o)
	forConsole.Health = served.Health
	s.console = console.New(forConsole)
	s.admin = console.Beside(s.console, served)
}

// hosts are the values of the Host header with which a listener is reached. Clients may leave out the port 443, or write it.
func hosts(on net.Listener, url string, others []string) []string {
	all := slices.Concat(loopback.Hosts(on), others)
	if _, host, ok := strings.Cut(strings.ToLower(url), "://"); ok {
		host = strings.TrimSuffix(host, ":443")
		all = append(all, host, host+":443")
	}
	return all
}

// recordPassage records a message other than tools/call before it is relayed.
func (s *Service) recordPassage(ctx context.Context, p gateway.Passed) error {
	return s.runner.options.Ledger.Pass(ctx, ledger.Passage{
		By: callerOf(p.Identity), Server: p.Server, Direction: p.Direction, Method: p.Method,
		Digest: ledger.ParamsDigest(p.Params),
	})
}

// ready returns why the service cannot do its work.
func (s *Service) ready(ctx context.Context) (causes []api.NotReady) {
	if err := s.options.Closed; err != nil {
		causes = append(causes, api.NotReady{Reason: api.AllowlistUnreadable, Err: err})
	}
	if err := s.runner.Ready(); err != nil {
		causes = append(causes, api.NewNotReady(err, api.NotRecording))
	}
	if s.worker == nil {
		return causes
	}
	if err := s.worker.Ready(ctx); err != nil {
		causes = append(causes, api.NewNotReady(err, api.WorkerBehind))
	}
	return causes
}

// warnings returns what a ready service should tell.
func (s *Service) warnings() []string {
	all := []string{}
	if s.worker != nil && s.worker.OtherBundle() {
		all = append(all, api.WarnBundleDiffers)
	}
	if i := s.options.Identity; i != nil && !i.Providers.Ready() {
		all = append(all, api.WarnIdentityProvider)
	}
	return all
}

// Run serves until ctx is done, the client of Stdio is gone, a listener fails, or the ledger is of no more use to this process. Requests
// that are under way are finished, for half a minute at most; their runs are recorded when it returns. It closes the listeners.
func (s *Service) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	var errs [5]error
	if s.worker != nil {
		all.Go(func() { s.worker.Run(ctx) })
		all.Go(func() { s.sender.Run(ctx) })
	}
	if i := s.options.Identity; i != nil {
		all.Go(func() { i.Providers.Run(ctx) })
	}
	if w := s.options.Checkpoints; w != nil {
		all.Go(func() {
			if err := w.Run(ctx); err != nil {
				errs[4] = useless(err)
				stop()
			}
		})
	}
	o := &s.options
	if l := s.runner.options.Ledger; l != nil {
		all.Go(func() {
			select {
			case err := <-l.Useless():
				errs[3] = useless(err)
				stop()
			case <-ctx.Done():
			}
		})
	}
	if o.MCP != nil {
		all.Go(func() {
			defer stop()
			errs[0] = s.gateway.Serve(ctx, o.MCP)
		})
	}
	if o.Stdio != nil {
		all.Go(func() {
			defer stop()
			errs[1] = s.gateway.ServeStdio(ctx, o.Stdio.In, o.Stdio.Out, o.Stdio.Client)
		})
	}
	if o.Admin != nil {
		if s.console != nil {
			defer context.AfterFunc(ctx, s.console.Close)()
		}
		all.Go(func() {
			defer stop()
			errs[2] = api.Serve(ctx, o.Admin, s.admin, o.Middleware...)
		})
	}
	all.Wait()
	s.runner.Wait()
	return errors.Join(errs[:]...)
}

// useless tells the operator what to do after an error of [ledger.Ledger.Useless].
func useless(err error) error {
	switch {
	case errors.Is(err, ledger.ErrLedgerClosed):
		return fmt.Errorf("the service has ended: %w", err)
	case errors.Is(err, ledger.ErrLost), errors.Is(err, checkpoint.ErrInconsistent):
		return fmt.Errorf("the service has ended: %w; make no other copy of the ledger active: restore one that has the entries, "+
			"or go on without them by pgfsm ledger continue-after-loss", err)
	}
	return fmt.Errorf("the service has ended: %w; start it again: it continues as a new replica, and runs whose calls were under way "+
		"here are indeterminate", err)
}
