package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"pgfsm/config"
	"pgfsm/loopback"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/policy/visible"
	"pgfsm/runner"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/hooks"
	"pgfsm/traces/ledger/stores"
)

// A service is everything that the gateway is made of.
type service struct {
	w       world
	log     *slog.Logger
	app     *app
	ledger  *openedLedger // nil: there is none
	runner  *runner.Runner
	worker  *runner.Worker // with a ledger: resumes the runs that are decided
	sender  *hooks.Sender  // with a ledger
	gateway *gateway.Gateway
	admin   http.Handler
	unread  rate.Sometimes // about tokens that cannot be looked up: clients may come with many

	stdioIdentity gateway.Identity // who the client on standard input is
}

// open reads the configuration, opens the ledger, and ends what processes that are gone left behind.
func (s *service) open(ctx context.Context, o *options) (err error) {
	o.closed = true
	if s.app, err = open(s.w, o); err != nil {
		return err
	}
	if s.app.loaded.Closed != nil {
		s.log.Error("every call is refused: the allowlist cannot be read", "error", visible.Text(s.app.loaded.Closed.Error()))
	}
	if err = s.app.start(ctx); err != nil {
		return err
	}
	s.stdioIdentity = gateway.Identity{Name: actor()}
	if s.app.loaded.Ledger == "" {
		s.warnUnledgered()
		return s.newRunner(ctx)
	}
	if s.ledger, err = openLedger(s.w, "", s.app.loaded.Ledger, stores.ToRecord); err != nil {
		return err
	}
	if err = s.ledger.verifyOpen(ctx); err != nil {
		return err
	}
	if err = s.newRunner(ctx); err != nil {
		return err
	}
	if s.w.env(tokenVariable) != "" {
		who, err := caller(ctx, s.w, s.ledger, ledger.ActCall)
		if err != nil {
			return fmt.Errorf("%s: %w; unset it to serve as %s", tokenVariable, err, actor())
		}
		s.stdioIdentity = gateway.Identity{Name: who.Name, Token: who.TokenID}
	}
	s.worker = runner.NewWorker(s.runner)
	return s.openHooks(ctx)
}

// newRunner makes the runner, and ends the runs whose process is gone.
func (s *service) newRunner(ctx context.Context) (err error) {
	o := s.app.runnerOptions(s.ledger)
	o.Unrecorded = s.app.loaded.Serve.Record == config.RecordNone && s.ledger == nil
	o.Log, o.Report = s.log, s.say
	if s.runner, err = runner.New(o); err == nil {
		s.runner.Recover(ctx)
	}
	return err
}

func (s *service) openHooks(ctx context.Context) (err error) {
	told, err := hooksOf(s.w, s.app.loaded)
	if err != nil {
		return err
	}
	if s.sender, err = hooks.New(s.ledger.store, hooks.Options{Hooks: told, Log: s.say}); err != nil || len(told) == 0 {
		return err
	}
	return s.sender.Begin(ctx)
}

// warnUnledgered says what cannot be had without a ledger.
func (s *service) warnUnledgered() {
	switch {
	case s.app.loaded.Serve.Record == config.RecordNone:
		s.log.Warn("nothing is recorded: serve.record is none, and there is no ledger")
	default:
		s.log.Warn("there is no ledger: runs are kept as files, calls that a policy holds are refused, and tokens are not accepted without a ledger",
			"traces", s.app.tracesDir)
	}
}

// build puts the gateway together for its listeners.
func (s *service) build(on, admin net.Listener) (err error) {
	o := gateway.Options{
		Upstreams: s.app.upstreams, Calls: s.runner, Tasks: s.ledger != nil, Mask: s.app.secrets.Bytes,
		MaxAge: time.Duration(s.app.loaded.Serve.CatalogMaxAge) * time.Millisecond,
		Limits: gateway.Limits{Sessions: s.app.loaded.Serve.Sessions}, Info: upstream.Info{Name: "pgfsm", Version: version()}, Log: s.log,
	}
	for _, e := range s.app.loaded.Serve.Expose {
		words, err := gateway.ParseExpose(e.Words)
		if err != nil {
			return fmt.Errorf("servers.%s.expose: %w", e.Server, err)
		}
		o.Servers = append(o.Servers, gateway.Server{Name: e.Server, Expose: words})
	}
	if on != nil {
		o.Hosts = slices.Concat(loopback.Hosts(on), s.app.loaded.Serve.Hosts)
	}
	if s.ledger != nil {
		o.Authenticate, o.Passed, o.Status = s.authenticate, s.passed, s.runner.Status
	}
	if s.gateway, err = gateway.New(o); err != nil || admin == nil {
		return err
	}
	a := api.Options{Hosts: slices.Concat(loopback.Hosts(admin), s.app.loaded.Serve.Hosts), Ready: s.ready, Log: s.say}
	if s.ledger != nil {
		a.Ledger, a.Voted, a.Result = s.ledger.Ledger, s.worker.Wake, s.runner.CallResult
	}
	s.admin = api.New(a)
	return nil
}

// authenticate says whose a client's token is.
func (s *service) authenticate(ctx context.Context, token string) (gateway.Identity, error) {
	who, err := s.ledger.Authenticate(ctx, token)
	if err == nil {
		err = who.Allow(ledger.ActCall)
	}
	var no *ledger.Refusal
	if err != nil && !errors.As(err, &no) { // nothing is known against the token
		s.unread.Do(func() { s.log.Warn("a token cannot be looked up", "error", visible.Text(err.Error())) })
		err = gateway.ErrUnavailable
	}
	return gateway.Identity{Name: who.Name, Token: who.TokenID}, err
}

// passed records what passes besides calls, before it does.
func (s *service) passed(ctx context.Context, p gateway.Passed) error {
	return s.ledger.Pass(ctx, ledger.Passage{
		Actor: p.Identity.Name, Token: p.Identity.Token, Server: p.Server, Direction: p.Direction, Method: p.Method,
		Digest: ledger.ParamsDigest(p.Params),
	})
}

// ready says why the gateway cannot do its work.
func (s *service) ready(ctx context.Context) error {
	if s.app.loaded.Closed != nil {
		return fmt.Errorf("the allowlist cannot be read, so every call is refused: %w", s.app.loaded.Closed)
	}
	if err := s.runner.Ready(); err != nil || s.worker == nil {
		return err
	}
	return s.worker.Ready(ctx)
}

// close closes what was opened, the last first.
func (s *service) close(err error) error {
	if s.app != nil {
		if closing := s.app.close(); closing != nil {
			s.log.Warn("closing", "error", visible.Text(closing.Error()))
		}
	}
	if s.ledger != nil {
		return closing(s.w, s.ledger, err)
	}
	return err
}
