// Package ratelimit limits how often agents use the gateway, as limits.rate of the configuration
// says.
//
//	l := ratelimit.New(limits, time.Now)
//	refused := l.Request(from, says)                     // before a request is read
//	call, refused := l.Call(from, says, server, tool)    // before the run of a call begins
//	call, err := l.Wait(ctx, server, tool)               // before an approved call is made
//
// Each caller has a token bucket of its own; each server and each tool has one for all callers. A
// bucket is in memory, so each replica of the gateway has its own. No decision of the machine
// depends on a bucket: a call is limited before its run begins.
package ratelimit

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"pgfsm/internal/config"
	"pgfsm/mcp/gateway/session"
	"pgfsm/policy"
)

// MaxCallers bounds the callers that a [Limiter] tracks. Beyond it, the Limiter forgets the callers
// that have no call under way and their whole burst again: a new caller begins with the same. While
// it can forget no caller, it refuses the requests of further callers. So a flood of callers takes
// bounded memory, and gives nobody a second burst.
const MaxCallers = 1 << 16

// forgetEvery is the time between two searches for callers to forget, because each looks at all
// callers.
const forgetEvery = time.Second

// Limits that can refuse a call or a request.
const (
	ByIdentity = "identity"
	ByGroup    = "group"
	ByServer   = "server"
	ByTool     = "tool"
)

// A Limiter limits requests and calls. A nil one limits nothing. It is safe for concurrent use.
type Limiter struct {
	limits    config.Rate
	strictest config.RateLimit // for callers whose groups are unknown
	now       func() time.Time
	seed      maphash.Seed
	servers   map[string]*shared
	tools     map[toolName]*shared

	mu         sync.Mutex // guards all buckets and callers
	callers    map[callerKey]*caller
	nextForget time.Time
}

type toolName struct{ server, tool string }

// A callerKey is a hash of the caller's names, which may be long. The seed is secret, so nobody can
// search for a colliding name.
type callerKey uint64

// A caller tracks the use of one caller.
type caller struct {
	rate  *rate.Limiter
	calls int // calls under way
}

// shared tracks the use of a server or a tool by all callers.
type shared struct {
	limit    config.RateLimit
	by, name string
	rate     *rate.Limiter
	slots    *semaphore.Weighted // one slot for each call under way
}

// New returns a limiter whose buckets are full. It is nil if there are no limits.
func New(limits *config.Rate, now func() time.Time) *Limiter {
	if limits == nil {
		return nil
	}

	l := &Limiter{
		limits:    *limits,
		strictest: limits.Identity,
		now:       now,
		seed:      maphash.MakeSeed(),
		callers:   make(map[callerKey]*caller),
		servers:   make(map[string]*shared),
		tools:     make(map[toolName]*shared),
	}

	for _, g := range limits.Groups {
		s, group := &l.strictest, g.Value
		s.PerMinute, s.Burst, s.AtOnce = min(s.PerMinute, group.PerMinute), min(s.Burst, group.Burst),
			min(s.AtOnce, group.AtOnce)
	}

	for _, s := range limits.Servers {
		l.servers[s.Name] = newShared(s.Value, ByServer, "server "+s.Name)
	}

	for _, s := range limits.Tools {
		for _, t := range s.Value {
			l.tools[toolName{s.Name, t.Name}] = newShared(t.Value, ByTool,
				fmt.Sprintf("tool %s of server %s", t.Name, s.Name))
		}
	}

	return l
}

func newShared(limit config.RateLimit, by, name string) *shared {
	return &shared{
		limit: limit,
		by:    by,
		name:  name,
		rate:  newRate(limit),
		slots: semaphore.NewWeighted(int64(limit.AtOnce)),
	}
}

// newRate returns a full bucket. A bucket with [config.NoLimit] is never empty.
func newRate(limit config.RateLimit) *rate.Limiter {
	return rate.NewLimiter(perSecond(limit), limit.Burst)
}

func perSecond(limit config.RateLimit) rate.Limit { return rate.Limit(limit.PerMinute) / 60 }

// A Refusal tells which limit refuses a request or a call, and for how long.
type Refusal struct {
	By     string        // [ByIdentity], [ByGroup], [ByServer] or [ByTool]
	After  time.Duration // wait until the limit allows it, if nothing else uses the bucket
	reason string
}

// Seconds is After in whole seconds, and at least one.
func (r *Refusal) Seconds() int { return max(1, int(math.Ceil(r.After.Seconds()))) }

func (r *Refusal) String() string { return r.reason }

// limitOf returns a caller's limit, and the limit's name.
func (l *Limiter) limitOf(says *policy.Identity) (limit config.RateLimit, by string) {
	for _, g := range l.limits.Groups {
		if says.InGroup(g.Name) {
			return g.Value, ByGroup
		}
	}
	if says != nil && says.Groups == nil { // groups unknown: the caller could be in any
		return l.strictest, ByIdentity
	}
	return l.limits.Identity, ByIdentity
}

