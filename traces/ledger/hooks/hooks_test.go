package hooks_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/hooks"
	"pgfsm/traces/ledger/ledgertest"
)

const (
	alice  = ledgertest.Alice
	bob    = ledgertest.Bob
	carol  = ledgertest.Carol
	secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

	remindBefore = 15 * time.Minute // held calls of these tests expire after an hour
)

// A fixture is a ledger.
type fixture struct{ *ledgertest.Fixture }

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return &fixture{ledgertest.New(t)}
}

// votes casts a ballot.
func (d *fixture) votes(q ledger.RunRow, name string, approve bool) {
	d.TB.Helper()
	v := ledgertest.Ballot(q, d.Approver(name))
	v.Approve, v.Reason = approve, "I say so"
	d.Cast(v)
}

func TestMain(m *testing.M) { os.Exit(ledgertest.Main(m)) }

// A letter is what a receiver got.
type letter struct {
	ID, At, Signature string
	Body              []byte
	Type              string
	Data              struct {
		Run, Actor, Binding, Outcome, Decide string
		Votes                                []struct{ By, Outcome, Reason string }
	}
}

// A mailbox is a web hook. It gives the scripted answers in order, and then 204.
type mailbox struct {
	*httptest.Server
	mu      sync.Mutex
	answers []int
	letters []letter
}

