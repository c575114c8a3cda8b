package hooks_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgfsm/policy"
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
	s := d.senderOn(dying, hooks.Options{Hooks: []hooks.Hook{hook(m)}})
	dying.Fail = ledgertest.FailAt(ledgertest.Commit, 3, errGone)
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
	s := d.senderOn(dying, hooks.Options{Hooks: []hooks.Hook{hook(m)}})
	dying.Fail = ledgertest.FailAt(ledgertest.Committed, 0, errGone)
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
		s := d.senderOn(d.Store.Open(), hooks.Options{Hooks: []hooks.Hook{hook(m)}})
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
	to := hooks.Hook{URL: thinks.URL, Secret: secret, Events: []string{hooks.Requested}}
	look(t, d.sender(to))
	d.Hold(1)
	ctx, stop := context.WithCancel(context.Background())
	s := d.sender(to)
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	<-entered
	stop()
	<-ended
	if w := d.waiting(); len(w) != 1 || w[0].Attempts != 0 || w[0].Next > d.Clock.Now().UTC().Format(policy.TimeForm) {
		t.Errorf("waiting = %+v, want one that is due, without an attempt", w)
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
	s := d.senderOn(sick, hooks.Options{Hooks: []hooks.Hook{hook(m)}, Log: func(string) { mu.Lock(); said++; mu.Unlock() }})
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

func TestNewRefusesSecrets(t *testing.T) {
	long := strings.Repeat("k", hooks.MinSecret)
	for _, c := range []struct{ name, secret, want string }{
		{"as-short-as-may-be", long, ""},
		{"one-short", long[1:], "24 or more"},
		{"coded-and-short", "whsec_" + "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dg==", "24 or more"},
		{"not-base64", "whsec_" + long + "!", "base64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := hooks.New(ledgertest.NewStore(t), hooks.Options{Hooks: []hooks.Hook{{URL: "https://example.com/h", Secret: c.secret}}})
			if got := fmt.Sprint(err); (err == nil) != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("New() = %v, want %q", err, c.want)
			}
		})
	}
}
