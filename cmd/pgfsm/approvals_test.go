package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// A hall is a ledger's file in which calls are held, and a person who may decide.
type hall struct {
	t       *testing.T
	name    string // for --ledger
	path    string
	alice   string // her token
	machine *states.Machine
}

func newHall(t *testing.T) *hall {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	h := &hall{t: t, name: "sqlite:" + path, path: path, machine: statestest.MustMachine(t)}
	h.with(time.Now, func(l *ledger.Ledger) error {
		var err error
		h.alice, _, err = l.CreateToken(context.Background(), ledger.Local("local:root"), "alice@example.com", ledger.RoleApprover, "")
		return err
	})
	return h
}

// with does something with the ledger, as another process would.
func (h *hall) with(clock func() time.Time, do func(*ledger.Ledger) error) {
	h.t.Helper()
	store, err := sqlite.Open(h.path, sqlite.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	l, err := ledger.Open(context.Background(), store, ledger.Options{Clock: clock})
	if err != nil {
		h.t.Fatal(errors.Join(err, store.Close()))
	}
	if err := errors.Join(do(l), l.Close(), store.Close()); err != nil {
		h.t.Fatal(err)
	}
}

// heldContent is a bundle whose policy holds every call for an hour.
func heldContent() policy.Content {
	content := statestest.Content()
	content.Policy = statestest.Policies(rules.Policy{
		ID: "looked-at", Effect: rules.Pending, Reason: "A person looks.", Expires: time.Hour.Milliseconds(),
	})
	return content
}

// holds has somebody ask for a call that is held until then.
func (h *hall) holds(until time.Time) (q ledger.Request) {
	h.t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		h.t.Fatal(err)
	}
	h.with(time.Now, func(l *ledger.Ledger) error {
		r := states.Request{
			Actor: statestest.Actor, At: until.Add(-time.Hour).UTC().Format("2006-01-02T15:04:05Z"), Kind: states.KindAsk,
			Text: canonical.Text(statestest.Question),
		}
		run := states.NewRun(id.String(), r, statestest.MustBundle(heldContent(), nil))
		rec := l.Begin(traces.NewHeader(h.machine, run), run)
		defer rec.Abandon()
		o, err := h.machine.Advance(context.Background(), run, statestest.NewWorld().Door(), rec)
		if err == nil && o.Type != states.TypePending {
			err = errors.New("the run is not held")
		}
		return err
	})
	return h.request(id.String())
}

func (h *hall) request(run string) (q ledger.Request) {
	h.t.Helper()
	h.with(time.Now, func(l *ledger.Ledger) error {
		return l.View(context.Background(), func(r ledger.Reader) (err error) {
			q, err = r.Request(run)
			return err
		})
	})
	return q
}

// pgfsm runs the command as Alice.
func (h *hall) pgfsm(ctx context.Context, out io.Writer, args ...string) (code int, said string) {
	var stderr bytes.Buffer
	code = run(ctx, append(args, "--ledger", h.name), world{
		stdin: strings.NewReader(""), stdout: out, stderr: &stderr,
		getenv: func(name string) (string, bool) { return h.alice, name == tokenVariable },
	})
	return code, stderr.String()
}

