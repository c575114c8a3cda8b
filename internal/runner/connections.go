package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pgfsm/internal/visible"
	"pgfsm/mcp/gateway"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

// account implements Account of [gateway.Config]. A person uses only their own account.
func (r *ConfiguredRunner) account(ctx context.Context, client gateway.Identity, server string) (*upstream.Account, error) {
	s := r.Connections.Find(server)
	switch {
	case s != nil && s.Machines && client.Principal == "":
		return nil, nil
	case s == nil || client.Principal == "":
		return nil, r.needsAccount(server)
	}
	a, err := r.connectedAccount(ctx, client.Principal, s)
	if errors.Is(err, ledger.ErrSealed) {
		r.runner.log.Error("a connection cannot be used", "server", server, "error", visible.Error(err))
	}
	if errors.Is(err, ledger.ErrUnconnected) || errors.Is(err, ledger.ErrSealed) {
		return nil, r.needsAccount(server)
	}
	return a, err
}

// needsAccount returns the error of a client whose person has no account. It is the same for everybody: a person who
// gets the address from somebody else connects an account of their own.
func (r *ConfiguredRunner) needsAccount(server string) error {
	return &upstream.LinkError{Code: upstream.CodeCredentialsNeeded,
		Reason: fmt.Sprintf("Each person uses the server %s with an account of their own. Open %s, sign in and connect yours.", server, r.ConnectURL)}
}

// connectedAccount returns the account that a person has connected.
func (r *ConfiguredRunner) connectedAccount(ctx context.Context, person string, s *api.ConnectableServer) (*upstream.Account, error) {
	want := s.ExpectedConnection()
	want.Person = person
	c, credentials, err := r.runner.options.Ledger.FindConnection(ctx, r.Connections.Keys, want)
	if err != nil {
		return nil, err
	}
	if s.OAuth != nil {
		return r.oauthAccount(ctx, s, &c, credentials)
	}
	a := newAccount(&c)
	a.Header, a.Secret = upstream.Header{Name: s.Header, Value: s.Prefix + credentials}, credentials
	a.Refused = func(string) { r.runner.noteRefused(&c, nil) }
	return a, nil
}

// newAccount returns the account of a connection, without its credentials.
func newAccount(c *ledger.Connection) *upstream.Account {
	return &upstream.Account{ID: c.ID, Issuer: c.Issuer, Label: c.Account, Scopes: c.Scopes}
}

// recordedAccount returns an account as requests record it.
func recordedAccount(a *upstream.Account) *states.Account {
	if a == nil {
		return nil
	}
	return &states.Account{Connection: a.ID, Issuer: a.Issuer, Label: a.Label, Scopes: a.Scopes}
}

// heldAccount returns the account that a held call was requested with. The error is [ledger.ErrUnconnected] if it has
// ended. After any other error, another process may be able to make the call.
func (r *ConfiguredRunner) heldAccount(ctx context.Context, q states.Request, server string) (*upstream.Account, error) {
	s := r.Connections.Find(server)
	if s == nil {
		return nil, fmt.Errorf("this process has no connections of people to %s", server)
	}
	a, err := r.connectedAccount(ctx, q.Principal(), s)
	if err == nil && a.ID != q.Account.Connection {
		return nil, ledger.ErrUnconnected
	}
	return a, err
}

// noteRefused notes that a server refused the credentials of a connection, or asked for scopes that the person can grant.
func (r *Runner) noteRefused(c *ledger.Connection, asked []string) {
	r.accounts.Go(func() {
		if err := r.options.Ledger.NoteRefused(context.Background(), c.Person, c.Server, c.ID, asked); err != nil {
			r.log.Error("the refusal of a connection is not noted", "server", c.Server, "error", visible.Error(err))
		}
	})
}

// noteLost tells the operator and the links that a connection is lost.
func (r *Runner) noteLost(server string, why error) {
	r.metrics.Connection("lost")
	r.log.Warn("a connection is lost", "server", server, "error", visible.Error(why))
	r.wakeConnections()
}

