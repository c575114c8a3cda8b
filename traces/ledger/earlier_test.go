package ledger_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	labels "pgfsm/policy/origin"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/postgres"
	"pgfsm/traces/ledger/postgres/pgtest"
	"pgfsm/traces/ledger/sqlite"
)

// elsewhere does something in another session of the same requester.
func (s *clientSession) elsewhere(do func()) {
	own := s.request
	s.request.Session, s.request.Task = &states.Session{Client: "claude", ID: "s-0"}, ""
	do()
	s.request = own
}

// creates has the agent create a contact, in this session.
func (s *clientSession) creates(args string) ledger.RunRow {
	return s.call(create, args, `{"content":[]}`)
}

// TestOriginsOfEarlierSessions: what an earlier call of the requester sent without a source does not become trusted in a later session.
func TestOriginsOfEarlierSessions(t *testing.T) {
	const bob = `{"email":"bob@example.com"}`
	held := rules.Policy{ID: "held", Match: rules.Match{Tool: create}, Effect: rules.Pending}
	for _, c := range []struct {
		name   string
		before func(*clientSession)
		want   ledger.Status
	}{
		{"nothing-sent", func(s *clientSession) { s.creates(`{"email":"carl@example.com"}`) }, ledger.Executed},
		{"in-another-session", func(s *clientSession) { s.creates(bob) }, ledger.Pending},
		{"without-a-session", func(s *clientSession) { s.request.Session = nil; s.creates(bob) }, ledger.Pending},
		{"in-a-task", func(s *clientSession) { s.request.Session, s.request.Task = nil, "t-1"; s.creates(bob) }, ledger.Pending},
		{"within-a-text", func(s *clientSession) { s.creates(`{"card":"N:Bob\nEMAIL:BOB@example.com\n"}`) }, ledger.Pending},
		{"within-a-name", func(s *clientSession) { s.creates(`{"contacts":{"bob@example.com":"Bob"}}`) }, ledger.Pending},
		{"percent-encoded", func(s *clientSession) { s.creates(`{"url":"contact?email=bob%40example.com"}`) }, ledger.Pending},
		{"by-another-person", func(s *clientSession) { s.request.Actor = "eve"; s.creates(bob) }, ledger.Executed},
		{"held", func(s *clientSession) {
			s.content.Policy.Policies = append([]rules.Policy{held}, s.content.Policy.Policies...)
			s.creates(bob)
		}, ledger.Executed},
		{"denied", func(s *clientSession) {
			s.content.Policy.Policies = append([]rules.Policy{{ID: "no", Match: rules.Match{Tool: create}, Effect: rules.Deny}}, s.content.Policy.Policies...)
			s.creates(bob)
		}, ledger.Executed},
		{"approved", func(s *clientSession) {
			s.content.Policy.Policies = append([]rules.Policy{held}, s.content.Policy.Policies...)
			s.approves(s.creates(bob).RunID)
		}, ledger.Executed},
		{"found-there", func(s *clientSession) {
			s.prompt("Add bob@example.com to my contacts.")
			s.call(send, `{"body":"Hello","to":"bob@example.com"}`, `{"content":[]}`)
		}, ledger.Executed},
		{"found-there-but-also-beside-it", func(s *clientSession) {
			s.prompt("Add bob@example.com to my contacts.")
			s.call(send, `{"body":"This is for bob@example.com (Bob).","to":"bob@example.com"}`, `{"content":[]}`)
		}, ledger.Executed},
		{"trusted-there-and-later-within-a-text", func(s *clientSession) {
			s.call(contacts, "{}", contactsFound)
			s.call(send, `{"body":"Hello","to":"bob@example.com"}`, `{"content":[]}`)
			s.request.Session = nil
			s.call(mails, `{"query":"from:bob@example.com invoices"}`, mailsFound)
		}, ledger.Executed},
		{"trusted-there-and-within-a-text-before-it-was-used", func(s *clientSession) {
			s.call(contacts, "{}", contactsFound)
			s.call(mails, `{"query":"from:bob@example.com invoices"}`, mailsFound)
			s.call(send, `{"body":"Hello","to":"bob@example.com"}`, `{"content":[]}`)
		}, ledger.Executed},
		{"trusted-there-by-labels-of-that-time", func(s *clientSession) {
			now := s.content.Labels.Tools
			s.content.Labels.Tools = append(now[:1:1], labels.ToolLabel{Server: statestest.Server, Tool: mails, Results: "trusted"})
			s.call(mails, "{}", `{"content":[{"type":"text","text":"bob@example.com"}]}`)
			s.call(send, `{"body":"Hello","to":"bob@example.com"}`, `{"content":[]}`)
			s.content.Labels.Tools = now
			s.creates(bob)
		}, ledger.Executed},
		{"trusted-but-never-used", func(s *clientSession) {
			s.call(contacts, "{}", contactsFound)
			s.call(mails, `{"query":"from:bob@example.com invoices"}`, mailsFound)
		}, ledger.Pending},
		{"planted-and-then-in-the-request", func(s *clientSession) {
			s.creates(bob)
			s.prompt("Who is bob@example.com?")
			s.call(send, `{"body":"Who are you?","to":"bob@example.com"}`, `{"content":[]}`)
		}, ledger.Pending},
		{"found-there-and-later-not", func(s *clientSession) {
			s.prompt("Add bob@example.com to my contacts.")
			s.call(send, `{"body":"Hello","to":"bob@example.com"}`, `{"content":[]}`)
			s.request.Session = nil
			s.creates(bob)
		}, ledger.Pending},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, newFixture(t))
			s.elsewhere(func() { c.before(s) })
			s.content.Policy = notFound().Policy
			s.call(contacts, "{}", contactsFound)
			if status := s.sends("bob@example.com"); status != c.want {
				t.Errorf("the call is %s, want %s", status, c.want)
			}
			s.prompt("Write to bob@example.com.")
			if status := s.sends("bob@example.com"); status != ledger.Executed && c.want == ledger.Executed {
				t.Errorf("the call to a recipient of the prompt is %s", status)
			}
			s.sound()
			(&forgery{"nothing-changed", unedited, ""}).run(t, s.fixture)
		})
	}
}

