package api_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/ledgertest"
)

const (
	alice = ledgertest.Alice
	bob   = ledgertest.Bob
	carol = ledgertest.Carol
)

// Hosts of the tests' service.
const (
	here  = "127.0.0.1:9464"        // without TLS
	there = "approvals.example.com" // behind a proxy with TLS
)

// A fixture is a service over a ledger.
type fixture struct {
	*ledgertest.Fixture
	handler *api.Handler
	voted   []string
	notes   notes
	result  jsontext.Value    // of every call
	id      func() string     // of the next run
	task    string            // of requests; calls of a task are held unless their target is found
	tokens  map[string]string // by role and name
}

func TestMain(m *testing.M) { os.Exit(ledgertest.Main(m)) }

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return newFixtureOn(t, ledgertest.NewStore(t), here, there)
}

func newFixtureOn(t testing.TB, store ledger.Store, hosts ...string) *fixture {
	t.Helper()
	d := &fixture{
		Fixture: ledgertest.Open(t, store, ledgertest.NewClock(t)),
		id:      func() string { return ledgertest.NewID(t) },
		tokens:  make(map[string]string),
	}
	d.handler = api.New(api.Options{
		Ledger:   d.Ledger,
		Replayer: traces.NewReplayer(d.Machine, nil),
		Hosts:    hosts,
		Log:      d.notes.add,
		Voted:    func(b ledger.Ballot) { d.voted = append(d.voted, b.Run) },
		Result: func(context.Context, ledger.Reader, *ledger.RunRow) (jsontext.Value, string, error) {
			return d.result, "", nil
		},
	})
	return d
}

// change replaces the service by one with other options.
func (d *fixture) change(changes ...func(*api.Options)) {
	o := d.handler.Options
	for _, change := range changes {
		change(&o)
	}
	d.handler = api.New(o)
}

// token returns the token of a person in a role, the same each time. Once there is an admin, the admin makes it.
func (d *fixture) token(role, name string) string {
	d.TB.Helper()
	key := role + " " + name
	if d.tokens[key] == "" {
		by := ledger.LocalUser("local:root")
		for known, text := range d.tokens { // in any order: any admin will do
			if strings.HasPrefix(known, ledger.RoleAdmin+" ") {
				by = d.Caller(text)
			}
		}
		text, _, err := d.CreateToken(d.TB.Context(), by, name, role, "")
		check.NoError(d.TB, err)
		d.tokens[key] = text
	}
	return d.tokens[key]
}

// A reply is the response to a request.
type reply struct {
	status int
	header http.Header
	body   string
}

// send sends a request to the handler.
func (d *fixture) send(r *http.Request, change ...func(*http.Request)) reply {
	d.TB.Helper()
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	got := w.Result()
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	check.NoError(d.TB, err)
	if got.Header.Get("Content-Security-Policy") == "" {
		d.TB.Errorf("%s %s has no policy", r.Method, r.URL)
	}
	return reply{got.StatusCode, got.Header, string(body)}
}

// code returns the code of a problem.
func (r reply) code() api.Code {
	var p struct {
		Code api.Code `json:"code"`
	}
	_ = json.Unmarshal([]byte(r.body), &p) // an answer has none
	return p.Code
}

func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v, json.MatchCaseInsensitiveNames(true)); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
}

// wantCode fails unless the reply has a status and a code.
func (r reply) wantCode(t testing.TB, status int, code api.Code) {
	t.Helper()
	if r.status != status || r.code() != code {
		t.Errorf("reply = %d %q, want %d %q: %s", r.status, r.code(), status, code, strings.TrimSpace(r.body))
	}
}

// want fails unless a reply has a status, and its body the words.
func (r reply) want(t testing.TB, status int, words ...string) {
	t.Helper()
	if r.status != status {
		t.Errorf("the status is %d, want %d: %s", r.status, status, r.body)
	}
	for _, w := range words {
		if !strings.Contains(r.body, w) {
			t.Errorf("the page does not say %q: %.2000s", w, r.body[strings.Index(r.body, "<main")+1:])
		}
	}
}

// call sends a request to the API, and compares the reply with the OpenAPI document.
func (d *fixture) call(method, path, token, body string, change ...func(*http.Request)) reply {
	d.TB.Helper()
	r := httptest.NewRequest(method, "http://"+here+path, nil)
	if body != "" {
		r = httptest.NewRequest(method, "http://"+here+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	got := d.send(r, change...)
	holdToDescription(d.TB, method, r.URL.EscapedPath(), got)
	return got
}

func (d *fixture) approve(q ledger.RunRow, token string, change ...func(*http.Request)) reply {
	d.TB.Helper()
	return d.call(http.MethodPost, "/approve/"+q.RunID, token, ballot(q, "as agreed"), change...)
}

func (d *fixture) deny(q ledger.RunRow, token string, change ...func(*http.Request)) reply {
	d.TB.Helper()
	return d.call(http.MethodPost, "/deny/"+q.RunID, token, ballot(q, "not today"), change...)
}

func ballot(q ledger.RunRow, reason string) string {
	return string(canonical.MustSorted(map[string]string{"expected_digest": string(q.Binding), "reason": reason}))
}

func header(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = values }
}

// A browser has the session of a person in the console.
type browser struct {
	*fixture
	host   string
	base   string // of the session's pages
	cookie string // name=value
}

func (d *fixture) browser(host string) *browser {
	return &browser{fixture: d, host: host, base: api.ConsolePath}
}

// signedIn signs a person in.
func (d *fixture) signedIn(host, name, role string) *browser {
	d.TB.Helper()
	b := d.browser(host)
	got := b.post("/console/sign-in", url.Values{"token": {d.Token(name, role)}, "next": {""}})
	b.takes(got)
	return b
}

// takes keeps the session that a reply begins.
func (b *browser) takes(got reply) {
	b.TB.Helper()
	c, err := http.ParseSetCookie(got.header.Get("Set-Cookie"))
	if err != nil || got.status != http.StatusSeeOther {
		b.TB.Fatalf("nobody is signed in: %d %v %s", got.status, err, got.body)
	}
	b.cookie, b.base = c.Name+"="+c.Value, got.header.Get("Location")
}

func (b *browser) get(path string, change ...func(*http.Request)) reply {
	b.TB.Helper()
	return b.do(httptest.NewRequest(http.MethodGet, "http://"+b.host+path, nil), change...)
}

// page gets a page of the session.
func (b *browser) page(path string, change ...func(*http.Request)) reply {
	b.TB.Helper()
	return b.get(b.base+path, change...)
}

func (b *browser) post(path string, fields url.Values, change ...func(*http.Request)) reply {
	b.TB.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://"+b.host+path, strings.NewReader(fields.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.do(r, change...)
}

// vote sends the form of a call's page.
func (b *browser) vote(q ledger.RunRow, vote, reason string, change ...func(*http.Request)) reply {
	b.TB.Helper()
	return b.post(b.base+"calls/"+q.RunID, url.Values{"vote": {vote}, "digest": {string(q.Binding)}, "reason": {reason}}, change...)
}

func (b *browser) do(r *http.Request, change ...func(*http.Request)) reply {
	b.TB.Helper()
	if b.cookie != "" {
		r.Header.Set("Cookie", b.cookie)
	}
	return b.send(r, change...)
}

// notes are lines of a log.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text.WriteString(line + "\n")
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}
