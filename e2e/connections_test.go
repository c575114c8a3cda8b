package e2e

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

const (
	sealKey    = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
	newSealKey = "YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU="
)

// A whoami is a server that people use with accounts of their own: its tool look answers with the name of the account whose token it
// got, and it repeats the token everywhere.
type whoami struct {
	*httptest.Server
	refused  atomic.Pointer[string] // the server accepts this token no more
	requests atomic.Int32
}

// newLooks returns an MCP server without access control. Its tool look answers with the name of the account and the token of the request.
func newLooks(t *testing.T, nameOf func(*http.Request) string) http.Handler {
	t.Helper()
	inner := mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools))
	inner.SetReply(func(w http.ResponseWriter, r *http.Request, id string) {
		mcptest.SayJSON(w, http.StatusOK, `{"jsonrpc":"2.0","id":`+id+`,"result":{"content":[{"type":"text","text":"`+nameOf(r)+`"},{"type":"text","text":"`+
			r.Header.Get("Authorization")+`"}]}}`)
	})
	to, err := url.Parse(inner.URL)
	check.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // clients may die
	return proxy
}

// argumentOf returns the argument n of a call; empty if the request is none.
func argumentOf(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	n, _ := clitest.ValueAt(body, "/params/arguments/n")
	return string(n)
}

// nameOf returns the name of the account whose token a request has.
func nameOf(r *http.Request) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer pat-"), "-")
	return name
}

func newWhoami(t *testing.T) *whoami {
	t.Helper()
	who, inner := new(whoami), newLooks(t, nameOf)
	who.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who.requests.Add(1)
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if bad := who.refused.Load(); !strings.HasPrefix(token, "pat-") || bad != nil && *bad == token {
			w.Header().Set("WWW-Authenticate", r.Header.Get("Authorization"))
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, r.Header)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(who.Close)
	return who
}