// TestOriginsBeyondTheBounds: with more earlier calls than are looked at nothing is found, and the record says why. What was found before stays right.
func TestOriginsBeyondTheBounds(t *testing.T) {
	for _, c := range []struct {
		name string
		much func(*clientSession)
		why  string
	}{
		{"arguments-of-the-requester", func(s *clientSession) {
			s.elsewhere(func() {
				for i := range 2*ledger.MaxEarlierBytes/(900<<10) + 1 {
					s.creates(fmt.Sprintf(`{"note":"%d %s"}`, i, strings.Repeat("x", 900<<10)))
				}
			})
		}, "the requester has made more than"},
		{"calls-of-the-session", func(s *clientSession) {
			for range 2 * ledger.MaxSessionCalls {
				s.call(mails, "{}", mailsFound)
			}
		}, "the session has more than 1024 calls"},
		{"results-of-the-session", func(s *clientSession) {
			for range 3 {
				s.call(contacts, "{}", `{"structuredContent":{"contacts":[{"email":"`+strings.Repeat("x", ledger.MaxSessionBytes)+`"}]}}`)
			}
		}, "4194304 bytes of results"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t, newFixture(t))
			s.Clock.Tick(time.Millisecond)
			s.call(contacts, "{}", contactsFound)
			if status := s.sends("bob@example.com"); status != ledger.Executed {
				t.Errorf("before, the call is %s", status)
			}
			c.much(s)
			for range 2 {
				s.call(contacts, "{}", contactsFound)
				row := s.call(send, `{"body":"Hello","to":"bob@example.com"}`, `{"content":[]}`)
				s.Inspect(func(r ledger.Reader) error {
					origins, err := ledger.OriginsOf(r, row.RunID)
					if err == nil && (row.Status != ledger.Pending || !strings.Contains(origins.Failed, c.why)) {
						t.Errorf("the call is %s: %q", row.Status, origins.Failed)
					}
					return err
				})
			}
			s.sound()
		})
	}
}

// TestOriginsForTwoPeople: what an agent sent for one person is no echo for another.
func TestOriginsForTwoPeople(t *testing.T) {
	s := newSession(t, newFixture(t))
	for _, c := range []struct {
		task, person string
		want         ledger.Status
	}{{"t-2", issuer + "#fay", ledger.Executed}, {"t-3", eve, ledger.Pending}} {
		s.asksInATask(eve)
		if c.person != eve {
			s.creates(`{"email":"bob@example.com"}`)
		}
		s.asksInATask(c.person)
		s.request.Task = c.task
		s.call(contacts, "{}", contactsFound)
		if status := s.sends("bob@example.com"); status != c.want {
			t.Errorf("for %s the call is %s, want %s", c.person, status, c.want)
		}
	}
	s.sound()
}

