package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

// withoutThem is the revision without sessions.
const withoutThem = "2026-07-28"

func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wants holds an answer to a refusal: its code, the effect, and what can be done.
func (a answered) wants(t *testing.T, code, effect, retry string) {
	t.Helper()
	if a.Result == nil {
		t.Fatalf("there is no result: %s", a.Raw)
	}
	r := a.Result.Meta.Decision
	if r.Code != code || r.Effect != effect || r.Retry != retry || !a.Result.IsError || r.Reason == "" {
		t.Errorf("the answer is %s, want the code %s, the effect %s and the retry %s", a.Raw, code, effect, retry)
	}
}

// health is the status of /healthz or /readyz.
func (s *served) health(t *testing.T, path string) int {
	t.Helper()
	code, _ := s.gets(t, path, "")
	return code
}

// soon waits until something holds that takes milliseconds, or fails.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	within, cancel := context.WithTimeout(t.Context(), clitest.Patience)
	defer cancel()
	if err := ledger.Poll(within, 5*time.Millisecond, func() (bool, error) { return holds(), nil }); err != nil {
		t.Fatalf("it never came to this: %s", what)
	}
}

// inLedger has a look at the ledger of a folder.
func inLedger(t *testing.T, dir string, look func(ledger.Reader) error) {
	t.Helper()
	store, err := stores.Open(ledgerOf(dir), stores.ToRead)
	check.NoError(t, err)
	defer store.Close()
	check.NoError(t, store.View(t.Context(), look))
}

// ledgerOf is the URL of a folder's ledger: the one in ledger.url, or the file pgfsm.db.
func ledgerOf(dir string) string {
	if url, err := os.ReadFile(filepath.Join(dir, "ledger.url")); err == nil {
		return string(url)
	}
	return "sqlite:" + filepath.Join(dir, "pgfsm.db")
}

// recorded are the runs in the ledger of a folder, the oldest first.
func recorded(t *testing.T, dir string) (all []ledger.RunRow) {
	t.Helper()
	inLedger(t, dir, func(r ledger.Reader) error {
		all = nil
		for q, err := range r.Runs(ledger.Filter{}) {
			if err != nil {
				return err
			}
			all = append(all, q)
		}
		return nil
	})
	return all
}

// stands waits until the one run of a ledger stands as wanted and has ended.
func stands(t *testing.T, dir string, want ledger.Status, code string) {
	t.Helper()
	var all []ledger.RunRow
	soon(t, "one run that has ended", func() bool {
		all = recorded(t, dir)
		return len(all) == 1 && all[0].Ended != ""
	})
	if all[0].Status != want || all[0].Code != code {
		t.Errorf("the run is %s, %q, want %s, %q", all[0].Status, all[0].Code, want, code)
	}
}

func verifies(t *testing.T, dir string) {
	t.Helper()
	inLedger(t, dir, func(r ledger.Reader) error {
		_, err := ledger.Verify(t.Context(), r, ledger.VerifyOptions{})
		return err
	})
}

// A stateless client has no session: every request says all of itself.
type stateless struct {
	s        *served
	url      string
	token    string
	can      string // its capabilities
	progress string // its progress token; empty: it wants none
	session  string // the session that it names; empty: none
}

// ask makes a request about something that has a name, which may be empty.
func (c *stateless) ask(ctx context.Context, method, name, params string) (*http.Response, error) {
	meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s,`+
		`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}`, c.can)
	if c.progress != "" {
		meta += `,"progressToken":` + clitest.Quote(c.progress)
	}
	if c.session != "" {
		meta += `,"io.pgfsm/session":` + clitest.Quote(c.session)
	}
	if params != "" {
		params = "," + params
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}%s}}`, method, meta, params)
	headers := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {withoutThem}, "Mcp-Method": {method}}
	if name != "" {
		headers.Set("Mcp-Name", name)
	}
	if c.token != "" {
		headers.Set("Authorization", "Bearer "+c.token)
	}
	return send(ctx, http.MethodPost, c.url, headers, body)
}

// says makes a request and returns its answer.
func (c *stateless) says(t *testing.T, method, name, params string) answered {
	t.Helper()
	resp, err := c.ask(clitest.Patient(t), method, name, params)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.s.stderr)
	}
	defer resp.Body.Close()
	all, err := messages(resp)
	if err != nil || len(all) == 0 {
		t.Fatalf("%s has no answer: %s, %v\n%s", method, resp.Status, err, c.s.stderr)
	}
	return read(t, all[len(all)-1])
}

func (c *stateless) call(t *testing.T, tool, args string) answered {
	t.Helper()
	return c.says(t, "tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":%s`, tool, args))
}

// messages are those of an answer, to its end.
func messages(resp *http.Response) (all [][]byte, err error) {
	s := &stream{resp: resp, in: bufio.NewScanner(resp.Body)}
	s.in.Buffer(nil, 64<<20)
	for {
		m := s.next()
		if m == nil {
			return all, errors.Join(s.err, s.in.Err())
		}
		all = append(all, m)
	}
}

// A stream is the answer to a request, message by message.
type stream struct {
	resp *http.Response
	in   *bufio.Scanner
	err  error
}

// next is the next message; nil at the end.
func (s *stream) next() []byte {
	if !strings.HasPrefix(s.resp.Header.Get("Content-Type"), "text/event-stream") {
		var body []byte
		body, s.err = io.ReadAll(s.resp.Body)
		return bytes.TrimSpace(body)
	}
	for s.in.Scan() {
		if data, ok := bytes.CutPrefix(s.in.Bytes(), []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
			return bytes.Clone(bytes.TrimSpace(data))
		}
	}
	return nil
}

// status asks an address how a run stands.
func status(t *testing.T, base, run, token string) (int, string) {
	t.Helper()
	return readURL(t, base+"/status/"+run, token)
}

// readURL sends a GET with a token, if there is one.
func readURL(t *testing.T, url, token string) (int, string) {
	t.Helper()
	headers := http.Header{}
	if token != "" {
		headers.Set("Authorization", "Bearer "+token)
	}
	resp, err := send(t.Context(), http.MethodGet, url, headers, "")
	check.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	check.NoError(t, err)
	return resp.StatusCode, string(body)
}

// events are the entries of a type in the ledger of a folder; without a type, all.
func events(t *testing.T, dir string, typ ledger.Type) (all []ledger.Event) {
	t.Helper()
	inLedger(t, dir, func(r ledger.Reader) error {
		all = nil
		for e, err := range ledger.Events(r, 0) {
			if err != nil {
				return err
			}
			if typ == "" || e.Type == typ {
				all = append(all, e)
			}
		}
		return nil
	})
	return all
}
