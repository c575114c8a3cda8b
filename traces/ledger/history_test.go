package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// anyArgs lists the scenarios' tool with arguments of every kind.
const anyArgs = `{"tools":[{"name":"` + statestest.Tool + `","inputSchema":{"type":"object","additionalProperties":true}}]}`

// asking is a run with arguments, at a time, under a policy that allows, denies and holds as given.
func asking(t testing.TB, args, at string, change func(*rules.Policy)) *statestest.Scenario {
	s := statestest.Find(t, "policy-allows")
	p := rules.Policy{ID: "p", Effect: rules.Allow}
	change(&p)
	s.Content.Policy = statestest.Policies(p)
	s.Content.Roles = []policy.Role{{Role: "owners", Actors: []string{"dora"}}}
	listed := &states.ToolsListed{Servers: statestest.Listings(anyArgs)}
	s.World.Listed = []states.Event{listed, listed}
	s.World.Plan = &states.Completed{Content: canonical.Text(strings.Replace(statestest.GoodPlan, `{"policy_id":"policy-002"}`, args, 1))}
	s.Request.At = at
	return &s
}

func denying(cel string) func(*rules.Policy) { return func(p *rules.Policy) { p.Deny = cel } }

// sound verifies the ledger, with every run executed again.
func (d *fixture) sound() {
	d.TB.Helper()
	d.Inspect(func(r ledger.Reader) error {
		return alike(ledger.Verify(context.Background(), r, ledger.VerifyOptions{Replayer: d.replayer(nil)}))
	})
}

// must plays a run that ends, or is held, with a code.
func (d *fixture) must(s *statestest.Scenario, code policy.Code) string {
	d.TB.Helper()
	id := ledgertest.NewID(d.TB)
	o, _, err := d.play(id, s)
	if err != nil || o.Code != code {
		d.TB.Fatalf("play() = %+v, %v; want %q", o, err, code)
	}
	return id
}

func TestHistoryWindow(t *testing.T) {
	const full = `history.count("actor", "1h") >= 2`
	for _, c := range []struct {
		name   string
		before []string // when there were calls
		at     string
		code   policy.Code
	}{
		{"none", nil, "2026-11-21T12:00:00.000Z", ""},
		{"one", []string{"2026-11-21T11:30:00.000Z"}, "2026-11-21T12:00:00.000Z", ""},
		{"both", []string{"2026-11-21T11:30:00.000Z", "2026-11-21T11:59:59.000Z"}, "2026-11-21T12:00:00.000Z", policy.CodePolicyDenied},
		{"the-first-at-the-edge", []string{"2026-11-21T11:00:00.000Z", "2026-11-21T11:30:00.000Z"}, "2026-11-21T12:00:00.000Z", policy.CodePolicyDenied},
		{"the-first-one-second-outside", []string{"2026-11-21T10:59:59.000Z", "2026-11-21T11:30:00.000Z"}, "2026-11-21T12:00:00.000Z", ""},
		{"at-the-same-second", []string{"2026-11-21T12:00:00.000Z", "2026-11-21T12:00:00.000Z"}, "2026-11-21T12:00:00.000Z", policy.CodePolicyDenied},
		{"across-a-month", []string{"2026-11-30T23:30:00.000Z", "2026-11-30T23:59:59.000Z"}, "2026-12-01T00:30:00.000Z", policy.CodePolicyDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			for _, at := range c.before {
				d.Clock.Set(t, at)
				d.must(asking(t, "{}", at, denying("false")), "")
			}
			d.Clock.Set(t, c.at)
			d.must(asking(t, "{}", c.at, denying(full)), c.code)
			if c.code != policy.CodePolicyFailed { // replay refuses such a time
				d.sound()
			}
		})
	}
}

