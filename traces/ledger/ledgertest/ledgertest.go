// Package ledgertest opens ledgers for tests, with a clock that the tests set, in which calls run,
// are held and are voted about.
package ledgertest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// The people of the tests. Alice, Bob and Carol have the role that may decide; Carol also sends the
// requests.
const (
	Alice = "alice@example.com"
	Bob   = "bob@example.com"
	Carol = "carol@example.com"
	Dave  = "dave@example.com" // without a role
)

// A Clock shows a fixed time until a test changes it or makes it tick. It counts milliseconds.
type Clock struct{ at, tick atomic.Int64 }

// NewClock makes a clock at the time when the scenarios begin.
func NewClock(tb testing.TB) *Clock {
	c := new(Clock)
	c.Set(tb, statestest.At)
	return c
}

// Now returns the clock's time, in UTC.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.at.Add(c.tick.Load())).UTC() }

// Tick makes each later reading of the clock d later than the one before.
func (c *Clock) Tick(d time.Duration) { c.tick.Store(d.Milliseconds()) }

// Set sets the clock to a time in RFC 3339.
func (c *Clock) Set(tb testing.TB, at string) {
	tb.Helper()
	t, err := time.Parse(time.RFC3339, at)
	check.NoError(tb, err)
	c.at.Store(t.UnixMilli())
}

// ToNow sets the clock to the time of the machine, for tests with other processes.
func (c *Clock) ToNow() { c.at.Store(time.Now().UnixMilli()) }

// Add moves the clock.
func (c *Clock) Add(d time.Duration) { c.at.Add(d.Milliseconds()) }

// A Fixture is a ledger with a machine and a clock.
type Fixture struct {
	*ledger.Ledger
	TB      testing.TB
	Store   *Store // nil if the ledger was opened in a store of another type
	Clock   *Clock
	Machine *states.Machine
	close   func() error
}

// New opens a ledger in a store of its own.
func New(tb testing.TB) *Fixture {
	tb.Helper()
	return Open(tb, NewStore(tb), NewClock(tb))
}

// Open opens a ledger in a store. The end of the test closes both.
func Open(tb testing.TB, store ledger.Store, clock *Clock) *Fixture {
	tb.Helper()
	l, err := ledger.Open(context.Background(), store, ledger.Options{Clock: clock.Now, Settings: Settings()})
	if err != nil {
		tb.Fatalf("Open() = %v", err)
	}
	own, _ := store.(*Store)
	f := &Fixture{l, tb, own, clock, statestest.MustMachine(tb), sync.OnceValue(func() error { return errors.Join(l.Close(), store.Close()) })}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Errorf("Close() = %v", err)
		}
	})
	return f
}

// ClaimWithin is how long a client may use an approval: longer than [Holding] waits for it.
const ClaimWithin = 90 * time.Minute

// Settings are those of a configuration with identity providers whose owners may vote.
func Settings() ledger.Settings {
	const corp = "https://login.example.com/realms/corp"
	return ledger.Settings{
		ClaimWithin: int64(ClaimWithin / time.Millisecond),
		Issuers:     []string{corp, corp + "/", corp + "/sub", corp + "orate", "https://login.example.com", "https://login.example.net/realms/corp"},
		May:         &ledger.May{Approve: []string{"group:owners"}},
		Speakers:    []string{corp + "#mesh"},
	}
}

// Close closes the ledger and its store before the test ends.
func (f *Fixture) Close() error { return f.close() }

// NewID draws a run's id.
func NewID(tb testing.TB) string {
	tb.Helper()
	id, err := uuid.NewV7()
	check.NoError(tb, err)
	return id.String()
}

// Holding returns a configuration that holds every call for an hour, until the given number of
// owners approve.
func Holding(quorum int) policy.Content {
	c := statestest.Content()
	c.Roles = []policy.Role{{Role: "owners", Actors: []string{Alice, Bob, Carol}}}
	c.Policy = statestest.Policies(rules.Policy{
		ID: "looked-at", Effect: rules.Pending, Reason: "A person looks.", Approvers: []string{"owners"}, Quorum: quorum,
		Expires: int64(time.Hour / time.Millisecond),
	})
	return c
}

// Hold sends a request of Carol, whose call is held until the given number of owners approve.
func (f *Fixture) Hold(quorum int) ledger.RunRow { return f.HoldBy(Carol, Holding(quorum)) }

// HoldBy sends a request of an actor, and fails the test unless it is held.
func (f *Fixture) HoldBy(actor string, c policy.Content) ledger.RunRow {
	f.TB.Helper()
	q := f.Ask(actor, c)
	if q.Status != ledger.Pending {
		f.TB.Fatalf("the request is %s, want a held one", q.Status)
	}
	return q
}

// Ask sends a request of an actor and runs it until it ends or is held.
func (f *Fixture) Ask(actor string, c policy.Content) ledger.RunRow {
	f.TB.Helper()
	return f.AskRequest(states.Request{
		Actor: actor, At: f.Clock.Now().Format(policy.TimeForm), Kind: states.KindAsk, Text: canonical.Text(statestest.Question),
	}, c)
}

// HoldRequest does the same as [Fixture.HoldBy] for a complete request.
func (f *Fixture) HoldRequest(r states.Request, c policy.Content) ledger.RunRow {
	f.TB.Helper()
	q := f.AskRequest(r, c)
	if q.Status != ledger.Pending {
		f.TB.Fatalf("the request is %s, want a held one", q.Status)
	}
	return q
}