// answerUnconnected answers a call of a client whose person has no account at the server, and a call of
// [gateway.ConnectTool]. A repetition of a held call is answered by that call.
func (r *ConfiguredRunner) answerUnconnected(ctx context.Context, call *gateway.ToolCall, request *states.Request,
	plan *policy.Plan) gateway.Answer {
	switch run, err := r.findHeld(ctx, call, request, plan); {
	case err == nil:
		return r.answerRepeated(ctx, call, run)
	case !errors.Is(err, ledger.ErrNotFound):
		return r.refuseUnrecorded(ctx, call, "", err)
	case call.Unconnected == nil:
		return gateway.Answer{Error: wire.ErrorObject(wire.InvalidParams, "Unknown tool: you have connected an account at "+call.Server+
			"; list its tools again. If the server refuses the account, connect it again at "+r.ConnectURL, nil)}
	case !upstream.NeedsAccount(call.Unconnected):
		return r.refuseUnrecorded(ctx, call, "", call.Unconnected)
	}
	if err := r.runner.options.Ledger.RecordUnconnected(ctx, callerOf(call.From), call.Server); err != nil {
		return r.refuseUnrecorded(ctx, call, "", err)
	}

	o := states.Outcome{
		Code:   policy.CodeCredentialsNeeded,
		Effect: states.NotSent,
		Gate:   policy.GateRun,
		Reason: call.Unconnected.(*upstream.LinkError).Reason,
		Type:   states.TypeBlocked,
	}
	r.runner.logCall(ctx, call, "", o)
	if call.Elicit && !call.Shown {
		call.ShowURL(r.ConnectURL, o.Reason, "connect."+call.Server)
	}
	answer := r.answerRefused(gateway.Decision{
		Code:   string(o.Code),
		Effect: string(o.Effect),
		Reason: o.Reason + " Then send the call again.",
		Retry:  retryOf(o),
	}, false)
	answer.Judged = spanJudgement("", o)
	return answer
}

// connectable returns the servers at which people connect accounts; nil if there are none.
func (s *Service) connectable() *api.Connectable {
	c := s.runner.Configured().Connections
	if c == nil || len(c.Servers) == 0 {
		return nil
	}
	return c
}

// noteConnection follows a change of a connection at the console.
func (s *Service) noteConnection(change string) {
	s.runner.metrics.Connection(change)
	s.runner.wakeConnections()
}

// revokeEnded asks authorization servers to revoke the tokens of connections that this process has ended.
func (s *Service) revokeEnded(ended []ledger.Connection) {
	s.runner.accounts.Go(func() {
		if err := s.connectable().Revoke(context.Background(), s.runner.options.Ledger, ended); err != nil {
			s.runner.reportf("the tokens of a connection that ended were not revoked: %s", visible.Error(err))
		}
	})
}

// wakeConnections makes this process follow changes of connections now.
func (r *Runner) wakeConnections() {
	select {
	case r.connected <- struct{}{}:
	default: // a wake-up is pending already
	}
}

// followConnections closes links whose connections have ended, at whatever replica, and tells clients, until ctx is done.
func (s *Service) followConnections(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	seen := int64(-1)
	var idleChecked time.Time
	s.runner.wakeConnections() // finds the last entry
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.runner.connected:
		}
		c := s.runner.Configured().Connections
		if c == nil {
			continue
		}
		if time.Since(idleChecked) >= idleInterval {
			idleChecked = time.Now()
			if err := s.runner.options.Ledger.EndIdleConnections(ctx, c.Idle); err != nil {
				s.runner.reportf("unused connections are not ended: %s", visible.Error(err))
			}
		}
		if last, err := s.applyConnections(ctx, seen); err == nil {
			seen = last
		}
	}
}

// warnUnusable returns a warning if some connections cannot be used with a configuration.
func (r *Runner) warnUnusable(ctx context.Context, all *api.Connectable) (warnings []string) {
	if r.options.Ledger == nil {
		return nil
	}
	n := 0
	err := r.options.Ledger.View(ctx, func(reader ledger.Reader) error {
		n = 0
		for row, err := range reader.Connections() {
			if err != nil {
				return err
			}
			if row.Usable() && all.Unusable(reader, &row) != "" {
				n++
			}
		}
		return nil
	})
	switch {
	case err != nil:
		return []string{"the connections of people cannot be read: " + visible.Error(err)}
	case n > 0:
		return []string{fmt.Sprintf("%d connections of people cannot be used with this configuration; pgfsm connections list says why", n)}
	}
	return nil
}

// idleInterval is how often a replica looks for connections that nobody has used for too long.
const idleInterval = time.Hour

// applyConnections applies the changes of connections after an entry, and returns the last entry that it has read.
func (s *Service) applyConnections(ctx context.Context, seen int64) (last int64, err error) {
	var changed ledger.ConnectionChanges
	err = s.runner.options.Ledger.View(ctx, func(r ledger.Reader) (err error) {
		changed, err = ledger.ReadConnectionChanges(r, seen)
		return err
	})
	if err == nil && changed.Last != seen {
		s.endAccounts(func(id string) bool { return changed.Usable[id] }, func(principal string) bool { return changed.People[principal] })
	}
	return changed.Last, err
}

// endAccounts ends the links with accounts for which live returns false. It tells the clients of the people for whom concerns
// returns true that their lists may have changed.
func (s *Service) endAccounts(live, concerns func(string) bool) {
	if s.gateway != nil {
		s.gateway.AccountsChanged(live, concerns)
	}
	if u := s.runner.Configured().Upstreams; u != nil {
		u.EndAccounts(live)
	}
}