func TestHistoryCountsWhat(t *testing.T) {
	at := statestest.At
	for _, c := range []struct {
		name, cel string
		before    func(*fixture)
		code      policy.Code
	}{
		{"held-counts", `history.count("actor", "1h") >= 1`, func(d *fixture) {
			d.must(asking(d.TB, "{}", at, func(p *rules.Policy) { p.Effect, p.Approvers = rules.Pending, []string{"owners"} }), policy.CodeApprovalRequired)
		}, policy.CodePolicyDenied},
		{"denied-does-not", `history.count_all("actor", "1h") >= 1`, func(d *fixture) {
			d.must(asking(d.TB, "{}", at, denying("true")), policy.CodePolicyDenied)
		}, ""},
		{"denied-by-history-does-not", `history.count("actor", "1h") >= 1`, func(d *fixture) {
			d.must(asking(d.TB, "{}", at, denying(`history.count("actor", "1h") >= 0`)), policy.CodePolicyDenied)
		}, ""},
		{"denied-by-people-does-not", `history.count("actor", "1h") >= 1`, func(d *fixture) {
			id := d.must(asking(d.TB, "{}", at, func(p *rules.Policy) { p.Effect, p.Approvers = rules.Pending, []string{"owners"} }),
				policy.CodeApprovalRequired)
			d.vote(id, d.Approver("dora"), false)
			if _, err := d.RecoverRun(context.Background(), d.replayer(nil), id); err != nil {
				d.TB.Fatal(err)
			}
		}, ""},
		{"another-actor-does-not", `history.count_all("actor", "1h") >= 1`, func(d *fixture) {
			s := asking(d.TB, "{}", at, denying("false"))
			s.Request.Actor = "local:carol"
			d.must(s, "")
		}, ""},
		{"planner-that-asks-back-does-not", `history.count_all("actor", "1h") >= 1`, func(d *fixture) {
			s := statestest.Find(d.TB, "planner-asks-back")
			d.must(&s, "")
		}, ""},
		{"of-a-run-without-a-task", `history.count("task", "1h") >= 1`, func(*fixture) {}, policy.CodePolicyFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			c.before(d)
			d.must(asking(t, "{}", at, denying(c.cel)), c.code)
			d.sound()
		})
	}
	t.Run("of-nobody", func(t *testing.T) {
		s := asking(t, "{}", at, denying(`history.count("actor", "1h") >= 1`))
		s.Request.Actor = ""
		newFixture(t).must(s, policy.CodePolicyFailed)
	})
	t.Run("of-a-task", func(t *testing.T) {
		d := newFixture(t)
		for i, task := range []string{"one", "two", "one"} {
			s := asking(t, "{}", at, denying(`history.count("task", "1h") >= 1`))
			s.Request.Task = task
			d.must(s, []policy.Code{"", "", policy.CodePolicyDenied}[i])
		}
		d.sound()
	})
}

func TestHistorySums(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []string // the arguments of the calls before
		want   string   // what the sum is; empty: it cannot be told
		says   string
		unfit  bool // no double holds it, so the condition fails
	}{
		{"none", nil, "0", "", false},
		{"tenths", []string{`{"o":{"n":0.1}}`, `{"o":{"n":0.2}}`}, "0.3", "", false},
		{"beyond-2^53", []string{`{"o":{"n":9007199254740992}}`, `{"o":{"n":1}}`}, "9007199254740993", "", true},
		{"small-beside-large", []string{`{"o":{"n":1e20}}`, `{"o":{"n":0.5}}`, `{"o":{"n":-1e20}}`}, "0.5", "", false},
		{"missing", []string{`{"o":{"n":1}}`, `{"o":{}}`}, "", `have no "o.n"`, false},
		{"text", []string{`{"o":{"n":"1"}}`}, "", "is no number", false},
		{"null", []string{`{"o":{"n":null}}`}, "", "is no number", false},
		{"on-the-way", []string{`{"o":[1]}`}, "", `have no "o.n"`, false},
		{"too-large", []string{`{"o":{"n":1e400}}`}, "", "double does not hold", false},
		{"too-small", []string{`{"o":{"n":1e-400}}`}, "", "double does not hold", false},
		{"large-arguments", []string{`{"o":{"n":7},"text":"` + strings.Repeat("x", 2*ledger.MaxInline) + `"}`}, "7", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFixture(t)
			for _, args := range c.before {
				d.must(asking(t, args, statestest.At, denying("false")), "")
			}
			s := asking(t, `{"o":{"n":5}}`, statestest.At, denying(`history.sum("actor", "1h", "o.n") > 1e300`))
			run, rec := d.begin(ledgertest.NewID(t), s)
			keep := &statestest.Memory{}
			both := recorders{rec, keep}
			o, err := d.Machine.Advance(context.Background(), run, rec.Effects(s.Entry()), both)
			check.NoError(t, err)
			if failed := o.Code == policy.CodePolicyFailed; failed != (c.want == "" || c.unfit) {
				t.Errorf("outcome %+v", o)
			}
			read := readOf(t, keep)
			if a := read.Values[0]; a.Value != c.want || !strings.Contains(a.Failed, c.says) || (a.Failed == "") != (c.says == "") {
				t.Errorf("the sum is %q, %q; want %q, %q", a.Value, a.Failed, c.want, c.says)
			}
			if _, err := rec.Finish(context.Background(), o); err != nil {
				t.Fatal(err)
			}
			d.sound()
		})
	}
}

type recorders []states.Recorder