// BeginRun begins the record of a run, by the token of its actor if there is one. If creates is true, an actor with the name of a token
// gets one.
func (f *Fixture) BeginRun(run *states.Run, creates bool) *ledger.RunRecorder {
	f.TB.Helper()
	h := traces.NewHeader(f.Machine, run)
	actor := h.Request.Actor
	if actor == ledger.Anonymous || strings.HasPrefix(actor, policy.LocalUser) || policy.HasSubject(actor) {
		return f.Begin(h, run)
	}
	role := ledger.RoleAgent
	if states.Delegates(h.Request.Kind) {
		role = ledger.RoleHook
	}
	caller := ledger.Caller{Name: actor, Roles: []string{role}}
	check.NoError(f.TB, f.View(context.Background(), func(r ledger.Reader) error {
		for t, err := range r.Tokens() {
			if err != nil {
				return err
			}
			if t.Name == actor && t.Role == role && t.Revoked == "" {
				caller.TokenID = t.ID
			}
		}
		return nil
	}))
	switch {
	case caller.TokenID == "" && !creates:
		return f.Begin(h, run)
	case caller.TokenID == "":
		_, made, err := f.CreateToken(context.Background(), ledger.LocalUser("local:root"), actor, role, "")
		if err != nil { // no token can have this name
			return f.Begin(h, run)
		}
		caller.TokenID = made.ID
	}
	return f.BeginCall(h, run, caller, false)
}

// AskRequest does the same as [Fixture.Ask] for a complete request.
func (f *Fixture) AskRequest(r states.Request, c policy.Content) ledger.RunRow {
	f.TB.Helper()
	return f.Play(NewID(f.TB), r, c, statestest.NewWorld())
}

// Play sends a request in a world of its own and runs it until it ends or is held.
func (f *Fixture) Play(id string, r states.Request, c policy.Content, world *statestest.World) ledger.RunRow {
	f.TB.Helper()
	run := states.NewRun(id, r, statestest.MustBundle(c, nil))
	rec := f.BeginRun(run, false)
	defer rec.Abandon()
	o, err := f.Machine.Advance(context.Background(), run, rec.Effects(world.Effects()), rec)
	if err == nil && !o.Waits() {
		_, err = rec.Finish(context.Background(), o)
	}
	check.NoError(f.TB, err)
	return f.Run(id)
}

// Inspect reads the ledger in a view.
func (f *Fixture) Inspect(do func(ledger.Reader) error) {
	f.TB.Helper()
	if err := f.View(context.Background(), do); err != nil {
		f.TB.Fatalf("View() = %v", err)
	}
}

// Run returns the current request row of a run.
func (f *Fixture) Run(run string) (q ledger.RunRow) {
	f.TB.Helper()
	f.Inspect(func(r ledger.Reader) (err error) {
		q, err = r.Run(run)
		return err
	})
	return q
}

// Events returns the events of the entries from an index on.
func (f *Fixture) Events(from int64) (all []ledger.Event) {
	f.TB.Helper()
	f.Inspect(func(r ledger.Reader) error {
		for e, err := range ledger.Events(r, from) {
			if err != nil {
				return err
			}
			all = append(all, e)
		}
		return nil
	})
	return all
}

// Votes returns the votes that count for a run.
func (f *Fixture) Votes(run string) (cast []policy.Vote) {
	f.TB.Helper()
	f.Inspect(func(r ledger.Reader) (err error) {
		cast, err = ledger.Votes(r, run)
		return err
	})
	return cast
}

// PassMessages records relayed messages: entries without a run.
func (f *Fixture) PassMessages(n int) {
	f.TB.Helper()
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			err := f.RecordPassage(context.Background(), ledger.Passage{
				By: ledger.LocalUser(ledger.Anonymous), Server: "files", Direction: ledger.ToServer, Method: "ping",
			})
			if err != nil {
				f.TB.Errorf("Pass() = %v", err)
			}
		})
	}
	group.Wait()
}

// Token makes a token that does not expire and returns its text.
func (f *Fixture) Token(name, role string) string {
	f.TB.Helper()
	text, _, err := f.CreateToken(context.Background(), ledger.LocalUser("local:root"), name, role, "")
	if err != nil {
		f.TB.Fatalf("CreateToken(%q, %q) = %v", name, role, err)
	}
	return text
}

// Caller authenticates a token.
func (f *Fixture) Caller(text string) ledger.Caller {
	f.TB.Helper()
	c, err := f.Authenticate(context.Background(), text)
	if err != nil {
		f.TB.Fatalf("Authenticate() = %v", err)
	}
	return c
}

// Approver makes an approver's token and authenticates it.
func (f *Fixture) Approver(name string) ledger.Caller {
	f.TB.Helper()
	return f.Caller(f.Token(name, ledger.RoleApprover))
}

// Ballot returns an approval of a held call.
func Ballot(q ledger.RunRow, by ledger.Caller) ledger.Ballot {
	return ledger.Ballot{Run: q.RunID, Binding: q.Binding, By: by, Approve: true, Reason: "as agreed"}
}

// Cast casts a ballot that must count.
func (f *Fixture) Cast(v ledger.Ballot) ledger.RunRow {
	f.TB.Helper()
	q, err := f.Vote(context.Background(), v)
	if err != nil {
		f.TB.Fatalf("Vote() = %v", err)
	}
	return q
}
