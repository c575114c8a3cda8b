package hooks_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/hooks"
	"pgfsm/traces/ledger/ledgertest"
)

var errGone = errors.New("the process is gone")

// A process that ends between sending and writing that down leaves a message that another one sends again, under the same
// id, when the lease is over.
func TestCrashBetweenSendingAndWritingDown(t *testing.T) {
	d, m := newFixture(t), newMailbox(t)
	look(t, d.sender(hook(m)))
	q := d.Hold(1)
	dying := d.Store.Open()
	dying.Fail = ledgertest.FailAt(ledgertest.Commit, 2, errGone)
	s, err := hooks.New(dying, hooks.Options{Hooks: []hooks.Hook{hook(m)}, Clock: d.Clock.Now})
	check.NoError(t, err)
	if err := s.Look(context.Background()); !errors.Is(err, errGone) {
		t.Fatalf("Look() = %v, want %v", err, errGone)
	}
	wantKinds(t, m, "requested "+q.RunID)
	other := d.sender(hook(m))
	d.Clock.Add(hooks.Lease - time.Second)
	look(t, other)
	wantKinds(t, m, "requested "+q.RunID)
	d.Clock.Add(time.Second)
	look(t, other)
	wantKinds(t, m, "requested "+q.RunID, "requested "+q.RunID)
	if all := m.got(); all[0].ID != all[1].ID {
		t.Errorf("ids = %s, %s, want one", all[0].ID, all[1].ID)
	}
	d.Clock.Add(24 * time.Hour)
	look(t, other)
	if n := len(m.got()); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// A process that ends before it sends leaves the message to others, too.
func TestCrashBeforeSending(t *testing.T) {
	d, m := newFixture(t), newMailbox(t)
	look(t, d.sender(hook(m)))
	q := d.Hold(1)
	dying := d.Store.Open()
	dying.Fail = ledgertest.FailAt(ledgertest.Committed, 0, errGone)
	s, err := hooks.New(dying, hooks.Options{Hooks: []hooks.Hook{hook(m)}, Clock: d.Clock.Now})
	check.NoError(t, err)
	if err := s.Look(context.Background()); !errors.Is(err, errGone) {
		t.Fatalf("Look() = %v, want %v", err, errGone)
	}
	wantKinds(t, m)
	d.Clock.Add(hooks.Lease)
	look(t, d.sender(hook(m)))
	wantKinds(t, m, "requested "+q.RunID)
}

// Several processes with one ledger tell a hook once, in order.
func TestSeveralSenders(t *testing.T) {
	d, m := newFixture(t), newMailbox(t)
	look(t, d.sender(hook(m)))
	var want []string
	for range 20 {
		want = append(want, "requested "+d.Hold(1).RunID)
	}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range 4 {
		s, err := hooks.New(d.Store.Open(), hooks.Options{Hooks: []hooks.Hook{hook(m)}, Clock: d.Clock.Now, Interval: time.Millisecond})
		check.NoError(t, err)
		all.Go(func() { s.Run(ctx) })
	}
	deadline := time.Now().Add(10 * time.Second)
	for len(m.got()) < len(want) && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	stop()
	all.Wait()
	if got := m.kinds(); !slices.Equal(got, want) {
		t.Errorf("the hook got %d messages, want %d, in order: %q", len(got), len(want), got)
	}
}

// A sender that is stopped while a receiver thinks takes no attempt from it, and the next process sends at once.
func TestStopWhileSending(t *testing.T) {
	entered := make(chan struct{}, 1)
	thinks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does a server notice that the caller has left
		entered <- struct{}{}
		<-r.Context().Done()
	}))
	defer thinks.Close()
	d := newFixture(t)
	to := hooks.Hook{URL: thinks.URL, Secret: secret, Events: hooks.Kinds()}
	look(t, d.sender(to))
	d.Hold(1)
	before := runtime.NumGoroutine()
	ctx, stop := context.WithCancel(context.Background())
	s, err := hooks.New(d.Store, hooks.Options{Hooks: []hooks.Hook{to}, Clock: d.Clock.Now})
	check.NoError(t, err)
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	<-entered
	stop()
	<-ended
	if w := d.waiting(); len(w) != 1 || w[0].Attempts != 0 || w[0].Next > d.Clock.Now().UTC().Format(time.RFC3339) {
		t.Errorf("waiting = %+v, want one that is due, without an attempt", w)
	}
	thinks.CloseClientConnections()
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			b := make([]byte, 64<<10)
			t.Fatalf("%d goroutines, want %d:\n%s", runtime.NumGoroutine(), before, b[:runtime.Stack(b, true)])
		}
		runtime.Gosched()
	}
}

