package console_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/present"
	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/api"
	"pgfsm/traces/ledger/console"
	"pgfsm/traces/ledger/ledgertest"
)

const (
	alice = ledgertest.Alice
	bob   = ledgertest.Bob
	carol = ledgertest.Carol
)

const (
	here  = "127.0.0.1:9464"      // without TLS
	there = "console.example.com" // behind a proxy with TLS
)

// A fixture is a console over a ledger.
type fixture struct {
	*ledgertest.Fixture
	console *console.Handler
	handler http.Handler
	voted   []string
	logged  sync.Mutex
	log     strings.Builder
	result  jsontext.Value // of every call
	health  present.Health
	id      func() string // of the next run
}

func TestMain(m *testing.M) { os.Exit(ledgertest.Main(m)) }

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return newFixtureAt(t, here, there)
}

func newFixtureAt(t testing.TB, hosts ...string) *fixture {
	t.Helper()
	return newFixtureOn(t, ledgertest.NewStore(t), hosts...)
}

func newFixtureOn(t testing.TB, store ledger.Store, hosts ...string) *fixture {
	t.Helper()
	d := &fixture{Fixture: ledgertest.Open(t, store, ledgertest.NewClock(t)), id: func() string { return ledgertest.NewID(t) }}
	h := console.New(console.Options{
		Service: api.Service{
			Ledger:   d.Ledger,
			Replayer: traces.NewReplayer(statestest.MustMachine(t), nil),
			Hosts:    hosts,
			Voted:    func(b ledger.Ballot) { d.voted = append(d.voted, b.Run) },
			Result: func(context.Context, ledger.Reader, *ledger.RunRow) (jsontext.Value, string, error) {
				return d.result, "", nil
			},
			Log: func(line string) {
				d.logged.Lock()
				defer d.logged.Unlock()
				d.log.WriteString(line + "\n")
			},
		},
		Health: func(context.Context) present.Health { return d.health },
	})
	d.console, d.handler = h, console.WithConsole(h, http.NotFoundHandler())
	return d
}

// A browser has the session of a person.
type browser struct {
	*fixture
	host   string
	base   string // of the session's pages
	cookie string // name=value
}

// A reply is what came back.
type reply struct {
	status int
	header http.Header
	body   string
}

func (d *fixture) browser(host string) *browser {
	return &browser{fixture: d, host: host, base: console.Path}
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
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	got := w.Result()
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	check.NoError(b.TB, err)
	if got.Header.Get("Content-Security-Policy") == "" && got.StatusCode != http.StatusNotFound {
		b.TB.Errorf("%s %s has no policy", r.Method, r.URL)
	}
	return reply{got.StatusCode, got.Header, string(body)}
}

func header(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) { r.Header[name] = values }
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
