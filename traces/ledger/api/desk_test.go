package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/storetest"
)

// The people of the tests. The owners may decide; Carol asks.
const (
	alice = "alice@example.com"
	bob   = "bob@example.com"
	carol = "carol@example.com"
	dave  = "dave@example.com" // has no role
)

// service is where the tests' service is, as its callers say.
const service = "127.0.0.1:9464"

// A desk is a service over a ledger in memory, with a clock that tests set.
type desk struct {
	t       testing.TB
	ledger  *ledger.Ledger
	store   *storetest.Memory
	at      atomic.Int64
	machine *states.Machine
	handler *api.Handler
	voted   []string
	notes   notes
	tokens  map[string]string // by role and name
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	d := &desk{t: t, store: storetest.NewMemory(), machine: statestest.MustMachine(t), tokens: make(map[string]string)}
	d.at.Store(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC).Unix())
	var err error
	if d.ledger, err = ledger.Open(context.Background(), d.store, ledger.Options{Clock: d.now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(d.ledger.Close(), d.store.Close()); err != nil {
			t.Error(err)
		}
	})
	d.handler = api.New(api.Options{
		Ledger: d.ledger, Hosts: []string{service, "approvals.example.com"}, Log: d.notes.add,
		Voted: func(run string) { d.voted = append(d.voted, run) },
	})
	return d
}

func (d *desk) now() time.Time { return time.Unix(d.at.Load(), 0) }

// token returns the token of a person in a role.
func (d *desk) token(role, name string) string {
	d.t.Helper()
	key := role + " " + name
	if d.tokens[key] == "" {
		by := ledger.Local("local:root")
		for known, text := range d.tokens { // in any order: any admin will do
			if strings.HasPrefix(known, ledger.RoleAdmin+" ") {
				who, err := d.ledger.Authenticate(context.Background(), text)
				if err != nil {
					d.t.Fatal(err)
				}
				by = who
			}
		}
		text, _, err := d.ledger.CreateToken(context.Background(), by, name, role, "")
		if err != nil {
			d.t.Fatalf("CreateToken(%q, %q) = %v", name, role, err)
		}
		d.tokens[key] = text
	}
	return d.tokens[key]
}

func content(quorum int) policy.Content {
	c := statestest.Content()
	c.Roles = []policy.Role{{Role: "owners", Actors: []string{alice, bob, carol}}}
	c.Policy = statestest.Policies(rules.Policy{
		ID: "looked-at", Effect: rules.Pending, Reason: "A person looks.", Approvers: []string{"owners"}, Quorum: quorum,
		Expires: int64(time.Hour / time.Millisecond),
	})
	return c
}

// held has Carol ask for a call that waits for people.
func (d *desk) held(quorum int) ledger.Request { return d.asks(carol, content(quorum)) }

// asks takes a request as far as it comes without people.
func (d *desk) asks(actor string, c policy.Content) (q ledger.Request) {
	d.t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		d.t.Fatal(err)
	}
	r := states.Request{
		Actor: actor, At: d.now().UTC().Format(time.RFC3339), Kind: states.KindAsk, Text: canonical.Text(statestest.Question),
	}
	run := states.NewRun(id.String(), r, statestest.MustBundle(c, nil))
	rec := d.ledger.Begin(traces.NewHeader(d.machine, run), run)
	o, err := d.machine.Advance(context.Background(), run, rec.Door(statestest.NewWorld().Door()), rec)
	if err != nil {
		d.t.Fatal(err)
	}
	if o.Type != states.TypePending {
		if _, err := rec.Finish(context.Background(), o); err != nil {
			d.t.Fatal(err)
		}
	}
	err = d.ledger.View(context.Background(), func(r ledger.Reader) (err error) {
		q, err = r.Request(id.String())
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return q
}

// votes counts the ballots that are recorded about a run.
func (d *desk) votes(run string) (n int) {
	d.t.Helper()
	err := d.ledger.View(context.Background(), func(r ledger.Reader) error {
		all, err := ledger.Votes(r, run)
		n = len(all)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

// A reply is what came back.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// code is that of a problem.
func (r reply) code() api.Code {
	var p struct {
		Code api.Code `json:"code"`
	}
	_ = json.Unmarshal(r.body, &p) // an answer has none
	return p.Code
}

func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
}

// call is one call, and what its reply must say in the OpenAPI document is held to it.
func (d *desk) call(method, path, token, body string, change ...func(*http.Request)) reply {
	d.t.Helper()
	r := httptest.NewRequest(method, "http://"+service+path, nil)
	if body != "" {
		r = httptest.NewRequest(method, "http://"+service+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	got := w.Result()
	defer got.Body.Close()
	b, err := io.ReadAll(got.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	out := reply{got.StatusCode, got.Header, b}
	holdToDescription(d.t, method, r.URL.EscapedPath(), out)
	return out
}

func (d *desk) approve(q ledger.Request, token string, change ...func(*http.Request)) reply {
	d.t.Helper()
	return d.call(http.MethodPost, "/approve/"+q.RunID, token, ballot(q, "as agreed"), change...)
}

func (d *desk) deny(q ledger.Request, token string, change ...func(*http.Request)) reply {
	d.t.Helper()
	return d.call(http.MethodPost, "/deny/"+q.RunID, token, ballot(q, "not today"), change...)
}

func ballot(q ledger.Request, reason string) string {
	return string(canonical.MustSorted(map[string]string{"expected_digest": string(q.Binding), "reason": reason}))
}

func header(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = values }
}

// notes are lines of a log.
type notes struct{ text atomic.Pointer[string] }

func (n *notes) add(line string) {
	for {
		before := n.text.Load()
		all := line + "\n"
		if before != nil {
			all = *before + all
		}
		if n.text.CompareAndSwap(before, &all) {
			return
		}
	}
}

func (n *notes) String() string {
	if t := n.text.Load(); t != nil {
		return *t
	}
	return ""
}

// want fails unless the reply is of a status and a code.
func (r reply) want(t testing.TB, status int, code api.Code) {
	t.Helper()
	if r.status != status || r.code() != code {
		t.Errorf("reply = %d %q, want %d %q: %s", r.status, r.code(), status, code, bytes.TrimSpace(r.body))
	}
}
