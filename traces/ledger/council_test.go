package ledger_test

import (
	"context"
	"errors"
	"sync/atomic"
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
	"pgfsm/traces/ledger/storetest"
)

// The people of the tests. The owners may decide; Carol asks.
const (
	alice = "alice@example.com"
	bob   = "bob@example.com"
	dave  = "dave@example.com" // has no role
	carol = "carol@example.com"
)

// A council is a ledger, a clock that tests set, and calls that are held in it.
type council struct {
	*ledger.Ledger
	t       testing.TB
	store   ledger.Store
	clock   *settable
	machine *states.Machine
}

// settable is a clock that stands until it is set.
type settable struct{ at atomic.Int64 }

func (c *settable) now() time.Time      { return time.Unix(c.at.Load(), 0) }
func (c *settable) toNow()              { c.at.Store(time.Now().Unix()) }
func (c *settable) add(d time.Duration) { c.at.Add(int64(d / time.Second)) }

var councilBegins = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func newCouncil(t testing.TB) *council {
	t.Helper()
	return councilIn(t, storetest.NewMemory())
}

func councilIn(t testing.TB, store ledger.Store) *council {
	t.Helper()
	c := &council{t: t, store: store, clock: new(settable), machine: statestest.MustMachine(t)}
	c.clock.at.Store(councilBegins.Unix())
	var err error
	if c.Ledger, err = ledger.Open(context.Background(), store, ledger.Options{Clock: c.clock.now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// councilContent holds every call for an hour.
func councilContent(quorum int) policy.Content {
	content := statestest.Content()
	content.Roles = []policy.Role{{Role: "owners", Actors: []string{alice, bob, carol}}}
	content.Policy = statestest.Policies(rules.Policy{
		ID: "looked-at", Effect: rules.Pending, Reason: "A person looks.", Approvers: []string{"owners"}, Quorum: quorum,
		Expires: int64(time.Hour / time.Millisecond),
	})
	return content
}

// holds has Carol ask for a call that is held until enough people agree.
func (c *council) holds(quorum int) ledger.Request { return c.holdsBy(carol, councilContent(quorum)) }

func (c *council) holdsBy(actor string, content policy.Content) ledger.Request {
	c.t.Helper()
	q := c.request(c.runs(actor, content))
	if q.Status != ledger.Pending {
		c.t.Fatalf("the request is %s, want a held one", q.Status)
	}
	return q
}

// runs takes a request as far as it comes without people, and returns its run's id.
func (c *council) runs(actor string, content policy.Content) string {
	c.t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		c.t.Fatal(err)
	}
	r := states.Request{
		Actor: actor, At: c.clock.now().UTC().Format(time.RFC3339), Kind: states.KindAsk, Text: canonical.Text(statestest.Question),
	}
	run := states.NewRun(id.String(), r, statestest.MustBundle(content, nil))
	rec := c.Begin(traces.NewHeader(c.machine, run), run)
	o, err := c.machine.Advance(context.Background(), run, statestest.NewWorld().Door(), rec)
	if err != nil {
		c.t.Fatal(err)
	}
	if o.Type != states.TypePending {
		if _, err := rec.Finish(context.Background(), o); err != nil {
			c.t.Fatal(err)
		}
	}
	rec.Abandon()
	return id.String()
}

func (c *council) request(run string) (q ledger.Request) {
	c.t.Helper()
	c.view(func(r ledger.Reader) (err error) {
		q, err = r.Request(run)
		return err
	})
	return q
}

func (c *council) view(do func(ledger.Reader) error) {
	c.t.Helper()
	if err := c.View(context.Background(), do); err != nil {
		c.t.Fatal(err)
	}
}

// events are those behind a seq.
func (c *council) events(after int64) (all []ledger.Event) {
	c.t.Helper()
	c.view(func(r ledger.Reader) error {
		for e, err := range r.Events(after) {
			if err != nil {
				return err
			}
			all = append(all, e)
		}
		return nil
	})
	return all
}

// token makes a token that does not expire and returns its text.
func (c *council) token(name, role string) string {
	c.t.Helper()
	text, _, err := c.CreateToken(context.Background(), ledger.Local("local:root"), name, role, "")
	if err != nil {
		c.t.Fatalf("CreateToken(%q, %q) = %v", name, role, err)
	}
	return text
}

// caller authenticates a token.
func (c *council) caller(text string) ledger.Caller {
	c.t.Helper()
	who, err := c.Authenticate(context.Background(), text)
	if err != nil {
		c.t.Fatalf("Authenticate() = %v", err)
	}
	return who
}

func (c *council) approver(name string) ledger.Caller {
	c.t.Helper()
	return c.caller(c.token(name, ledger.RoleApprover))
}

// ballot is an approval of what waits.
func ballotOn(q ledger.Request, by ledger.Caller) ledger.Ballot {
	return ledger.Ballot{Run: q.RunID, Binding: q.Binding, By: by, Approve: true, Reason: "as agreed"}
}

// votes casts a ballot that must count.
func (c *council) votes(v ledger.Ballot) ledger.Request {
	c.t.Helper()
	q, err := c.Vote(context.Background(), v)
	if err != nil {
		c.t.Fatalf("Vote() = %v", err)
	}
	return q
}
