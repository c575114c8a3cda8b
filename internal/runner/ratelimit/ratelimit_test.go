package ratelimit_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/internal/config"
	"pgfsm/internal/runner/ratelimit"
	"pgfsm/mcp/gateway/session"
	"pgfsm/policy"
)

// A clock stands still until it is moved.
type clock struct{ moved atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(0, c.moved.Load()) }

func (c *clock) move(d time.Duration) { c.moved.Add(int64(d)) }

func none() config.RateLimit {
	return config.RateLimit{PerMinute: config.NoLimit, Burst: config.NoLimit, AtOnce: config.NoLimit}
}

func perMinute(n, burst int) config.RateLimit {
	return config.RateLimit{PerMinute: n, Burst: burst, AtOnce: config.NoLimit}
}

func atOnce(n int) config.RateLimit {
	return config.RateLimit{PerMinute: config.NoLimit, Burst: config.NoLimit, AtOnce: n}
}

func named(name string) session.Identity { return session.Identity{Name: name} }

// requests sends so many requests and counts those that pass.
func requests(l *ratelimit.Limiter, from session.Identity, says *policy.Identity, n int) (passed int) {
	for range n {
		if l.Request(from, says) == nil {
			passed++
		}
	}
	return passed
}

// calls makes so many calls, each ended before the next, and counts those that pass.
func calls(l *ratelimit.Limiter, from, server, tool string, n int) (passed int) {
	for range n {
		if c, refused := l.Call(named(from), nil, server, tool); refused == nil {
			passed++
			c.End()
		}
	}
	return passed
}

// TestNoLimits: without limits everything passes.
func TestNoLimits(t *testing.T) {
	l := ratelimit.New(nil, nil)
	if n := requests(l, named("ann"), nil, 1000) + calls(l, "ann", "crm", "read", 1000); n != 2000 {
		t.Errorf("%d of 2000 passed", n)
	}
	c, err := l.Wait(t.Context(), "crm", "read")
	c.Return()
	c.End()
	if err != nil {
		t.Error(err)
	}
}

// TestTheZeroLimitAllowsNothing: zero never means unlimited.
func TestTheZeroLimitAllowsNothing(t *testing.T) {
	l := ratelimit.New(&config.Rate{}, new(clock).now)
	if n := requests(l, named("ann"), nil, 10) + calls(l, "ann", "crm", "read", 10); n != 0 {
		t.Errorf("%d passed", n)
	}
}

// TestManyCallers: of 10,000 requests at once of 100 callers, each caller's burst passes.
func TestManyCallers(t *testing.T) {
	const callers, burst = 100, 20
	l := ratelimit.New(&config.Rate{Identity: perMinute(120, burst)}, new(clock).now)
	passed := make([]atomic.Int64, callers)
	var all sync.WaitGroup
	for i := range callers {
		for range 10 {
			all.Go(func() { passed[i].Add(int64(requests(l, named(fmt.Sprint(i)), nil, 10))) })
		}
	}
	all.Wait()
	for i := range passed {
		if n := passed[i].Load(); n != burst {
			t.Errorf("caller %d: %d requests passed at once, want %d", i, n, burst)
		}
	}
}

// TestTime: a refusal says when the next request passes, and then it does.
func TestTime(t *testing.T) {
	var now clock
	l := ratelimit.New(&config.Rate{Identity: perMinute(5, 1)}, now.now)
	if l.Request(named("ann"), nil) != nil {
		t.Fatal("the first request is refused")
	}
	refused := l.Request(named("ann"), nil)
	if refused == nil || refused.By != ratelimit.ByIdentity || refused.Seconds() != 12 || refused.String() != "This caller may send 5 requests a minute." {
		t.Fatalf("the second request: %+v", refused)
	}
	now.move(refused.After - time.Millisecond)
	if again := l.Request(named("ann"), nil); again == nil || again.Seconds() != 1 {
		t.Errorf("a millisecond before: %+v", again)
	}
	now.move(time.Millisecond)
	if again := l.Request(named("ann"), nil); again != nil {
		t.Errorf("when it should pass: %+v", again)
	}
}

