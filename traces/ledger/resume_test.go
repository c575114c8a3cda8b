package ledger_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

const inTime = "2026-11-21T09:30:00.000Z"

// hold plays a run that a policy of the bundle holds for an hour, and that dora may decide about.
func (d *fixture) hold(change func(*statestest.Scenario)) (string, *statestest.Scenario) {
	d.TB.Helper()
	s, id := statestest.Find(d.TB, "policy-holds"), ledgertest.NewID(d.TB)
	if change != nil {
		change(&s)
	}
	o, _, err := d.play(id, &s)
	if err != nil || o.Type != states.TypePending {
		d.TB.Fatalf("play() = %+v, %v", o, err)
	}
	return id, &s
}

// approved holds a run and has dora agree to it in time.
func (d *fixture) approved(change func(*statestest.Scenario)) (string, *statestest.Scenario) {
	d.TB.Helper()
	id, s := d.hold(change)
	d.Clock.Set(d.TB, inTime)
	d.vote(id, d.Approver("dora"), true)
	return id, s
}

// world is the scenario's world as the run finds it when it is taken up.
func world(s *statestest.Scenario) ledger.ResumeOptions {
	return ledger.ResumeOptions{
		Ports: func(*states.Run) *states.Live {
			return &states.Live{Tools: s.World, Completer: s.World, Caller: s.World}
		},
		Bundle: statestest.MustBundle(s.Content, nil),
	}
}

// resume claims a run and goes on with it.
func (d *fixture) resume(id string, w ledger.ResumeOptions) (ledger.Resumed, error) {
	if err := d.Claim(context.Background(), id); err != nil {
		return ledger.Resumed{}, err
	}
	return d.Resume(context.Background(), d.replayer(nil), id, w)
}

func TestAnApprovedRunIsCalledOnce(t *testing.T) {
	d := newFixture(t)
	id, s := d.approved(nil)
	other := d.other()
	got, err := other.resume(id, world(s))
	if err != nil || got.Outcome.State != string(states.Answered) || len(s.World.Calls) != 1 {
		t.Fatalf("resume() = %+v, %v, %d calls", got.Outcome, err, len(s.World.Calls))
	}
	q := d.Run(id)
	if q.Status != ledger.Executed || q.Head != got.Head || q.Owner != "" {
		t.Errorf("the request is %+v", q)
	}
	if trace := d.trace(id, got.Outcome, nil); trace.Head != got.Head {
		t.Errorf("the trace's head is %s, want %s", trace.Head, got.Head)
	}
	if _, err := d.resume(id, world(s)); !errors.Is(err, ledger.ErrEnded) || len(s.World.Calls) != 1 {
		t.Errorf("once more: %v, %d calls", err, len(s.World.Calls))
	}
}

