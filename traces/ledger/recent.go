package ledger

import (
	"context"
	"maps"
	"sync"
	"time"

	"pgfsm/internal/canonical"
)

// recentTime is how long [Ledger.AuthenticateCall] answers without the store.
const recentTime = time.Second

// maxRecent bounds the tokens that are remembered. If there are more, all are looked up again.
const maxRecent = 4 << 10

// recentTokens holds callers whose tokens were looked up less than recentTime ago, by the digests of
// their tokens.
type recentTokens struct {
	mu      sync.Mutex
	callers map[canonical.Digest]recentCaller
}

type recentCaller struct {
	caller Caller
	at     time.Time // when the lookup began
}

// AuthenticateCall is [Ledger.Authenticate] for a tools/call, whose first commit checks the token once
// more ([Ledger.BeginCall]). So it may answer from memory. It must not be used for anything else: a
// request that makes no commit, such as tools/list, would be answered for a revoked token. What a call
// shows before its first commit, for example that there is no such tool, is shown to a token that
// another process has revoked for at most recentTime.
func (l *Ledger) AuthenticateCall(ctx context.Context, presented string) (Caller, error) {
	digest, now := canonical.Sum(kindToken, []byte(presented)), time.Now()
	if c, ok := l.recent.find(digest, now); ok {
		return c, nil
	}
	c, err := l.Authenticate(ctx, presented)
	if err == nil {
		l.recent.add(digest, recentCaller{c, now})
	}
	return c, err
}

func (t *recentTokens) find(digest canonical.Digest, now time.Time) (Caller, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	recent, ok := t.callers[digest]
	return recent.caller, ok && now.Sub(recent.at) < recentTime
}

func (t *recentTokens) add(digest canonical.Digest, recent recentCaller) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.callers == nil || len(t.callers) >= maxRecent {
		t.callers = make(map[canonical.Digest]recentCaller)
	}
	t.callers[digest] = recent
}

// forget makes the next request with a token look the token up.
func (t *recentTokens) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.callers, func(_ canonical.Digest, r recentCaller) bool { return r.caller.TokenID == id })
}

// CheckRequester returns [ErrToken] if a requester has no valid token for an action any more. It is for
// answers to calls that make no commit.
func (l *Ledger) CheckRequester(ctx context.Context, requester Caller, a Action) error {
	if requester.TokenID == "" {
		return nil
	}
	return l.View(ctx, func(r Reader) error {
		now, err := l.readTime(r)
		if err != nil {
			return err
		}
		return requester.recheckAction(r, now, a)
	})
}