// A ledger that cannot be written is said once, and what waits is sent when it can be.
func TestLedgerBreaks(t *testing.T) {
	d, m := newFixture(t), newMailbox(t)
	look(t, d.sender(hook(m)))
	q := d.Hold(1)
	var broken, said int
	var mu sync.Mutex
	sick := d.Store.Open()
	ctx, stop := context.WithCancel(context.Background())
	sick.Fail = func(op ledgertest.Op, _ int) error {
		mu.Lock()
		defer mu.Unlock()
		if op == ledgertest.Begin {
			if broken++; broken <= 5 {
				return errGone
			}
		}
		return nil
	}
	s, err := hooks.New(sick, hooks.Options{
		Hooks: []hooks.Hook{hook(m)}, Clock: d.Clock.Now, Interval: time.Millisecond,
		Log: func(string) { mu.Lock(); said++; mu.Unlock() },
	})
	check.NoError(t, err)
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	deadline := time.Now().Add(10 * time.Second)
	for len(m.got()) == 0 && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	stop()
	<-ended
	wantKinds(t, m, "requested "+q.RunID)
	if said != 1 {
		t.Errorf("it was said %d times, want once", said)
	}
}

func TestNewRefuses(t *testing.T) {
	const url = "https://example.com/h"
	long := strings.Repeat("k", hooks.MinSecret)
	many := make([]hooks.Hook, hooks.MaxHooks+1)
	for i := range many {
		many[i] = hooks.Hook{URL: url + strings.Repeat("x", i), Secret: long}
	}
	for _, c := range []struct {
		name  string
		hooks []hooks.Hook
		want  string // empty: it is taken
	}{
		{"none", nil, ""},
		{"as-many-as-may-be", many[1:], ""},
		{"one-past", many, "at most"},
		{"plain-http", []hooks.Hook{{URL: "http://example.com/h", Secret: long}}, "must be https"},
		{"plain-http-here", []hooks.Hook{{URL: "http://127.0.0.1:1/h", Secret: long}}, ""},
		{"plain-http-localhost", []hooks.Hook{{URL: "http://localhost:1/h", Secret: long}}, ""},
		{"file", []hooks.Hook{{URL: "file:///etc/passwd", Secret: long}}, "URL"},
		{"password-in-it", []hooks.Hook{{URL: "https://u:p@example.com", Secret: long}}, "URL"},
		{"no-url", []hooks.Hook{{Secret: long}}, "URL"},
		{"secret-one-short", []hooks.Hook{{URL: url, Secret: long[1:]}}, "24 or more"},
		{"secret-coded-and-short", []hooks.Hook{{URL: url, Secret: "whsec_" + "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dg=="}}, "24 or more"},
		{"secret-not-base64", []hooks.Hook{{URL: url, Secret: "whsec_" + long + "!"}}, "base64"},
		{"no-secret", []hooks.Hook{{URL: url}}, "24 or more"},
		{"unknown-kind", []hooks.Hook{{URL: url, Secret: long, Events: []string{"executed"}}}, "no kind"},
		{"same-url-twice", []hooks.Hook{{URL: url, Secret: long}, {URL: url, Secret: long}}, "another one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := hooks.New(ledgertest.NewStore(t), hooks.Options{Hooks: c.hooks})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("New() = %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("New() = %v, want %q", err, c.want)
			}
		})
	}
}