func TestDecisionsThatCallNothing(t *testing.T) {
	late := "2026-11-21T10:00:00.000Z"
	for _, c := range []struct {
		name   string
		change func(*statestest.Scenario)
		decide func(*testing.T, *fixture, string)
		now    func(*testing.T, *fixture, *statestest.Scenario, *ledger.ResumeOptions)
		code   policy.Code
		status ledger.Status
	}{
		{name: "denied", code: policy.CodeApprovalDenied, status: ledger.Denied,
			decide: func(_ *testing.T, d *fixture, id string) { d.vote(id, d.Approver("dora"), false) }},
		{name: "nobody-in-time", code: policy.CodeApprovalExpired, status: ledger.Expired,
			decide: func(t *testing.T, d *fixture, _ string) { d.Clock.Set(t, late) }},
		{name: "approved-and-expired-since", code: policy.CodeApprovalExpired, status: ledger.Expired,
			now: func(t *testing.T, d *fixture, _ *statestest.Scenario, _ *ledger.ResumeOptions) { d.Clock.Set(t, late) }},
		{name: "no-configuration", code: policy.CodeBundleChanged, status: ledger.Denied,
			now: func(_ *testing.T, _ *fixture, _ *statestest.Scenario, w *ledger.ResumeOptions) { w.Bundle = nil }},
		{name: "definition-changed", code: policy.CodeToolDefinitionChanged, status: ledger.Denied,
			now: func(_ *testing.T, _ *fixture, s *statestest.Scenario, _ *ledger.ResumeOptions) {
				page := strings.Replace(statestest.Page, "Fetch one policy by id.", "Fetch one policy.", 1)
				s.World.Listed[1] = &states.ToolsListed{Servers: statestest.Listings(page)}
			}},
		{name: "tool-gone", code: policy.CodeToolUnknown, status: ledger.Denied,
			now: func(_ *testing.T, _ *fixture, s *statestest.Scenario, _ *ledger.ResumeOptions) {
				s.World.Listed[1] = &states.ToolsListed{Servers: statestest.Listings(`{"tools":[]}`)}
			}},
		{name: "policy-denies-as-of-the-decision", code: policy.CodePolicyDenied, status: ledger.Denied,
			change: func(s *statestest.Scenario) {
				p := *s.Content.Policy
				p.Policies = append([]rules.Policy{}, p.Policies...)
				p.Policies[0].When = "now < timestamp('2026-11-21T09:30:00Z')"
				s.Content.Policy = &p
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			id, s := d.hold(c.change)
			d.Clock.Set(t, inTime)
			if c.decide == nil {
				c.decide = func(_ *testing.T, d *fixture, id string) { d.vote(id, d.Approver("dora"), true) }
			}
			c.decide(t, d, id)
			w := world(s)
			if c.now != nil {
				c.now(t, d, s, &w)
			}
			got, err := d.resume(id, w)
			if err != nil || got.Outcome.Type != states.TypeBlocked || got.Outcome.Code != c.code || len(s.World.Calls) != 0 {
				t.Fatalf("resume() = %+v, %v, %d calls; want blocked by %s", got.Outcome, err, len(s.World.Calls), c.code)
			}
			if q := d.Run(id); q.Status != c.status || q.Sent != "" || q.Ended == "" || q.Code != string(c.code) {
				t.Errorf("the request is %s, code %s, sent %q, ended %q; want %s", q.Status, q.Code, q.Sent, q.Ended, c.status)
			}
			d.trace(id, got.Outcome, nil)
		})
	}
}

// If a row is changed after the decision, the call is not made.
func TestAChangedRowIsNotCalled(t *testing.T) {
	for name, change := range map[string]func(*ledger.RunRow){ // each stands alone
		"actor":         func(q *ledger.RunRow) { q.Actor = "local:eve" },
		"server":        func(q *ledger.RunRow) { q.Server = "mcp-other" },
		"tool":          func(q *ledger.RunRow) { q.Tool = statestest.Delete },
		"argument-byte": func(q *ledger.RunRow) { q.Args = strings.Replace(q.Args, "002", "003", 1) },
		"definition":    func(q *ledger.RunRow) { q.Definition = canonical.Sum("tool", nil) },
		"bundle":        func(q *ledger.RunRow) { q.Bundle = canonical.Sum("bundle", nil) },
		"expires":       func(q *ledger.RunRow) { q.Expires = "2026-11-22T10:00:00.000Z" },
		"quorum":        func(q *ledger.RunRow) { q.Quorum = 0 },
		"approvers":     func(q *ledger.RunRow) { q.Approvers = nil },
		"binding":       func(q *ledger.RunRow) { q.Binding = canonical.Sum("x", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			id, s := d.approved(nil)
			d.wantsNoCall(d.Store, id, s, func(tx ledger.Tx) error {
				q, err := tx.Run(id)
				change(&q)
				return errors.Join(err, ledgertest.ReplaceRun(tx, q))
			})
		})
	}
}

// If the entries are changed after the decision, the call is not made.
func TestChangedEntriesAreNotCalled(t *testing.T) {
	event := func(old, as string) lies {
		return lies{entry: func(e *ledger.Entry) { e.Body = []byte(strings.ReplaceAll(string(e.Body), old, as)) }}
	}
	for name, liar := range map[string]lies{ // each stands alone
		"step-target":   event(`"plan","validate"`, `"validate","plan"`),
		"record-lost":   {drop: ledger.ApprovalRequested},
		"argument-byte": event("policy-002", "policy-003"),
		"actor":         event(statestest.Actor, "local:mallory"),
		"vote":          event(`"decides":true`, `"decides":false`),
		"voter":         {entry: func(e *ledger.Entry) { e.Body = []byte(strings.Replace(string(e.Body), "dora", "bobo", 1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			id, s := d.approved(nil)
			liar.Store = d.Store
			d.wantsNoCall(&liar, id, s, func(ledger.Tx) error { return nil })
		})
	}
}

// TestAChangedTokenIsNotCalled shows that the rows of tokens are compared with their entries before an approved call.
func TestAChangedTokenIsNotCalled(t *testing.T) {
	for name, change := range map[string]func(*ledger.Token){ // each stands alone
		"revoked-no-more":   func(k *ledger.Token) { k.Revoked = "" },
		"of-another-person": func(k *ledger.Token) { k.Name = "dora" },
		"of-another-role":   func(k *ledger.Token) { k.Role = ledger.RoleApprover },
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			id, s := d.hold(nil)
			d.Clock.Set(t, inTime)
			dora := d.Approver("dora")
			d.vote(id, dora, true)
			other := d.token("other", ledger.RoleAgent, "").ID
			d.revoke(dora.TokenID)
			d.wantsNoCall(d.Store, id, s, func(tx ledger.Tx) error {
				var errs []error
				for _, id := range []string{dora.TokenID, other} {
					k, err := tx.Token(id)
					change(&k)
					errs = append(errs, err, tx.PutToken(k))
				}
				return errors.Join(errs...)
			})
		})
	}
}