// decides has calls held, and Alice say about each what she says. The ids are in order.
func (h *hall) decides(n int, approve bool) (ids []string) {
	h.t.Helper()
	h.with(time.Now, func(l *ledger.Ledger) error {
		alice, err := l.Authenticate(context.Background(), h.alice)
		if err != nil {
			return err
		}
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			id, err := uuid.NewV7()
			if err != nil {
				return err
			}
			ids = append(ids, id.String())
			wg.Go(func() { errs[i] = h.decide(l, id.String(), alice, approve) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	return ids
}

func (h *hall) decide(l *ledger.Ledger, id string, by ledger.Caller, approve bool) error {
	r := states.Request{
		Actor: statestest.Actor, At: now(), Kind: states.KindAsk, Text: canonical.Text(statestest.Question),
	}
	run := states.NewRun(id, r, statestest.MustBundle(heldContent(), nil))
	rec := l.Begin(traces.NewHeader(h.machine, run), run)
	defer rec.Abandon()
	if _, err := h.machine.Advance(context.Background(), run, rec.Door(statestest.NewWorld().Door()), rec); err != nil {
		return err
	}
	v := ledger.Ballot{Run: id, Binding: run.Held().Binding, By: by, Approve: approve, Reason: "as decided"}
	_, err := l.Vote(context.Background(), v)
	return err
}

// list says when there is more than it lists.
func TestApprovalsListLimit(t *testing.T) {
	h := newHall(t)
	h.decides(3, false)
	for _, tt := range []struct {
		name, limit string
		rows        int
		more        bool
	}{
		{"fewer-than-there-are", "2", 2, true},
		{"as-many-as-there-are", "3", 3, false},
		{"more-than-there-are", "4", 3, false},
		{"all", "0", 3, false},
		{"at-most", "1000000", 3, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			code, said := h.pgfsm(t.Context(), &out, "approvals", "list", "--status", "denied", "--limit", tt.limit)
			rows := strings.Count(out.String(), "  denied  ")
			if code != exitYes || rows != tt.rows || strings.Contains(said, "There are more; --limit 0 lists all.") != tt.more {
				t.Errorf("exit code %d, %d rows, want %d, %s", code, rows, tt.rows, said)
			}
			out.Reset()
			h.pgfsm(t.Context(), &out, "approvals", "list", "--status", "all", "--limit", tt.limit, "--json")
			if more, _ := at(out.Bytes(), "/more"); string(more) != strconv.FormatBool(tt.more) {
				t.Errorf("more is %s, want %t", more, tt.more)
			}
		})
	}
	for _, bad := range []string{"-1", "1000001"} {
		code, said := h.pgfsm(t.Context(), io.Discard, "approvals", "list", "--limit", bad)
		if code != exitCould || !strings.Contains(said, "--limit is "+bad) {
			t.Errorf("--limit %s: exit code %d, %s", bad, code, said)
		}
	}
}

// A ballot that comes too late has the expiry recorded and the run ended.
func TestApprovalsExpired(t *testing.T) {
	h := newHall(t)
	q := h.holds(time.Now().Add(-time.Hour))
	var out bytes.Buffer
	if code, said := h.pgfsm(t.Context(), &out, "approvals", "list"); code != exitYes || !strings.Contains(out.String(), ", expired "+q.Expires) {
		t.Errorf("approvals list: exit code %d, %s%s", code, out.String(), said)
	}
	out.Reset()
	code, said := h.pgfsm(t.Context(), &out, "approvals", "approve", q.RunID, "--digest", string(q.Binding))
	if code != exitNo || !strings.Contains(said, "refused, approval_expired: ") || out.Len() > 0 {
		t.Errorf("approvals approve: exit code %d, %s%s", code, out.String(), said)
	}
	if q = h.request(q.RunID); q.Status != ledger.Expired || q.State != states.Blocked || q.Ended == "" {
		t.Errorf("the request is %s at %s, ended %q; want %s, %s", q.Status, q.State, q.Ended, ledger.Expired, states.Blocked)
	}
}

// watch prints what waits, and what happens afterwards, until it is interrupted.
func TestApprovalsWatch(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags []string
		says  func(typ ledger.Type, q ledger.Request) string
	}{
		{"people", nil, func(typ ledger.Type, q ledger.Request) string {
			return string(typ) + "  " + strings.Repeat(" ", 18-len(typ)) + q.RunID
		}},
		{"programs", []string{"--json"}, func(typ ledger.Type, q ledger.Request) string { return `"type":"` + string(typ) + `"` }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHall(t)
			first := h.holds(time.Now().Add(time.Hour))
			ctx, interrupt := context.WithCancel(t.Context())
			read, write := io.Pipe()
			type end struct {
				code int
				said string
			}
			ended := make(chan end, 1)
			go func() {
				code, said := h.pgfsm(ctx, write, append([]string{"approvals", "watch"}, tt.flags...)...)
				write.Close()
				ended <- end{code, said}
			}()
			lines := bufio.NewScanner(read)
			next := func(typ ledger.Type, q ledger.Request) {
				t.Helper()
				if !lines.Scan() || !strings.Contains(lines.Text(), tt.says(typ, q)) || !strings.Contains(lines.Text(), q.RunID) {
					t.Fatalf("watch prints %q, want %s of %s", lines.Text(), typ, q.RunID)
				}
			}
			next(ledger.ApprovalRequested, first)
			second := h.holds(time.Now().Add(time.Hour))
			next(ledger.ApprovalRequested, second)
			var out bytes.Buffer
			vote := []string{"approvals", "approve", first.RunID, "--digest", string(first.Binding)}
			if code, said := h.pgfsm(t.Context(), &out, vote...); code != exitYes {
				t.Fatalf("approvals approve: exit code %d, %s", code, said)
			}
			next(ledger.ApprovalApproved, first)
			interrupt()
			if lines.Scan() {
				t.Errorf("watch goes on: %q", lines.Text())
			}
			if e := <-ended; e.code != exitYes || e.said != "" {
				t.Errorf("exit code %d, %s", e.code, e.said)
			}
		})
	}
}

// expiry reads what a person writes, and the limits are where they are said to be.
func TestTokenExpiry(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ give, want string }{
		{"never", ""},
		{"1h", "2026-11-21T10:00:00Z"},
		{"90d", "2027-02-19T09:00:00Z"},
		{"3660d", "2036-11-28T09:00:00Z"},
		{"87840h", "2036-11-28T09:00:00Z"},
		{"2027-01-01", "2027-01-01T00:00:00Z"},
		{"2027-01-01T12:00:00+02:00", "2027-01-01T10:00:00Z"},
	} {
		if got, err := expiry(tt.give, at); got != tt.want || err != nil {
			t.Errorf("expiry(%q) = %q, %v, want %q", tt.give, got, err, tt.want)
		}
	}
	for _, bad := range []string{"", "d", "0d", "0h", "-1d", "+1d", "3661d", "87841h", "1.5d", "90", "90m", "1d ", "2027-02-30", "Never", "18446744073709551617d"} {
		if got, err := expiry(bad, at); err == nil {
			t.Errorf("expiry(%q) = %q, want an error", bad, got)
		}
	}
}

// After an approval the text names the processes that make the call.
func TestCallNext(t *testing.T) {
	const rest = "a running pgfsm serve, or pgfsm approvals serve without --no-resume, makes it within seconds. " +
		"If none runs, pgfsm resume r makes it. The approval expires at t."
	for kind, want := range map[string]string{
		states.KindAgent: "The call is not made yet: " + rest,
		states.KindCall:  "The call is not made yet: the command that waits for it (--wait), " + rest,
	} {
		if got := callNext(&ledger.Request{RunID: "r", Kind: kind, Expires: "t"}); got != want {
			t.Errorf("callNext() of kind %s = %s\nwant %s", kind, got, want)
		}
	}
}
