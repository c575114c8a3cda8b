package api_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

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
	dave  = ledgertest.Dave
)

// service is where the tests' service is, as its callers say.
const service = "127.0.0.1:9464"

// A fixture is a service over a ledger.
type fixture struct {
	*ledgertest.Fixture
	handler *api.Handler
	voted   []string
	notes   notes
	tokens  map[string]string // by role and name
}

func TestMain(m *testing.M) { os.Exit(ledgertest.Main(m)) }

func newFixture(t testing.TB) *fixture {
	t.Helper()
	d := &fixture{Fixture: ledgertest.New(t), tokens: make(map[string]string)}
	d.handler = api.New(api.Options{
		Service: api.Service{
			Ledger:   d.Ledger,
			Replayer: traces.NewReplayer(d.Machine, nil),
			Hosts:    []string{service, "approvals.example.com"},
			Log:      d.notes.add,
			Voted:    func(b ledger.Ballot) { d.voted = append(d.voted, b.Run) },
		},
	})
	return d
}

// token returns the token of a person in a role.
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
		text, _, err := d.Ledger.CreateToken(context.Background(), by, name, role, "")
		if err != nil {
			d.TB.Fatalf("CreateToken(%q, %q) = %v", name, role, err)
		}
		d.tokens[key] = text
	}
	return d.tokens[key]
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
func (d *fixture) call(method, path, token, body string, change ...func(*http.Request)) reply {
	d.TB.Helper()
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
	check.NoError(d.TB, err)
	out := reply{got.StatusCode, got.Header, b}
	holdToDescription(d.TB, method, r.URL.EscapedPath(), out)
	return out
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

// notes are lines of a log.
type notes struct {
	mu   sync.Mutex
	text strings.Builder
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

// want fails unless the reply is of a status and a code.
func (r reply) want(t testing.TB, status int, code api.Code) {
	t.Helper()
	if r.status != status || r.code() != code {
		t.Errorf("reply = %d %q, want %d %q: %s", r.status, r.code(), status, code, bytes.TrimSpace(r.body))
	}
}