// Request takes a request from its caller's bucket. It returns nil if the request may be read.
func (l *Limiter) Request(from session.Identity, says *policy.Identity) *Refusal {
	if l == nil {
		return nil
	}
	limit, by := l.limitOf(says)
	if limit.PerMinute == config.NoLimit {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	start := l.now()
	c, refused := l.trackedCaller(from, limit, by, start)
	if refused != nil || c.rate.AllowN(start, 1) {
		return refused
	}
	return &Refusal{By: by, After: waitTime(c.rate, 1, start),
		reason: fmt.Sprintf("This caller may send %s a minute.", countOf(limit.PerMinute, "request"))}
}

// trackedCaller returns the tracked use of a caller. The limit may differ between requests, because
// the groups change with the token.
func (l *Limiter) trackedCaller(from session.Identity, limit config.RateLimit, by string,
	now time.Time) (*caller, *Refusal) {
	from.Token = "" // the tokens of one name share a limit
	key := callerKey(maphash.Comparable(l.seed, from))
	if c := l.callers[key]; c != nil {
		c.rate.SetLimitAt(now, perSecond(limit))
		c.rate.SetBurstAt(now, limit.Burst)
		return c, nil
	}

	if len(l.callers) >= MaxCallers && !now.Before(l.nextForget) {
		l.nextForget = now.Add(forgetEvery)
		maps.DeleteFunc(l.callers, func(_ callerKey, c *caller) bool {
			return c.calls == 0 && c.rate.TokensAt(now) >= float64(c.rate.Burst())
		})
	}
	if len(l.callers) >= MaxCallers {
		return nil, &Refusal{By: by, After: l.nextForget.Sub(now), reason: "The gateway has too many callers."}
	}
	c := &caller{rate: newRate(limit)}
	l.callers[key] = c
	return c, nil
}

// waitTime returns the time until a bucket has the given number of tokens.
func waitTime(r *rate.Limiter, tokens int, now time.Time) time.Duration {
	missing := float64(tokens) - r.TokensAt(now)
	return time.Duration(missing / float64(r.Limit()) * float64(time.Second))
}

// countOf returns a number with its noun, in the plural unless the number is one.
func countOf(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// A Call is a call that may be made. One goroutine owns it. A nil Call is not limited.
type Call struct {
	limiter *Limiter
	caller  *caller
	shared  []*shared // the tool's and the server's, if they are limited
}

// Call takes a call from the buckets of its server and its tool, and counts it as under way until
// [Call.End].
func (l *Limiter) Call(from session.Identity, says *policy.Identity, server, tool string) (*Call, *Refusal) {
	if l == nil {
		return nil, nil
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	start := l.now()
	c := l.newCall(server, tool)
	if limit, by := l.limitOf(says); limit.AtOnce != config.NoLimit {
		who, refused := l.trackedCaller(from, limit, by, start)
		if refused == nil && who.calls >= limit.AtOnce {
			refused = &Refusal{By: by, reason: fmt.Sprintf("This caller may have %s under way.",
				countOf(limit.AtOnce, "call"))}
		}
		if refused != nil {
			return nil, refused
		}
		c.caller = who
	}

	if refused := c.takeSlots(); refused != nil {
		return nil, refused
	}
	if refused := c.takeTokens(start); refused != nil {
		c.releaseSlots()
		return nil, refused
	}

	if c.caller != nil {
		c.caller.calls++
	}

	return c, nil
}

func (l *Limiter) newCall(server, tool string) *Call {
	c := &Call{limiter: l}
	for _, s := range []*shared{l.tools[toolName{server, tool}], l.servers[server]} {
		if s != nil {
			c.shared = append(c.shared, s)
		}
	}
	return c
}

// takeSlots counts the call as under way at its tool and its server, or at neither.
func (c *Call) takeSlots() *Refusal {
	for i, s := range c.shared {
		if s.slots.TryAcquire(1) {
			continue
		}
		c.shared = c.shared[:i]
		c.releaseSlots()
		return &Refusal{By: s.by, reason: fmt.Sprintf("The %s may have %s under way.", s.name,
			countOf(s.limit.AtOnce, "call"))}
	}
	return nil
}

// takeTokens takes a token of the tool and one of the server, or neither.
func (c *Call) takeTokens(now time.Time) (refused *Refusal) {
	for _, s := range c.shared {
		if s.rate.TokensAt(now) >= 1 {
			continue
		}
		if after := waitTime(s.rate, 1, now); refused == nil || after > refused.After {
			refused = &Refusal{By: s.by, After: after,
				reason: fmt.Sprintf("The %s may have %s a minute.", s.name, countOf(s.limit.PerMinute, "call"))}
		}
	}
	if refused != nil {
		return refused
	}
	for _, s := range c.shared {
		s.rate.AllowN(now, 1)
	}
	return nil
}

// Wait waits for free slots at the server and the tool of an approved call, and takes them.
// [Limiter.Call] took the call's tokens when the agent requested it.
func (l *Limiter) Wait(ctx context.Context, server, tool string) (*Call, error) {
	if l == nil {
		return nil, nil
	}
	c := l.newCall(server, tool)
	for i, s := range c.shared { // always the tool first: two waiting calls cannot block each other
		if err := s.slots.Acquire(ctx, 1); err != nil {
			c.shared = c.shared[:i]
			c.releaseSlots()
			return nil, err
		}
	}
	return c, nil
}

// Return gives back what [Limiter.Call] took from the buckets of the server and the tool. It is for
// calls that a gate blocked: a caller that may not use a tool cannot use it up for others.
func (c *Call) Return() {
	if c == nil {
		return
	}
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	for _, s := range c.shared {
		s.rate.AllowN(c.limiter.now(), -1) // rate caps the bucket at its burst
	}
}

// End ends a call. It may be called more than once.
func (c *Call) End() {
	if c == nil {
		return
	}
	if c.caller != nil {
		c.limiter.mu.Lock()
		c.caller.calls--
		c.limiter.mu.Unlock()
		c.caller = nil
	}
	c.releaseSlots()
	c.shared = nil
}

func (c *Call) releaseSlots() {
	for _, s := range c.shared {
		s.slots.Release(1)
	}
}