// TestWhoIsACaller: what shares a limit.
func TestWhoIsACaller(t *testing.T) {
	ann := session.Identity{Name: "https://login.example.com#ann", Token: "t1", Client: "c", OnBehalfOf: "https://login.example.com#bob"}
	change := func(f func(*session.Identity)) session.Identity {
		other := ann
		f(&other)
		return other
	}
	for _, tt := range []struct {
		name  string
		other session.Identity
		same  bool
	}{
		{"another-token", change(func(i *session.Identity) { i.Token = "t2" }), true},
		{"another-name", change(func(i *session.Identity) { i.Name += "a" }), false},
		{"another-client", change(func(i *session.Identity) { i.Client = "d" }), false},
		{"for-another-person", change(func(i *session.Identity) { i.OnBehalfOf += "b" }), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := ratelimit.New(&config.Rate{Identity: perMinute(1, 1)}, new(clock).now)
			l.Request(ann, nil)
			if refused := l.Request(tt.other, nil); (refused != nil) != tt.same {
				t.Errorf("refused: %v", refused)
			}
		})
	}
}

// tools limits the tool of one name of several servers.
func tools(name string, servers map[string]config.RateLimit) (all config.Table[config.Table[config.RateLimit]]) {
	for server, limit := range servers {
		all = append(all, config.Entry[config.Table[config.RateLimit]]{Name: server, Value: config.Table[config.RateLimit]{{Name: name, Value: limit}}})
	}
	return all
}

// TestGroups: which limit a caller has.
func TestGroups(t *testing.T) {
	in := func(groups ...string) *policy.Identity { return &policy.Identity{Groups: &groups} }
	all := config.Rate{
		Identity: perMinute(60, 10), Groups: config.Table[config.RateLimit]{
			{Name: "oncall", Value: perMinute(600, 50)}, {Name: "interns", Value: perMinute(6, 2)}, {Name: "batch", Value: atOnce(1)},
		},
	}
	for _, tt := range []struct {
		name   string
		says   *policy.Identity
		limits config.Rate
		want   int // of 100 requests
		by     string
	}{
		{"no-identity-provider", nil, all, 10, ratelimit.ByIdentity},
		{"no-group", in(), all, 10, ratelimit.ByIdentity},
		{"the-first-counts", in("interns", "oncall"), all, 50, ratelimit.ByGroup},
		{"a-group-without-this-limit", in("batch"), all, 100, ""},
		{"unknown-groups", &policy.Identity{}, all, 2, ratelimit.ByIdentity},
		{"unknown-groups-without-an-identity's-limit", &policy.Identity{}, config.Rate{Identity: none(), Groups: all.Groups}, 2, ratelimit.ByIdentity},
		{"no-group-without-an-identity's-limit", in(), config.Rate{Identity: none(), Groups: all.Groups}, 100, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := ratelimit.New(&tt.limits, new(clock).now)
			if n := requests(l, named("ann"), tt.says, 100); n != tt.want {
				t.Errorf("%d requests passed, want %d", n, tt.want)
			}
			if refused := l.Request(named("ann"), tt.says); refused != nil && refused.By != tt.by || refused == nil && tt.by != "" {
				t.Errorf("refused: %+v, want by %q", refused, tt.by)
			}
			if n := requests(l, named("bob"), tt.says, 100); n != tt.want {
				t.Errorf("%d requests of another caller passed, want %d", n, tt.want)
			}
		})
	}
}

// TestTokensOfACallerShareItsUse: a caller whose tokens name other groups, or none, has one bucket, and one number of calls under way.
func TestTokensOfACallerShareItsUse(t *testing.T) {
	limit := perMinute(60, 10)
	limit.AtOnce = 1
	l := ratelimit.New(&config.Rate{Identity: limit, Groups: config.Table[config.RateLimit]{{Name: "oncall", Value: limit}}}, new(clock).now)
	tokens := []*policy.Identity{{Groups: &[]string{"oncall"}}, {Groups: &[]string{}}, {}}
	passed := 0
	for _, says := range tokens {
		passed += requests(l, named("ann"), says, 10)
	}
	if passed != 10 {
		t.Errorf("%d requests of one caller passed, want 10", passed)
	}
	under := 0
	for _, says := range tokens {
		if _, refused := l.Call(named("ann"), says, "s", "t"); refused == nil {
			under++
		}
	}
	if under != 1 {
		t.Errorf("%d calls of one caller are under way, want 1", under)
	}
}