func newMailbox(t testing.TB, answers ...int) *mailbox {
	m := &mailbox{answers: answers}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		l := letter{ID: r.Header.Get("webhook-id"), At: r.Header.Get("webhook-timestamp"), Signature: r.Header.Get("webhook-signature"), Body: body}
		if err == nil {
			err = json.Unmarshal(body, &l, json.MatchCaseInsensitiveNames(true))
		}
		if err != nil {
			t.Error(err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.letters = append(m.letters, l)
		status := http.StatusNoContent
		if len(m.answers) > 0 {
			status, m.answers = m.answers[0], m.answers[1:]
		}
		if status/100 == 3 {
			w.Header().Set("Location", m.URL+"/elsewhere")
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(m.Close)
	return m
}

// got are the letters so far.
func (m *mailbox) got() []letter {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.letters)
}

// kinds are what the letters say, in order.
func (m *mailbox) kinds() (all []string) {
	for _, l := range m.got() {
		all = append(all, strings.TrimPrefix(l.Type, "approval.")+" "+l.Data.Run+l.Data.Outcome)
	}
	return all
}

// sender is a sender of another process on the fixture's ledger.
func (d *fixture) sender(to ...hooks.Hook) *hooks.Sender {
	d.TB.Helper()
	return d.senderOn(d.Store, hooks.Options{Hooks: to})
}

func (d *fixture) senderOn(store hooks.Store, o hooks.Options) *hooks.Sender {
	d.TB.Helper()
	o.RemindBefore = remindBefore
	o.DecideAt = func(run string) string { return "https://approvals.example.com/" + run }
	if o.Log == nil {
		o.Log = func(string) {}
	}
	s, err := hooks.New(store, o)
	check.NoError(d.TB, err)
	s.Set(d.Clock.Now, time.Millisecond, 10*time.Second)
	check.NoError(d.TB, s.Begin(context.Background()))
	return s
}

func hook(m *mailbox, kinds ...string) hooks.Hook {
	if len(kinds) == 0 {
		kinds = []string{hooks.Requested, hooks.Decided}
	}
	return hooks.Hook{URL: m.URL + "/hook", Secret: secret, Events: kinds}
}

func look(t testing.TB, s *hooks.Sender) {
	t.Helper()
	if err := s.Look(context.Background()); err != nil {
		t.Fatalf("Look() = %v", err)
	}
}

func wantKinds(t testing.TB, m *mailbox, want ...string) {
	t.Helper()
	if got := m.kinds(); !slices.Equal(got, want) {
		t.Errorf("the hook got %q, want %q", got, want)
	}
}

// delivery is the row of the hook's last message.
func (d *fixture) waiting() (all []ledger.Delivery) {
	d.TB.Helper()
	err := d.Store.View(context.Background(), func(r ledger.Reader) error {
		for row, err := range r.Deliveries("", "9999-12-31T23:59:59.000Z", 100) {
			if err != nil {
				return err
			}
			all = append(all, row)
		}
		return nil
	})
	check.NoError(d.TB, err)
	return all
}

// TestSignature holds signatures to the example of the Standard Webhooks specification's reference libraries.
func TestSignature(t *testing.T) {
	got, err := hooks.Sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("sign() = %s, %v, want %s", got, err, want)
	}
}

// TestMessages shows the messages of a hook: they are signed and contain no arguments.
func TestMessages(t *testing.T) {
	d, m := newFixture(t), newMailbox(t)
	s := d.sender(hook(m))
	look(t, s)
	q := d.Hold(2)
	d.votes(q, alice, true) // decides nothing yet
	d.votes(q, bob, true)
	denied := d.Hold(1)
	d.votes(denied, alice, false)
	late := d.Hold(1)
	d.Clock.Add(time.Hour)
	if _, err := d.Ledger.Recover(context.Background(), traces.NewReplayer(d.Machine, nil)); err != nil {
		t.Fatal(err)
	}
	look(t, s)
	wantKinds(t, m, "requested "+q.RunID, "decided "+q.RunID+"approved", "requested "+denied.RunID, "decided "+denied.RunID+"denied",
		"requested "+late.RunID,
		"decided "+q.RunID+"expired", // nobody took up what was approved
		"decided "+late.RunID+"expired")
	ids := make(map[string]bool)
	for _, l := range m.got() {
		var at int64
		if _, err := fmt.Sscan(l.At, &at); err != nil || at != d.Clock.Now().Unix() {
			t.Errorf("webhook-timestamp = %q, %v", l.At, err)
		}
		if want, err := hooks.Sign(secret, l.ID, at, l.Body); err != nil || l.Signature != want {
			t.Errorf("webhook-signature = %q, want %q, %v", l.Signature, want, err)
		}
		if strings.Contains(string(l.Body), "policy-002") {
			t.Errorf("the message holds the arguments: %s", l.Body)
		}
		if want := "https://approvals.example.com/" + l.Data.Run; l.Data.Decide != want {
			t.Errorf("decide = %q, want %q", l.Data.Decide, want)
		}
		ids[l.ID] = true
	}
	if len(ids) != 7 {
		t.Errorf("%d ids for 7 messages", len(ids))
	}
	if l := m.got()[1]; len(l.Data.Votes) != 2 || l.Data.Votes[1].By != bob || l.Data.Actor != carol || l.Data.Binding != string(q.Binding) {
		t.Errorf("message = %s", l.Body)
	}
}

// Everybody who gets the messages about prunes learns at once who removed what.
func TestMessagesAboutPrunes(t *testing.T) {
	d, told, other := newFixture(t), newMailbox(t), newMailbox(t)
	s := d.sender(hook(told, hooks.Pruned), hook(other))
	look(t, s)
	d.PassMessages(3)
	d.Clock.Add(time.Hour)
	before := d.Clock.Now().UTC().Format(policy.TimeForm)
	if _, err := d.Prune(t.Context(), ledger.PruneRequest{Before: before, Unstated: true}, ledger.LocalUser("local:root")); err != nil {
		t.Fatal(err)
	}
	look(t, s)
	letters := told.got()
	if len(letters) != 1 || letters[0].Type != "ledger.pruned" || len(other.got()) != 0 {
		t.Fatalf("%d messages, and %d to a hook without these", len(letters), len(other.got()))
	}
	for _, want := range []string{`"by":"local:root"`, `"kind":"retention"`, `"before":"` + before + `"`, `"signed":false`, `"unstated":true`} {
		if !strings.Contains(string(letters[0].Body), want) {
			t.Errorf("the message lacks %s: %s", want, letters[0].Body)
		}
	}
	if retentions, erasures, err := d.CountPrunes(t.Context()); retentions != 1 || erasures != 0 || err != nil {
		t.Errorf("CountPrunes() = %d, %d, %v", retentions, erasures, err)
	}
}

// A hook gets the events after it was first seen, even if that is the ledger's first event or another process sends them.
func TestWhereAHookBegins(t *testing.T) {
	d, m := newFixture(t), newMailbox(t)
	look(t, d.sender(hook(m)))
	first := d.Hold(1)
	look(t, d.sender(hook(m)))
	wantKinds(t, m, "requested "+first.RunID)
	later := newMailbox(t)
	look(t, d.sender(hook(later)))
	second := d.Hold(1)
	look(t, d.sender(hook(later)))
	wantKinds(t, later, "requested "+second.RunID)
}

// Between two messages there may be any number of entries without one.
func TestManyOtherEntries(t *testing.T) {
	d, m := newFixture(t), newMailbox(t)
	s := d.sender(hook(m, hooks.Decided))
	look(t, s)
	d.PassMessages(hooks.MaxEntries + 1)
	q := d.Hold(1)
	d.votes(q, alice, false)
	look(t, s)
	wantKinds(t, m, "decided "+q.RunID+"denied")
}

// What fails is sent again, the same under the same id, after each pause and not before; at last it is given up, and the
// next message has its turn.
func TestAttempts(t *testing.T) {
	answers := slices.Repeat([]int{http.StatusInternalServerError}, hooks.MaxAttempts)
	d, m := newFixture(t), newMailbox(t, answers...)
	s := d.sender(hook(m))
	look(t, s)
	first, second := d.Hold(1), d.Hold(1)
	look(t, s)
	for i, pause := range hooks.Pauses {
		d.Clock.Add(pause - time.Second)
		look(t, s)
		if n := len(m.got()); n != i+1 {
			t.Fatalf("%d attempts one second before pause %d is over, want %d", n, i, i+1)
		}
		if w := d.waiting(); len(w) != 1 || w[0].Attempts != i+1 || w[0].Error != "it answered with status 500" {
			t.Fatalf("waiting = %+v after attempt %d", w, i+1)
		}
		d.Clock.Add(time.Second)
		look(t, s)
	}
	var want []string
	for range hooks.MaxAttempts {
		want = append(want, "requested "+first.RunID)
	}
	wantKinds(t, m, append(want, "requested "+second.RunID)...)
	all := m.got()
	for _, l := range all[:hooks.MaxAttempts] {
		if l.ID != all[0].ID || string(l.Body) != string(all[0].Body) {
			t.Errorf("an attempt is %s %s, the first was %s %s", l.ID, l.Body, all[0].ID, all[0].Body)
		}
	}
	if w := d.waiting(); len(w) != 0 {
		t.Errorf("waiting = %+v, want none", w)
	}
}

// TestBadReceivers: each is tried again, none is followed elsewhere, and none of them holds up anything.
func TestBadReceivers(t *testing.T) {
	leave := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does a server notice that the caller has left
		select {
		case <-leave:
		case <-r.Context().Done():
		}
	}))
	defer hangs.Close()
	defer close(leave)
	drips := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("x", 64<<10)); err != nil {
				return
			}
		}
	}))
	defer drips.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, c := range []struct {
		name, url string
		answer    int
		want      string // empty: it was taken
	}{
		{"hangs", hangs.URL, 0, "deadline exceeded"},
		{"nobody-listens", gone.URL, 0, "refused"},
		{"moved", "", http.StatusMovedPermanently, "status 301"},
		{"not-found", "", http.StatusNotFound, "status 404"},
		{"answers-without-end", drips.URL, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, m := newFixture(t), newMailbox(t, c.answer)
			if c.url == "" {
				c.url = m.URL
			}
			s := d.sender(hooks.Hook{URL: c.url, Secret: secret, Events: []string{hooks.Requested, hooks.Decided}})
			if c.name == "hangs" {
				s.Set(d.Clock.Now, time.Millisecond, 200*time.Millisecond)
			}
			look(t, s)
			q := d.Hold(1)
			look(t, s)
			w := d.waiting()
			if c.want == "" {
				if len(w) != 0 {
					t.Errorf("waiting = %+v, want none", w)
				}
				return
			}
			if len(w) != 1 || w[0].Attempts != 1 || !strings.Contains(w[0].Error, c.want) || strings.Contains(w[0].Error, c.url) {
				t.Errorf("waiting = %+v, want one with %q", w, c.want)
			}
			if c.answer != 0 && len(m.got()) != 1 {
				t.Errorf("the receiver was asked %d times, want once", len(m.got()))
			}
			d.votes(q, alice, true) // decides, with or without a message
		})
	}
}