// approves approves a held call, which is then made.
func (s *clientSession) approves(run string) {
	s.vote(run, s.Approver("dora"), true)
	check.NoError(s.TB, s.Claim(s.TB.Context(), run))
	world := s.world(`{"content":[]}`)
	resumed, err := s.Resume(s.TB.Context(), s.replayer(nil), run, ledger.ResumeOptions{
		Ports:  func(*states.Run) *states.Live { return world.Effects().(*states.Live) },
		Bundle: statestest.MustBundle(s.content, nil),
	})
	if err != nil || len(world.Calls) != 1 {
		s.TB.Fatalf("Resume() = %+v, %v, and %d calls", resumed.Outcome, err, len(world.Calls))
	}
}

// TestOriginsAfterALateReport: a client that reports too late with which arguments it ran a call has sent these.
func TestOriginsAfterALateReport(t *testing.T) {
	for name, c := range map[string]struct { // the order does not matter
		ran  string
		want ledger.Status
	}{
		"as-permitted":   {"", ledger.Executed},
		"otherwise":      {`{"email":"bob@example.com"}`, ledger.Pending},
		"with-other":     {`{"email":"carl@example.com"}`, ledger.Executed},
		"with-something": {"?", ledger.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			s := newSession(t, d)
			hooked := statestest.Find(t, "hook-unreported")
			hooked.Request.Actor, hooked.Request.Session = "ann", &states.Session{Call: "call-1", Client: "claude", ID: "s-0"}
			run := ledgertest.NewID(t)
			_, _, err := d.play(run, &hooked)
			check.NoError(t, err)
			report := &states.CallReported{Arguments: d.Run(run).Arguments}
			switch c.ran {
			case "":
			case "?":
				report.Arguments = canonical.Sum("arguments", []byte(`{"email":"bob@example.com"}`))
			default:
				report.Ran = jsontext.Value(c.ran)
				report.Arguments = canonical.Sum("arguments", report.Ran)
			}
			s.call(mails, "{}", mailsFound)
			if _, err := d.Report(t.Context(), d.replayer(nil), run, s.hook, report); err != nil {
				t.Fatalf("a late report: %v", err)
			}
			s.call(contacts, "{}", contactsFound)
			if status := s.sends("bob@example.com"); status != c.want {
				t.Errorf("the call is %s, want %s", status, c.want)
			}
			d.sound()
		})
	}
}

// TestMemoryOfEarlierCalls: a process remembers no more of what a client says than it looks at.
func TestMemoryOfEarlierCalls(t *testing.T) {
	large := strings.Repeat("x", 900<<10)
	for name, say := range map[string]func(*clientSession, string){ // the order does not matter
		"late-reports": func(s *clientSession, run string) {
			s.asksHook(run, "hook-unreported", "")
			ran := jsontext.Value(`{"note":"` + run + large + `"}`)
			_, err := s.Report(s.TB.Context(), s.replayer(nil), run, s.hook, &states.CallReported{Ran: ran, Arguments: canonical.Sum("arguments", ran)})
			check.NoError(s.TB, err)
		},
		"permits-without-a-report": func(s *clientSession, run string) { s.asksHook(run, "hook-not-reported-yet", run+large) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, newFixture(t))
			heap := func() (bytes uint64) {
				s.call(contacts, "{}", contactsFound)
				s.sends("bob@example.com")
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			before := heap()
			for i := range 60 {
				if say(s, ledgertest.NewID(t)); i%10 == 9 {
					heap()
				}
			}
			if after := heap(); after > before+4*ledger.MaxEarlierBytes {
				t.Errorf("the process has %d bytes more", after-before)
			}
			s.sound()
		})
	}
}

// asksHook plays a scenario of hooks in a session of its own, with this text in the arguments.
func (s *clientSession) asksHook(run, scenario, text string) {
	s.TB.Helper()
	hooked := statestest.Find(s.TB, scenario)
	hooked.Request.Actor, hooked.Request.Session = "ann", &states.Session{Call: "call-1", Client: "claude", ID: run}
	if text != "" {
		hooked.Request.Text = []byte(strings.Replace(string(hooked.Request.Text), `"args":{`, `"args":{"sections":["`+text+`"],`, 1))
	}
	_, _, err := s.play(run, &hooked)
	check.NoError(s.TB, err)
}