// TestCalls: the limits of a server and of a tool are shared by all callers, and a call that one of them refuses takes nothing from the
// other.
func TestCalls(t *testing.T) {
	var now clock
	l := ratelimit.New(&config.Rate{
		Identity: none(),
		Servers:  config.Table[config.RateLimit]{{Name: "crm", Value: perMinute(60, 6)}},
		Tools:    tools("delete", map[string]config.RateLimit{"crm": perMinute(5, 2), "docs": perMinute(5, 1)}),
	}, now.now)
	for _, tt := range []struct {
		name, from, server, tool string
		want                     int // of 10 calls
		says                     string
	}{
		{"tool", "ann", "crm", "delete", 2, "The tool delete of server crm may have 5 calls a minute."},
		{"tool-of-another-caller", "bob", "crm", "delete", 0, "The tool delete of server crm may have 5 calls a minute."},
		{"the-server's-rest", "bob", "crm", "read", 4, "The server crm may have 60 calls a minute."},
		{"tool-of-the-same-name", "ann", "docs", "delete", 1, "The tool delete of server docs may have 5 calls a minute."},
		{"no-limit", "ann", "docs", "read", 10, ""},
	} {
		if n := calls(l, tt.from, tt.server, tt.tool, 10); n != tt.want {
			t.Errorf("%s: %d calls passed, want %d", tt.name, n, tt.want)
		}
		if c, refused := l.Call(named(tt.from), nil, tt.server, tt.tool); refused != nil && refused.String() != tt.says || refused == nil && tt.says != "" {
			t.Errorf("%s: refused: %v, want %q", tt.name, refused, tt.says)
		} else {
			c.End()
		}
	}
	if _, refused := l.Call(named("ann"), nil, "crm", "delete"); refused.By != ratelimit.ByTool || refused.Seconds() != 12 {
		t.Errorf("both are used up: %+v, want the one that takes longer", refused)
	}
}

// TestReturn: a call that no gate let through leaves its place to others, but a bucket never has more than its burst.
func TestReturn(t *testing.T) {
	var now clock
	l := ratelimit.New(&config.Rate{Identity: none(), Servers: config.Table[config.RateLimit]{{Name: "crm", Value: perMinute(60, 3)}}}, now.now)
	denied := func(n int) (passed int) {
		for range n {
			if c, refused := l.Call(named("eve"), nil, "crm", "delete"); refused == nil {
				passed++
				c.Return()
				c.End()
			}
		}
		return passed
	}
	if n := denied(100); n != 100 {
		t.Errorf("%d of 100 calls that no gate lets through passed", n)
	}
	if n := calls(l, "ann", "crm", "read", 100); n != 3 {
		t.Errorf("then %d calls passed, want the burst of 3", n)
	}
	now.move(2 * time.Second)
	if n := denied(2); n != 2 {
		t.Errorf("%d of 2 calls passed", n)
	}
	now.move(time.Hour)
	if n := calls(l, "ann", "crm", "read", 100); n != 3 {
		t.Errorf("after an hour %d calls passed, want the burst of 3", n)
	}
}

// TestAtOnce: how many calls may be under way.
func TestAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits config.Rate
		other  bool // another caller is limited, too
		says   string
	}{
		{"identity", config.Rate{Identity: atOnce(2)}, false, "This caller may have 2 calls under way."},
		{"server", config.Rate{Identity: none(), Servers: config.Table[config.RateLimit]{{Name: "crm", Value: atOnce(2)}}}, true,
			"The server crm may have 2 calls under way."},
		{"tool", config.Rate{Identity: none(), Tools: tools("read", map[string]config.RateLimit{"crm": atOnce(2)})}, true,
			"The tool read of server crm may have 2 calls under way."},
		{"server-below-its-tool", config.Rate{
			Identity: none(), Servers: config.Table[config.RateLimit]{{Name: "crm", Value: atOnce(2)}},
			Tools: tools("read", map[string]config.RateLimit{"crm": atOnce(5)}),
		}, true, "The server crm may have 2 calls under way."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := ratelimit.New(&tt.limits, new(clock).now)
			call := func(from string) (*ratelimit.Call, *ratelimit.Refusal) {
				return l.Call(named(from), nil, "crm", "read")
			}
			first, refused := call("ann")
			if refused != nil {
				t.Fatal(refused)
			}
			second, _ := call("ann")
			for range 10 { // a refused call takes nothing
				if _, refused = call("ann"); refused == nil || refused.String() != tt.says || refused.Seconds() != 1 {
					t.Fatalf("the third call: %+v, want %q in 1 s", refused, tt.says)
				}
			}
			if c, refused := call("bob"); (refused != nil) != tt.other {
				t.Errorf("another caller's: %v", refused)
			} else {
				c.End()
			}
			second.End()
			second.End() // counts once
			third, refused := call("ann")
			if refused != nil {
				t.Errorf("after the end of one: %v", refused)
			}
			if _, refused = call("ann"); refused == nil {
				t.Error("one ended, and two began")
			}
			first.End()
			third.End()
		})
	}
}