// wantsNoCall claims an approved run in a store, changes rows, and wants the call to be refused.
func (d *fixture) wantsNoCall(store ledger.Store, id string, s *statestest.Scenario, change func(ledger.Tx) error) {
	d.TB.Helper()
	ctx := context.Background()
	l, err := ledger.Open(ctx, store, ledger.Options{Clock: d.Clock.Now})
	check.NoError(d.TB, err)
	defer l.Close()
	check.NoError(d.TB, l.Claim(ctx, id))
	check.NoError(d.TB, d.Store.Update(ctx, change))
	got, err := l.Resume(ctx, d.replayer(nil), id, world(s))
	if !errors.Is(err, ledger.ErrChanged) && !errors.Is(err, traces.ErrTampered) || len(s.World.Calls) != 0 {
		d.TB.Errorf("Resume() = %+v, %v, %d calls", got.Outcome, err, len(s.World.Calls))
	}
}

// lies are a store that says other rows than it has.
type lies struct {
	ledger.Store
	entry func(*ledger.Entry)
	drop  ledger.Type    // entries of this type are not there
	row   *ledger.RunRow // in place of all; nil leaves them
}

func (l *lies) View(ctx context.Context, do func(ledger.Reader) error) error {
	return l.Store.View(ctx, func(r ledger.Reader) error { return do(lying{r, l}) })
}

func (l *lies) ReadCommitted(ctx context.Context, do func(ledger.Reader) error) error {
	return l.Store.ReadCommitted(ctx, func(r ledger.Reader) error { return do(lying{r, l}) })
}

type lying struct {
	ledger.Reader
	l *lies
}

func (r lying) Runs(f ledger.Filter) iter.Seq2[ledger.RunRow, error] {
	if r.l.row == nil {
		return r.Reader.Runs(f)
	}
	return func(yield func(ledger.RunRow, error) bool) { yield(*r.l.row, nil) }
}