func (who *whoami) folder(t *testing.T, more string, files ...string) string {
	t.Helper()
	ledgerURL := newLedger(t)
	if ledgerURL != inFile {
		files = append(files, "ledger.url", ledgerURL)
	}
	return clitest.Folder(t, append([]string{"pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {forge: {type: http, url: %q, auth: {person: {secret: {hint: "forge.example.com › tokens"}}}}}
allowlist: allowlist.json
connections: {keys: ["${file:connections.key}"]}
ledger: %q
%s`, who.URL, ledgerURL, more), "allowlist.json", `{"forge": ["look"]}`, "connections.key", sealKey}, files...)...)
}

// A browser is signed in at the console of a gateway.
type browser struct {
	t      *testing.T
	client *http.Client
	page   string // the URL of the connections
}

// signedIn signs a person in with a token, from the page that a refusal names.
func signedIn(t *testing.T, s *served, token string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	check.NoError(t, err)
	b := &browser{t: t, client: &http.Client{Jar: jar}}
	status, asked, _ := b.sends(http.MethodGet, s.admin+"/console/connections", nil)
	if status != http.StatusUnauthorized || !strings.Contains(asked, `name="next" value="connections"`) {
		t.Fatalf("the page without a session: %d %s", status, asked)
	}
	status, page, at := b.sends(http.MethodPost, s.admin+"/console/sign-in", url.Values{"token": {token}, "next": {"connections"}})
	if status != http.StatusOK || !strings.HasSuffix(at, "/connections") {
		t.Fatalf("sign-in: %d at %s\n%s", status, at, page)
	}
	b.page = at
	return b
}

func (b *browser) sends(method, at string, form url.Values) (int, string, string) {
	b.t.Helper()
	var body io.Reader = http.NoBody
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, at, body)
	check.NoError(b.t, err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := b.client.Do(req)
	check.NoError(b.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	check.NoError(b.t, err)
	return resp.StatusCode, string(text), resp.Request.URL.String()
}

// connects pastes a token for the server.
func (b *browser) connects(token string) {
	b.t.Helper()
	status, page, _ := b.sends(http.MethodPost, b.page, url.Values{"do": {"connect"}, "server": {"forge"}, "account": {"gh of " + token[:7]}, "token": {token}})
	if status != http.StatusOK || !strings.Contains(page, ">connected<") || strings.Contains(page, token) {
		b.t.Errorf("connect: %d %s", status, page)
	}
}

func (b *browser) disconnects() {
	b.t.Helper()
	if status, page, _ := b.sends(http.MethodPost, b.page, url.Values{"do": {"disconnect"}, "server": {"forge"}}); status != http.StatusOK || !strings.Contains(page, "not connected") {
		b.t.Errorf("disconnect: %d %s", status, page)
	}
}

// lists returns the names of the tools that an agent may call.
func (a *agent) lists() string {
	a.s.t.Helper()
	_, body := a.post(`{"jsonrpc":"2.0","id":99,"method":"tools/list"}`)
	return fmt.Sprint(regexp.MustCompile(`"name":"[^"]*"`).FindAllString(string(body), -1))
}

// TestServeConnections: a person's agent is refused with an address, the person connects an account there, and the same call works; and so for
// another person at the same time, each with their own account. After the end of a connection nothing is sent.
func TestServeConnections(t *testing.T) {
	t.Parallel()
	who := newWhoami(t)
	s := serve(t, who.folder(t, "policy: policy.yaml\n", "policy.yaml", `version: 1
policies:
  - {id: people, match: {tool: look}, effect: pending, when: "has(args.n) && args.n == 2", reason: "People decide.", expires: 1h}
  - {id: rest, match: {tool: "*"}, effect: allow, reason: "Agents may."}
`))
	tokens, agents := make(map[string]string), make(map[string]*agent)
	for _, name := range []string{"ann", "ben"} {
		tokens[name] = makeToken(t, s.config, "person", name)
		agents[name] = s.agent("/mcp", tokens[name])
	}
	robot := s.agent("/mcp", makeToken(t, s.config, "agent", "robot"))
	bob := makeToken(t, s.config, "approver", "bob")

	// Nobody has an account yet: one entry, and one address, the same for everybody.
	ann := agents["ann"]
	if got := ann.lists(); got != `["name":"forge__connect"]` {
		t.Errorf("tools: %s", got)
	}
	for _, tool := range []string{"forge__look", "forge__connect"} {
		for _, a := range []*agent{ann, robot} {
			d := a.call(tool, "{}").Result.Meta.Decision
			if d.Code != "credentials_needed" || d.Effect != "not_sent" || d.Retry != "same" || d.Connect != s.admin+"/console/connections" || d.RunID != "" {
				t.Errorf("%s: %+v", tool, d)
			}
		}
	}

	browsers := make(map[string]*browser)
	for name, a := range agents { // in any order
		browsers[name] = signedIn(t, s, tokens[name])
		browsers[name].connects("pat-" + name + "-4711")
		a.gets(t, "forge__look", "{}", name)
		if got := a.lists(); strings.Contains(got, "connect") || !strings.Contains(got, "forge__look") {
			t.Errorf("tools: %s", got)
		}
		a.gets(t, "forge__connect", "{}", "-32602")
	}
	robot.gets(t, "forge__look", "{}", "credentials_needed")
	ann.gets(t, "forge__look", "{}", "ann")

	// A held call is not made with another connection than the one that it was requested with.
	held := ann.call("forge__look", `{"n":2}`).Result.Meta.Decision
	if held.Code != "approval_required" {
		t.Fatalf("held: %+v", held)
	}
	shown := func(what string) {
		t.Helper()
		command(t.Context(), map[string]string{"PGFSM_TOKEN": bob}, "approvals", "show", "-c", s.config, held.RunID).Expect(t, exitYes, "gh of pat-ann, "+what)
	}
	shown("connected on 20")
	browsers["ann"].connects("pat-ann-4712")
	shown("whose connection has ended: ")
	s.decide(t, "approve", held.RunID, bob)
	ann.becomes(t, "forge__look", `{"n":2}`, "approval_required", "credentials_changed")
	held = ann.call("forge__look", `{"n":2}`).Result.Meta.Decision
	s.decide(t, "approve", held.RunID, bob)
	ann.becomes(t, "forge__look", `{"n":2}`, "approval_required", "ann")

	// The server refuses the token: no call is repeated. The person is told, and the connection goes on, because the refusal may pass.
	shows := func(what string) {
		t.Helper()
		soon(t, "the page shows: "+what, func() bool {
			_, page, _ := browsers["ann"].sends(http.MethodGet, browsers["ann"].page, nil)
			return strings.Contains(page, what)
		})
	}
	refuses := func(token, effect, retry string) {
		t.Helper()
		who.refused.Store(&token)
		for range 2 {
			d := ann.call("forge__look", "{}").Result.Meta.Decision
			if d.Code != "credentials_refused" || d.Effect != effect || d.Retry != retry || d.Connect != s.admin+"/console/connections" {
				t.Errorf("refused: %+v", d)
			}
		}
		shows("the server refused")
		who.refused.Store(nil)
	}
	refuses("pat-ann-4712", "unknown", "look")
	ann.gets(t, "forge__look", "{}", "ann")
	shows(">connected<")
	browsers["ann"].connects("pat-ann-4714")
	refuses("pat-ann-4714", "not_sent", "same") // at the handshake
	refused := "pat-ann-4714"
	who.refused.Store(&refused)
	if got := ann.lists(); got != `["name":"forge__connect"]` {
		t.Errorf("tools: %s", got)
	}
	who.refused.Store(nil)
	ann.gets(t, "forge__look", "{}", "ann")
	agents["ben"].gets(t, "forge__look", "{}", "ben")

	browsers["ben"].disconnects()
	agents["ben"].gets(t, "forge__look", "{}", "credentials_needed")
	browsers["ben"].connects("pat-ben-4713")
	agents["ben"].gets(t, "forge__look", "{}", "ben")
	for _, list := range []string{"ben", "ann"} {
		r := command(t.Context(), nil, "connections", "revoke", "-c", s.config, list)
		r.Want(t, exitYes)
	}
	agents["ben"].gets(t, "forge__look", "{}", "credentials_needed")

	s.stop(t, exitYes)
	export := command(t.Context(), nil, "ledger", "export", "-c", s.config).Stdout
	written := export + s.stderr.String() + command(t.Context(), nil, "connections", "list", "-c", s.config).Stdout
	for _, types := range []string{"connection.made", "connection.ended", "access.refused"} {
		if !strings.Contains(export, types) {
			t.Errorf("no %s in the log", types)
		}
	}
	if !onPostgres() {
		written += clitest.Read(t, filepath.Join(s.dir, "pgfsm.db"))
	}
	clitest.WantNone(t, "written", written, "pat-ann-4711", "pat-ann-4712", "pat-ann-4714", "pat-ben-4711", "pat-ben-4713", sealKey)
	verifies(t, s.dir)
}
