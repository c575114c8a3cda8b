package e2e

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger"
)

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
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestServeStatus: the result of a call that was made can be fetched, and is not delivered by that.
func TestServeStatus(t *testing.T) {
	t.Parallel()
	o := newOffice(t, holdLook, "")
	front, auditor := strings.TrimSuffix(o.mcp, "/mcp"), makeToken(t, o.config, "auditor", "audrey")
	made := func(t *testing.T, a *agent, args, result string) (run string) {
		t.Helper()
		o.u.Does(mcptest.Writes("application/json", mcptest.Response("ID", result)))
		run = o.held(t, a, args)
		o.decide(t, "approve", run, o.bob)
		o.ended(t, run, ledger.Executed, "")
		return run
	}
	a := o.agent("/mcp", o.ci)
	run := made(t, a, `{"n":1}`, `{"content":[{"type":"text","text":"hi"}],"_meta":{"io.modelcontextprotocol/x":1,"y":2}}`)
	const result = `"result":{"content":[{"type":"text","text":"hi"}],"_meta":{"y":2}}`
	for _, c := range []struct {
		name, at, token string
		status          int
		want            string
	}{
		{"who-asked", front, o.ci, http.StatusOK, result},
		{"another-agent", front, makeToken(t, o.config, "agent", "other"), http.StatusNotFound, "path_unknown"},
		{"nobody", front, "", http.StatusUnauthorized, "send the token that made the request"},
		{"approver-at-the-agents-address", front, o.bob, http.StatusUnauthorized, "token_refused"},
		{"auditor", o.admin, auditor, http.StatusOK, result},
		{"approver", o.admin, o.bob, http.StatusOK, `"result":null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if code, body := status(t, c.at, run, c.token); code != c.status || !strings.Contains(body, c.want) {
				t.Errorf("status %d: %s, want %d and %s", code, body, c.status, c.want)
			}
		})
	}
	r := command(t.Context(), nil, "ledger", "show", "--json", "-c", o.config, run)
	r.Want(t, exitYes)
	var shown struct {
		Result jsontext.Value `json:"result"`
	}
	if err := json.Unmarshal([]byte(r.Stdout), &shown); err != nil || !strings.Contains(string(shown.Result), `"hi"`) ||
		strings.Contains(string(shown.Result), "io.modelcontextprotocol/x") {
		t.Errorf("ledger show: %v %s", err, r.Stdout)
	}
	if got := a.until(t, "echo__look", `{"n":1}`, "approval_required"); got.code() != "hi" || o.u.Calls.Load() != 1 {
		t.Errorf("what was read was delivered by that: %s", got.Raw)
	}
	large := made(t, a, `{"n":2}`, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 64<<10)+`"}]}`)
	for _, at := range []struct{ base, token string }{{front, o.ci}, {o.admin, auditor}} {
		if code, body := status(t, at.base, large, at.token); code != http.StatusOK || !strings.Contains(body, `"result":null`) ||
			!strings.Contains(body, "at most "+strconv.Itoa(64<<10)) {
			t.Errorf("a large result: %d %.300s", code, body)
		}
	}
	verifies(t, o.dir)
}