func (r lying) EntriesOf(run string) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for e, err := range r.Reader.EntriesOf(run) {
			if r.l.entry != nil {
				r.l.entry(&e)
			}
			if r.l.drop != "" && strings.Contains(string(e.Body), `"type":"`+string(r.l.drop)+`"`) {
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func TestClaims(t *testing.T) {
	ctx := context.Background()
	d := newFixture(t)
	if err := d.Claim(ctx, ledgertest.NewID(t)); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a run that is not there: %v", err)
	}
	id, _ := d.hold(nil)
	if err := d.Claim(ctx, id); !errors.Is(err, ledger.ErrUndecided) {
		t.Errorf("a run that nobody decided: %v", err)
	}
	d.vote(id, d.Approver("dora"), true)
	other := d.other()
	if err := other.Claim(ctx, id); err != nil {
		t.Fatalf("Claim() = %v", err)
	}
	err := d.Claim(ctx, id)
	if !errors.Is(err, ledger.ErrTaken) || !strings.Contains(err.Error(), other.Owner()) {
		t.Errorf("a run that another process has: %v", err)
	}
	if err := other.Claim(ctx, id); !errors.Is(err, ledger.ErrTaken) {
		t.Errorf("a run that this process is at work on: %v", err)
	}
	other.Store.Crash()
	if err := d.Claim(ctx, id); err != nil {
		t.Errorf("a run whose owner is gone: %v", err)
	}
	called := statestest.Find(t, "policy-allows")
	if _, _, err := d.play(statestest.RunID, &called); err != nil {
		t.Fatal(err)
	}
	if err := d.Claim(ctx, statestest.RunID); !errors.Is(err, ledger.ErrEnded) {
		t.Errorf("a run that has ended: %v", err)
	}
}

// listFirst does something before tools are listed. Who is cut off then says so, as the command's servers do.
type listFirst struct {
	states.Lister
	do func()
}

func (l listFirst) List(ctx context.Context, c *states.ListTools) states.Event {
	l.do()
	if ctx.Err() != nil {
		return &states.EffectFailed{Code: policy.CodeCancelled, Effect: states.NotSent, Reason: "Cut off."}
	}
	return l.Lister.List(ctx, c)
}

// If a resumption is stopped before the call, the approval stays for the next one.
func TestAStoppedResumptionIsTakenUpAgain(t *testing.T) {
	down := map[string]states.Event{
		"server-down": &states.ToolsListed{Servers: []policy.Listing{{
			Server: statestest.Server, Status: policy.ServerDown, Code: "server_unreachable", Reason: "Nobody is there.",
		}}},
		"no-server-could-be-asked": &states.EffectFailed{Code: policy.CodeEffectFailed, Effect: states.NotSent, Reason: "No."},
	}
	for _, name := range []string{"before-it-began", "while-tools-are-listed", "server-down", "no-server-could-be-asked"} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			id, s := d.approved(nil)
			check.NoError(t, d.Claim(context.Background(), id))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			w, mine := world(s), *s.World
			w.Ports = func(*states.Run) *states.Live {
				return &states.Live{Tools: listFirst{&mine, cancel}, Caller: &mine}
			}
			if name == "before-it-began" {
				cancel()
			}
			if ev := down[name]; ev != nil {
				mine.Listed = []states.Event{ev, ev}
				w.Ports = func(*states.Run) *states.Live { return &states.Live{Tools: &mine, Caller: &mine} }
			}
			_, err := d.Resume(ctx, d.replayer(nil), id, w)
			want := context.Canceled
			if down[name] != nil {
				want = ledger.ErrGivenUp
			}
			if !errors.Is(err, want) || len(mine.Calls) != 0 || d.Run(id).Status != ledger.Approved {
				t.Fatalf("Resume() = %v, %d calls, %s", err, len(mine.Calls), d.Run(id).Status)
			}
			if got, err := d.resume(id, world(s)); err != nil || len(s.World.Calls) != 1 {
				t.Errorf("once more: %+v, %v, %d calls", got.Outcome, err, len(s.World.Calls))
			}
		})
	}
}

// The approval may expire between the last look at the clock and the call.
func TestExpiryAtTheLastMoment(t *testing.T) {
	for _, c := range []struct {
		name, at string
		code     policy.Code
		calls    int
	}{
		{"one-second-before", "2026-11-21T09:59:59.000Z", "", 1},
		{"on-the-second", "2026-11-21T10:00:00.000Z", policy.CodeApprovalExpired, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			id, s := d.approved(nil)
			w := world(s)
			w.Watch = func(_ *states.Run, r states.Recorder) states.Recorder {
				return beforeDispatch{r, func() { d.Clock.Set(t, c.at) }}
			}
			got, err := d.resume(id, w)
			if err != nil || got.Outcome.Code != c.code || len(s.World.Calls) != c.calls {
				t.Errorf("resume() = %+v, %v, %d calls", got.Outcome, err, len(s.World.Calls))
			}
			d.trace(id, got.Outcome, nil)
		})
	}
}

type beforeDispatch struct {
	states.Recorder
	do func()
}

func (b beforeDispatch) Append(ctx context.Context, s states.Step) error {
	if s.On == states.Dispatch {
		b.do()
	}
	return b.Recorder.Append(ctx, s)
}

// TestVotesFollowTheHold holds a run, and has people vote, while the clock stands before the request: the record of the run
// has no vote from before its hold.
func TestVotesFollowTheHold(t *testing.T) {
	d := newFixture(t)
	id, s := d.hold(func(s *statestest.Scenario) { s.Request.At = "2026-11-21T09:00:20.000Z" })
	d.vote(id, d.Approver("dora"), true)
	got, err := d.resume(id, world(s))
	if err != nil || got.Outcome.State != string(states.Answered) {
		t.Fatalf("resume() = %+v, %v", got.Outcome, err)
	}
	d.trace(id, got.Outcome, nil)
}