// TestARefusedCallIsNotUnderWay: whatever limit refuses a call, the call takes nothing from the others.
func TestARefusedCallIsNotUnderWay(t *testing.T) {
	var now clock
	limit := config.RateLimit{PerMinute: 1, Burst: 1, AtOnce: 1}
	l := ratelimit.New(&config.Rate{
		Identity: atOnce(1), Servers: config.Table[config.RateLimit]{{Name: "crm", Value: limit}},
		Tools: tools("read", map[string]config.RateLimit{"crm": limit}),
	}, now.now)
	for minute := range 3 {
		if n := calls(l, "ann", "crm", "read", 10); n != 1 {
			t.Errorf("minute %d: %d calls passed, want 1", minute, n)
		}
		now.move(time.Minute)
	}
}

// TestWait: a held call waits for its turn, before calls that come later. It takes nothing from buckets.
func TestWait(t *testing.T) {
	limit := perMinute(60, 1)
	limit.AtOnce = 1
	l := ratelimit.New(&config.Rate{
		Identity: none(), Servers: config.Table[config.RateLimit]{{Name: "crm", Value: limit}},
		Tools: tools("delete", map[string]config.RateLimit{"crm": atOnce(1)}),
	}, new(clock).now)
	first, refused := l.Call(named("ann"), nil, "crm", "read")
	if refused != nil {
		t.Fatal(refused)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan error)
	go func() {
		_, err := l.Wait(ctx, "crm", "delete")
		cancelled <- err
	}()
	cancel()
	if err := <-cancelled; err == nil {
		t.Error("a cancelled call does not wait")
	}
	waited := make(chan *ratelimit.Call)
	go func() {
		c, err := l.Wait(t.Context(), "crm", "delete")
		if err != nil {
			t.Error(err)
		}
		waited <- c
	}()
	select {
	case <-waited:
		t.Fatal("two calls are under way")
	default:
	}
	first.End()
	held := <-waited
	if _, refused := l.Call(named("ann"), nil, "crm", "read"); refused == nil || refused.After != 0 {
		t.Errorf("a call beside the held one: %+v", refused)
	}
	held.End()
	next, err := l.Wait(t.Context(), "crm", "delete")
	if err != nil {
		t.Error(err)
	}
	next.End()
}

// TestFlood: a flood of new callers takes a bounded memory, and gives no caller a second burst. A caller with a call under way is not
// forgotten.
func TestFlood(t *testing.T) {
	var now clock
	before := heap()
	limit := perMinute(60, 2)
	limit.AtOnce = 1
	l := ratelimit.New(&config.Rate{Identity: limit}, now.now)
	eve, ann := named("eve"), named("ann")
	slow, refused := l.Call(named("slow"), nil, "crm", "read")
	if refused != nil {
		t.Fatal(refused)
	}
	if n := requests(l, eve, nil, 10); n != 2 {
		t.Fatalf("%d requests passed", n)
	}
	l.Request(ann, nil)
	flood := func(from, n int) (passed int) {
		for i := range n {
			if l.Request(named(fmt.Sprintf("https://login.example.com#%064d", from+i)), nil) == nil {
				passed++
			}
		}
		return passed
	}
	passed := flood(0, 100_000)
	if l.Callers() > ratelimit.MaxCallers || passed != ratelimit.MaxCallers-3 {
		t.Errorf("%d callers are known and %d of 100,000 passed, want at most %d", l.Callers(), passed, ratelimit.MaxCallers)
	}
	if used := heap() - before; used > 32<<20 {
		t.Errorf("the limiter takes %d bytes", used)
	} else {
		t.Logf("the limiter takes %d bytes for %d callers", used, l.Callers())
	}
	if requests(l, eve, nil, 10) != 0 {
		t.Error("a caller got a second burst")
	}
	if refused := l.Request(ann, nil); refused != nil {
		t.Errorf("a caller that is known: %v", refused)
	}
	if refused := l.Request(named("new"), nil); refused == nil || refused.Seconds() != 1 || refused.String() != "The gateway has too many callers." {
		t.Errorf("a caller for whom there is no room: %+v", refused)
	}
	now.move(2 * time.Second) // buckets are full again: callers are forgotten
	if passed := flood(1_000_000, 50_000); passed != 50_000 {
		t.Errorf("%d of 50,000 passed when there was room again", passed)
	}
	now.move(2 * time.Second)
	flood(2_000_000, 50_000)
	if l.Callers() > ratelimit.MaxCallers {
		t.Errorf("%d callers are known", l.Callers())
	}
	if _, refused := l.Call(named("slow"), nil, "crm", "read"); refused == nil {
		t.Error("a caller with a call under way was forgotten")
	}
	slow.End()
	runtime.KeepAlive(l)
}

// heap is the memory in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
