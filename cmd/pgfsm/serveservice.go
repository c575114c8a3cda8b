package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"pgfsm/config"
	"pgfsm/loopback"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/policy/visible"
	"pgfsm/runner"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

// A service holds what serve opens.
type service struct {
	w      world
	log    *slog.Logger
	app    *app
	ledger *openedLedger // nil: there is none
}

// open reads the configuration and opens the ledger.
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
	if s.app.loaded.Ledger == "" {
		s.warnUnledgered()
		return nil
	}
	if s.ledger, err = openLedger(s.w, "", s.app.loaded.Ledger, stores.ToRecord); err != nil {
		return err
	}
	return s.ledger.verifyOpen(ctx)
}

// warnUnledgered logs what is missing without a ledger.
func (s *service) warnUnledgered() {
	switch {
	case s.app.loaded.Serve.Record == config.RecordNone:
		s.log.Warn("nothing is recorded: serve.record is none, and there is no ledger")
	default:
		s.log.Warn("there is no ledger: runs are kept as files, calls that a policy holds are refused, and tokens are not accepted without a ledger",
			"traces", s.app.tracesDir)
	}
}

// runner makes the runner, and ends the runs whose process is gone.
func (s *service) runner(ctx context.Context) (*runner.Runner, error) {
	o := s.app.runnerOptions(s.ledger)
	o.Unrecorded = s.app.loaded.Serve.Record == config.RecordNone && s.ledger == nil
	o.Log, o.Report = s.log, s.logLine
	r, err := runner.New(o)
	if err == nil {
		r.Recover(ctx)
	}
	return r, err
}

// logLine logs a line of the runner, the approvals API or the web hooks.
func (s *service) logLine(line string) { s.log.Info(visible.Text(line)) }

// options are those of the service: its listeners are opened.
func (s *service) options(ctx context.Context, o *gatewayOptions, adminWanted bool) (so runner.ServiceOptions, err error) {
	so = runner.ServiceOptions{
		Hosts: s.app.loaded.Serve.Hosts, Closed: s.app.loaded.Closed, Info: upstream.Info{Name: "pgfsm", Version: version()},
	}
	if s.ledger != nil {
		so.Store = s.ledger.store
		if so.Hooks, err = hooksOf(s.w, s.app.loaded); err != nil {
			return so, err
		}
	}
	if o.stdio {
		so.Stdio = &runner.Stdio{In: s.w.stdin, Out: s.w.stdout}
		if so.Stdio.Client, err = s.stdioClient(ctx); err != nil {
			return so, err
		}
	}
	// Over stdio there is an admin address only if it is asked for: many such processes run beside each other.
	if !o.stdio || adminWanted {
		if so.Admin, err = loopback.Listen(either(o.admin, s.app.loaded.Serve.Admin)); err != nil {
			return so, fmt.Errorf("--admin: %w", err)
		}
	}
	if !o.stdio {
		if so.MCP, err = loopback.Listen(either(o.listen, s.app.loaded.Serve.Listen)); err != nil {
			return so, fmt.Errorf("--listen: %w", err)
		}
	}
	return so, nil
}

// stdioClient is the client on standard input: the owner of the token of the environment, or the user of the operating system.
func (s *service) stdioClient(ctx context.Context) (gateway.Identity, error) {
	if s.ledger == nil || s.w.env(tokenVariable) == "" {
		return gateway.Identity{Name: actor()}, nil
	}
	who, err := caller(ctx, s.w, s.ledger, ledger.ActCall)
	if err != nil {
		return gateway.Identity{}, fmt.Errorf("%s: %w; unset it to serve as %s", tokenVariable, err, actor())
	}
	return gateway.Identity{Name: who.Name, Token: who.TokenID}, nil
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

// closeAll closes listeners that are not served.
func closeAll(all ...net.Listener) error {
	var errs []error
	for _, on := range all {
		if on != nil {
			errs = append(errs, on.Close())
		}
	}
	return errors.Join(errs...)
}