func (all recorders) Append(ctx context.Context, s states.Step) error {
	for _, r := range all {
		if err := r.Append(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// readOf is what a run read of calls before.
func readOf(t *testing.T, m *statestest.Memory) *states.HistoryRead {
	t.Helper()
	for _, s := range m.Steps {
		ev, err := states.DecodeEvent(s.Event)
		check.NoError(t, err)
		if read, ok := ev.(*states.HistoryRead); ok {
			return read
		}
	}
	t.Fatal("nothing was read")
	return nil
}

// Of many runs of two processes, some of which are killed at any of their steps, exactly as many call as the policy lets.
func TestHistoryLimitsCalls(t *testing.T) {
	const limit, many = 5, 24
	for _, kill := range []int{0, 3, 7} { // every so many runs are killed; 0: none
		t.Run(fmt.Sprintf("kill-%d", kill), func(t *testing.T) {
			d := newFixture(t)
			fixtures := []*fixture{d, d.other()}
			deny := denying(fmt.Sprintf(`history.count("actor", "1h") >= %d`, limit))
			var mu sync.Mutex
			calls, killed := 0, 0
			round := func(n, kill int) {
				var wg sync.WaitGroup
				for i := range n {
					s := asking(t, "{}", statestest.At, deny)
					d := fixtures[i%2]
					id := ledgertest.NewID(t)
					wg.Go(func() {
						run, rec := d.begin(id, s)
						handler := rec.Effects(s.Entry())
						if kill > 0 && i%kill == 0 {
							handler = &killing{handler, 4 + i%4} // before, at and behind the reading of calls
						}
						o, err := d.Machine.Advance(context.Background(), run, handler, rec)
						if errors.Is(err, errKilled) {
							rec.Abandon()
						} else if err != nil {
							t.Errorf("Advance() = %v", err)
						} else if _, err := rec.Finish(context.Background(), o); err != nil {
							t.Errorf("Finish() = %v", err)
						}
						mu.Lock()
						defer mu.Unlock()
						if calls += len(s.World.Calls); err != nil {
							killed++
						}
					})
				}
				wg.Wait()
			}
			round(many, kill)
			if calls > limit || kill == 0 && calls != limit || kill > 0 && killed == 0 {
				t.Fatalf("%d calls of %d, %d runs killed", calls, limit, killed)
			}
			for _, d := range fixtures { // what was killed gives its place back
				if _, err := d.Recover(context.Background(), d.replayer(nil)); err != nil {
					t.Fatal(err)
				}
			}
			round(many, 0)
			if calls != limit {
				t.Errorf("%d calls, want %d", calls, limit)
			}
			fixtures[0].sound()
		})
	}
}

var errKilled = errors.New("killed")

// killing is the handler of a process that ends at its nth step.
type killing struct {
	states.EffectHandler
	n int
}

func (k *killing) Do(ctx context.Context, command states.Command) (states.Event, error) {
	if _, calls := command.(*states.CallTool); calls {
		return k.EffectHandler.Do(ctx, command) // the server counts the sent calls
	}
	if k.n--; k.n < 0 {
		return nil, errKilled
	}
	return k.EffectHandler.Do(ctx, command)
}

// A held run keeps what it read: it has its place, so calls behind it do not take it away.
func TestHistoryOfAnApprovedRun(t *testing.T) {
	d := newFixture(t)
	rule := func(p *rules.Policy) {
		p.Deny, p.RequireApprovalIf = `history.count("actor", "1h") >= 1`, "args.ask == true"
		p.Approvers = []string{"owners"}
	}
	s := asking(t, `{"ask":true}`, statestest.At, rule)
	id := d.must(s, policy.CodeApprovalRequired)
	d.must(asking(t, `{"ask":false}`, statestest.At, rule), policy.CodePolicyDenied)
	d.must(asking(t, `{"ask":false}`, statestest.At, denying("false")), "") // another rule lets it
	d.vote(id, d.Approver("dora"), true)
	check.NoError(t, d.Claim(context.Background(), id))
	got, err := d.Resume(context.Background(), d.replayer(nil), id, ledger.ResumeOptions{
		Ports:  func(*states.Run) *states.Live { return s.World.Effects().(*states.Live) },
		Bundle: statestest.MustBundle(s.Content, nil),
	})
	if err != nil || len(s.World.Calls) != 1 {
		t.Fatalf("Resume() = %+v, %v, %d calls", got.Outcome, err, len(s.World.Calls))
	}
	d.sound()
}

// The most calls that are looked at, and one more.
func TestHistoryOfTooMany(t *testing.T) {
	d := newFixture(t)
	d.addCalls(ledger.MaxCounted, ledger.RunRow{Actor: statestest.Actor, Tool: statestest.Tool})
	// The run itself is none of the calls before it; the next one finds it, and is one too many.
	deny := denying(fmt.Sprintf(`history.count("actor", "1h") != %d`, ledger.MaxCounted))
	d.must(asking(t, "{}", statestest.At, deny), "")
	d.must(asking(t, "{}", statestest.At, deny), policy.CodePolicyFailed)
}

// What was pruned cannot be counted: a window that reaches there has no answer.
func TestHistoryThatWasPruned(t *testing.T) {
	d := newFixture(t)
	d.must(asking(t, "{}", statestest.At, denying("false")), "")
	at, err := time.Parse(time.RFC3339, statestest.At)
	check.NoError(t, err)
	text := func(after time.Duration) string { return at.Add(after).Format(policy.TimeForm) }
	d.Clock.Set(t, text(3*time.Hour))
	if _, err := d.Prune(context.Background(), ledger.PruneRequest{Before: text(2 * time.Hour), Unstated: true}, root); err != nil {
		t.Fatal(err)
	}
	deny := denying(`history.count("actor", "1h") >= 1`)
	for _, c := range []struct {
		after time.Duration
		code  policy.Code
	}{{3*time.Hour - time.Second, policy.CodePolicyFailed}, {3 * time.Hour, ""}} {
		d.must(asking(t, "{}", text(c.after), deny), c.code)
	}
}
