package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"pgfsm/internal/identity/connect"
	"pgfsm/internal/visible"
	"pgfsm/mcp/upstream"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
)

const (
	// refreshBefore is how long before its end an access token is replaced.
	refreshBefore = time.Minute
	// useBefore is how long before its end a request uses an access token that another gateway is replacing.
	useBefore = 10 * time.Second
)

var errExpired = errors.New("the access token has expired, and the last refresh failed; try again in some seconds")

// personTokens are the tokens of a connection as one link uses them. The ledger has the newest. A link outlives reloads,
// so each refresh uses the keys and the client that are configured then.
type personTokens struct {
	runner *Runner

	mu      sync.Mutex
	row     ledger.Connection
	tokens  connect.Tokens
	refused int64 // the generation whose token the server refused; 0: none
}

// adopt takes over a row and its credentials, unless it is older.
func (t *personTokens) adopt(row ledger.Connection, credentials []byte) error {
	tokens, err := connect.Decode(credentials)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if row.Generation >= t.row.Generation {
		t.row, t.tokens = row, tokens
	}
	return nil
}

// current returns the tokens and their row, and whether the server has refused them.
func (t *personTokens) current() (row ledger.Connection, tokens connect.Tokens, refused bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.row, t.tokens, t.refused == t.row.Generation
}

// access returns the access token for the next request. The error is [ledger.ErrUnconnected] if the person has to
// connect again.
func (t *personTokens) access(ctx context.Context) (string, error) {
	row, tokens, refused := t.current()
	if !refused && !tokens.ExpireWithin(refreshBefore) {
		return tokens.Access, nil
	}
	if tokens.Refresh == "" {
		if !tokens.ExpireWithin(0) {
			return tokens.Access, nil
		}
		lost, err := t.runner.options.Ledger.LoseConnection(context.WithoutCancel(ctx), row.Person, row.Server, row.ID)
		if lost {
			t.runner.noteLost(row.Server, errors.New("the access token has expired, and the issuer gave no refresh token"))
		}
		return "", cmp.Or(err, ledger.ErrUnconnected)
	}

	// The refresh ends in the ledger even if nobody waits for it any more.
	done, wait := make(chan error, 1), refused || tokens.ExpireWithin(useBefore)
	t.runner.accounts.Go(func() { done <- t.refresh(context.WithoutCancel(ctx), row, wait) })
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if errors.Is(err, ledger.ErrUnconnected) {
		return "", err
	}
	if _, tokens, _ = t.current(); tokens.ExpireWithin(0) {
		return "", cmp.Or(err, errExpired)
	}
	return tokens.Access, nil // if the refresh failed, the old one may be good for some more seconds
}

// refresh gets newer tokens than those of a row, from the ledger or else from the authorization server.
func (t *personTokens) refresh(ctx context.Context, row ledger.Connection, wait bool) error {
	r, accounts := t.runner, t.runner.Configured().Connections
	server := accounts.Find(row.Server)
	if server == nil || !server.Fits(&row) {
		return ledger.ErrUnconnected
	}
	newer, credentials, err := r.options.Ledger.RefreshConnection(ctx, accounts.Keys, row, wait, func(old []byte) ([]byte, error) {
		tokens, err := connect.Decode(old)
		if err != nil {
			return nil, err
		}
		if tokens, err = server.OAuth.Refresh(ctx, tokens, row.Scopes); errors.Is(err, connect.ErrGrant) {
			return nil, fmt.Errorf("%w: %w", ledger.ErrCredentialsLost, err)
		} else if err != nil {
			return nil, err
		}
		r.metrics.Connection("refreshed")
		return tokens.Encode()
	})
	switch {
	case errors.Is(err, ledger.ErrUnconnected), errors.Is(err, ledger.ErrRefreshing):
		return err
	case errors.Is(err, ledger.ErrCredentialsLost):
		r.noteLost(row.Server, err)
		return ledger.ErrUnconnected
	case err != nil:
		r.log.Warn("the access token of a connection was not refreshed", "server", row.Server, "error", visible.Error(err))
		return err
	}
	return t.adopt(newer, credentials)
}

// noteRefused notes that the server refused a token, so that the next request uses another. It returns false if there
// is no way to get another.
func (t *personTokens) noteRefused(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tokens.Access == token {
		t.refused = t.row.Generation
	}
	return t.tokens.Refresh != ""
}

// oauthAccount returns the account of a connection with the tokens of an authorization server, refreshed if necessary.
func (r *ConfiguredRunner) oauthAccount(ctx context.Context, s *api.ConnectableServer, c *ledger.Connection, credentials string) (*upstream.Account, error) {
	tokens := &personTokens{runner: r.runner}
	if err := tokens.adopt(*c, []byte(credentials)); err != nil {
		return nil, err
	}
	// Other errors may pass, and are those of the requests that follow.
	if _, err := tokens.access(ctx); errors.Is(err, ledger.ErrUnconnected) {
		return nil, err
	}
	a := newAccount(c)
	a.Token = func(ctx context.Context) (string, error) {
		token, err := tokens.access(ctx)
		if errors.Is(err, ledger.ErrUnconnected) {
			err = r.needsAccount(s.Name)
		}
		return token, err
	}
	a.Refused = func(token string) {
		if !tokens.noteRefused(token) {
			r.runner.noteRefused(c, nil)
		}
	}
	a.Asked = func(scope string) {
		asked := slices.DeleteFunc(strings.Fields(scope), func(one string) bool {
			return !slices.Contains(s.OAuth.Scopes, one) || slices.Contains(c.Scopes, one)
		})
		if len(asked) > 0 {
			r.runner.noteRefused(c, asked)
		}
	}
	return a, nil
}