// TestOriginsAfterAPrune: a look finds no call that was pruned, and what was found before it cannot be judged.
func TestOriginsAfterAPrune(t *testing.T) {
	s := newSession(t, newFixture(t))
	signer, vkey := s.newKey()
	var planted ledger.RunRow
	s.elsewhere(func() { planted = s.creates(`{"email":"bob@example.com"}`) })
	for range 10 { // a process remembers them
		s.call(mails, "{}", mailsFound)
	}
	s.call(contacts, "{}", contactsFound)
	if status := s.sends("bob@example.com"); status != ledger.Pending {
		t.Fatalf("the call is %s", status)
	}
	order := ledger.PruneOrder{Origin: signer.Name(), Kind: ledger.PruneErasure, Entries: []ledger.Range{s.rangeOf(planted.RunID)}}
	_, err := s.Prune(t.Context(), ledger.PruneRequest{Order: ordered(t, signer, order), Reason: "mistake"}, root)
	check.NoError(t, err)
	s.request.Session = &states.Session{Client: "claude", ID: "s-2"}
	s.call(contacts, "{}", contactsFound)
	if status := s.sends("bob@example.com"); status != ledger.Executed {
		t.Errorf("after the prune, the call is %s", status)
	}
	s.Inspect(func(r ledger.Reader) error {
		report, err := ledger.Verify(t.Context(), r, ledger.VerifyOptions{Replayer: s.replayer(nil), Keys: trusted(t, vkey).Log})
		if err == nil && (report.Deep.Unjudged != 1 || report.Deep.Otherwise != 0 || !strings.Contains(report.Deep.FirstUnjudged.What, "pruned")) {
			t.Errorf("the report is %+v", report.Deep)
		}
		return err
	})
}

// TestOriginsOfTwoGateways: calls of one requester at two processes interleave, and every run finds what was there before it, on each store.
func TestOriginsOfTwoGateways(t *testing.T) {
	clock := ledgertest.NewClock(t)
	clock.Tick(time.Millisecond)
	for name, open := range map[string]func(testing.TB) func() ledger.Store{ // the order does not matter
		"sqlite": func(tb testing.TB) func() ledger.Store {
			path := filepath.Join(tb.TempDir(), "ledger.db")
			return func() ledger.Store {
				store, err := sqlite.Open(path)
				check.NoError(tb, err)
				return store
			}
		},
		"postgres": func(tb testing.TB) func() ledger.Store {
			c := pgtest.Start(tb)
			check.NoError(tb, c.Exec(tb.Context(), pgtest.Superuser, "CREATE DATABASE gateways"))
			check.NoError(tb, c.Ledger(tb.Context(), "gateways"))
			return func() ledger.Store {
				store, err := postgres.Open(c.URL("pgfsm_serve", "gateways") + "&lease=9s")
				check.NoError(tb, err)
				return store
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t)
			s := newSession(t, fixtureAt(t, store(), clock))
			other := *s
			other.fixture = fixtureAt(t, store(), clock)
			callAtTwoGateways(s, &other)
		})
	}
}

func callAtTwoGateways(s, other *clientSession) {
	t, calls := s.TB, 60
	if os.Getenv("PGFSM_SOAK") != "" {
		calls = 1_000
	}
	s.prompt("Send it to carl@example.com.")
	person := func(gateway, i int) string { return fmt.Sprintf("person-%d-%d@example.com", gateway, i) }
	writes := func(s *clientSession, to string, want ledger.Status) {
		s.call(contacts, "{}", strings.Replace(contactsFound, "bob@example.com", to, 1))
		if status := s.sends(to); status != want {
			t.Errorf("the call to %s is %s, want %s", to, status, want)
		}
	}
	var group sync.WaitGroup
	for g, gateway := range []*clientSession{s, other} {
		group.Go(func() {
			for i := range calls / 6 {
				gateway.elsewhere(func() { gateway.creates(`{"email":"` + person(g, 2*i) + `"}`) })
				writes(gateway, person(g, 2*i), ledger.Pending)
				writes(gateway, person(g, 2*i+1), ledger.Executed)
			}
		})
	}
	group.Wait()
	writes(s, person(1, calls), ledger.Executed)
	other.elsewhere(func() { other.creates(`{"email":"` + person(1, calls+1) + `"}`) })
	writes(s, person(1, calls+1), ledger.Pending)
	s.sound()
}
