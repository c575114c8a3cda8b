package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/telemetry/otlptest"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
)

// An oauthForge is an MCP server whose authorization server is a provider. Its tool look answers with the subject of its token.
type oauthForge struct {
	*httptest.Server
	*identitytest.Provider
	issuer string // as its metadata names it

	mu      sync.Mutex
	seen    []string            // access tokens, codes and states
	refused map[string]struct{} // tokens that it accepts no more
	asks    string              // the scopes for lack of which it refuses calls; empty: none
	calls   int
}

func newOAuthForge(t *testing.T) *oauthForge {
	t.Helper()
	o := &oauthForge{Provider: identitytest.New(t), refused: make(map[string]struct{})}
	o.issuer, o.Rotate, o.Withheld = o.Issuer, true, "gist"
	o.Clients["forge-client"] = "forge-secret"
	o.Override("/authorize", func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		o.Default(answer, r)
		if back, err := answer.Result().Location(); err == nil {
			o.mu.Lock()
			o.seen = append(o.seen, back.Query().Get("code"), back.Query().Get("state"))
			o.mu.Unlock()
			http.Redirect(w, r, back.String(), http.StatusFound)
		}
	})
	inner := newLooks(t, subjectOf)
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/oauth-protected-resource" {
			identitytest.Answer(w, http.StatusOK, map[string]any{"resource": o.URL, "authorization_servers": []string{o.issuer}, "scopes_supported": []string{"repo", "gist"}})
			return
		}
		if challenge, status := o.judge(r); status != http.StatusOK {
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(status)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(o.Server.Close)
	return o
}

// subjectOf returns the subject of a request's token; empty without one.
func subjectOf(r *http.Request) string {
	sub, _ := claimsOf(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	return sub
}

// claimsOf returns the subject of an access token, and the family of its refresh token.
func claimsOf(token string) (sub, family string) {
	var claims struct{ Sub, Sid string }
	if parts := strings.Split(token, "."); len(parts) == 3 {
		text, _ := base64.RawURLEncoding.DecodeString(parts[1])
		_ = json.Unmarshal(text, &claims)
	}
	return claims.Sub, claims.Sid
}

func (o *oauthForge) judge(r *http.Request) (challenge string, status int) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	o.mu.Lock()
	defer o.mu.Unlock()
	if token != "" {
		o.seen = append(o.seen, token)
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	call := bytes.Contains(body, []byte(`"tools/call"`))
	if call {
		o.calls++
	}
	if _, refused := o.refused[token]; refused || subjectOf(r) == "" {
		return `Bearer error="invalid_token"`, http.StatusUnauthorized
	}
	if o.asks != "" && call {
		return `Bearer error="insufficient_scope", scope="` + o.asks + `"`, http.StatusForbidden
	}
	return "", http.StatusOK
}

// called counts the calls that arrived.
func (o *oauthForge) called() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

// refuseSeen makes the server refuse the tokens that it has seen.
func (o *oauthForge) refuseSeen() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, token := range o.seen {
		o.refused[token] = struct{}{}
	}
}

// ask makes the server ask for scopes when it gets a call.
func (o *oauthForge) ask(scopes string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asks = scopes
}

func (o *oauthForge) folder(t *testing.T, more ...string) string {
	t.Helper()
	ledgerURL, files := newLedger(t), []string(nil)
	if ledgerURL != inFile {
		files = append(files, "ledger.url", ledgerURL)
	}
	return clitest.Folder(t, append([]string{"pgfsm.yaml", fmt.Sprintf(`version: 1
servers:
  forge:
    url: %q
    auth: {person: {oauth: {issuer: %q, client_id: forge-client, client_secret: "${file:forge.secret}", scopes: [repo, gist, openid], account: /name}}}
allowlist: allowlist.json
connections: {keys: ["${file:connections.key}"]}
ledger: %q
%s`, o.URL, o.Issuer, ledgerURL, strings.Join(more, "")), "allowlist.json", `{"forge": ["look"]}`, "connections.key", sealKey, "forge.secret", "forge-secret"}, files...)...)
}

var continueAt = regexp.MustCompile(`id="continue" href="([^"]*)"`)

// begins begins to connect an account, and returns the URL of the authorization server.
func (b *browser) begins() string {
	b.t.Helper()
	status, page, _ := b.sends(http.MethodPost, b.page, url.Values{"do": {"connect"}, "server": {"forge"}})
	found := continueAt.FindStringSubmatch(page)
	if status != http.StatusOK || found == nil {
		b.t.Fatalf("connect: %d %s", status, page)
	}
	return html.UnescapeString(found[1])
}

// authorizes connects the account of a user at the authorization server.
func (b *browser) authorizes(o *oauthForge, user string) {
	b.t.Helper()
	o.SignIn(user)
	status, page, at := b.sends(http.MethodGet, b.begins(), nil)
	if status != http.StatusOK || at != b.page || !strings.Contains(page, ">connected<") {
		b.t.Fatalf("back at %s: %d %s", at, status, page)
	}
}

// TestServeOAuthConnections: people connect accounts at an authorization server that notices when a refresh token comes twice. Each call has its
// person's token; refused tokens are refreshed, and no call is sent again.
func TestServeOAuthConnections(t *testing.T) {
	t.Parallel()
	forge := newOAuthForge(t)
	forge.Users["ann"], forge.Users["ben"] = map[string]any{"name": "Ann at the forge"}, map[string]any{"name": "Ben"}
	spans := otlptest.New(t)
	s := serve(t, forge.folder(t, exporting(spans, 100)))
	people, agents, browsers := []string{"ann", "ben", "cat"}, make(map[string]*agent), make(map[string]*browser)
	tokens := make(map[string]string)
	for _, name := range people {
		token := makeToken(t, s.config, "person", name)
		tokens[name] = token
		agents[name], browsers[name] = s.agent("/mcp", token), signedIn(t, s, token)
		agents[name].gets(t, "forge__look", "{}", "credentials_needed")
		browsers[name].authorizes(forge, name)
		agents[name].gets(t, "forge__look", "{}", name)
	}
	if _, page, _ := browsers["ann"].sends(http.MethodGet, browsers["ann"].page, nil); !strings.Contains(page, "Ann at the forge") || !strings.Contains(page, "openid, repo") {
		t.Errorf("the page: %s", page)
	}
	ann := agents["ann"]

	// The server accepts the tokens no more: the call is not repeated, and the next one has another token.
	forge.refuseSeen()
	before := forge.called()
	ann.gets(t, "forge__look", `{"n":7}`, "credentials_refused")
	if sent := forge.called() - before; sent != 1 {
		t.Errorf("the call was sent %d times", sent)
	}
	ann.gets(t, "forge__look", `{"n":8}`, "ann")
	agents["ben"].gets(t, "forge__look", `{"n":9}`, "credentials_refused")
	agents["ben"].gets(t, "forge__look", `{"n":9}`, "ben")

	// The server asks for scopes: they are offered as far as the configuration allows, and not asked for.
	requests := forge.Requests("/token")
	forge.ask("gist admin")
	if d := ann.call("forge__look", `{"n":10}`).Result.Meta.Decision; d.Code != "credentials_refused" || !strings.Contains(d.Reason, `"gist admin"`) {
		t.Errorf("without the scopes: %+v", d)
	}
	forge.ask("")
	ann.gets(t, "forge__look", `{"n":11}`, "ann")
	if _, page, _ := browsers["ann"].sends(http.MethodGet, browsers["ann"].page, nil); !strings.Contains(page, "<b>gist</b>") || strings.Contains(page, "admin") || forge.Requests("/token") != requests {
		t.Errorf("after the server asked for scopes: %d token requests\n%s", forge.Requests("/token")-requests, page)
	}

	// What ends is revoked at the issuer, by whatever it ends. Neither an answer nor a command depends on that.
	if forge.Reuses() != 0 || forge.Live() != 3 {
		t.Errorf("%d refresh tokens came twice, %d families are live", forge.Reuses(), forge.Live())
	}
	browsers["ben"].disconnects()
	soon(t, "ben's tokens are revoked", func() bool { return forge.Live() == 2 })
	agents["ben"].gets(t, "forge__look", "{}", "credentials_needed")
	command(t.Context(), nil, "token", "revoke", "-c", s.config, strings.Split(tokens["cat"], "_")[1]).Want(t, exitYes)
	if forge.Live() != 1 {
		t.Errorf("%d families are live", forge.Live())
	}
	forge.Override("/revoke", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusBadGateway) })
	r := command(t.Context(), nil, "connections", "revoke", "-c", s.config, "ann")
	if r.Want(t, exitYes); !strings.Contains(r.Stderr, "forge: the revocation endpoint answered with the status 502") {
		t.Errorf("revoke: %s", r.Stderr)
	}
	ann.gets(t, "forge__look", "{}", "credentials_needed")

	s.stop(t, exitYes)
	written := command(t.Context(), nil, "ledger", "export", "-c", s.config).Stdout + s.stderr.String() + spans.Bodies()
	if path := filepath.Join(s.dir, "pgfsm.db"); ledgerOf(s.dir) == inFile {
		written += clitest.Read(t, path)
	}
	clitest.WantNone(t, "written", written, append(forge.seen, "refresh-", "forge-secret")...)
	verifies(t, s.dir)
}

// TestRefreshAfterReload: a person calls a server while the operator replaces the key. Their tokens are refreshed as before.
func TestRefreshAfterReload(t *testing.T) {
	t.Parallel()
	forge := newOAuthForge(t)
	s := serve(t, forge.folder(t))
	token := makeToken(t, s.config, "person", "ann")
	ann := s.agent("/mcp", token)
	signedIn(t, s, token).authorizes(forge, "ann")
	ann.gets(t, "forge__look", `{"n":1}`, "ann")

	clitest.Write(t, filepath.Join(s.dir, "new.key"), newSealKey)
	admin, original := map[string]string{"PGFSM_TOKEN": makeToken(t, s.config, "admin", "root")}, clitest.Read(t, s.config)
	const key = `"${file:connections.key}"`
	for _, keys := range []string{`"${file:new.key}", ` + key, `"${file:new.key}"`} {
		clitest.Write(t, s.config, strings.Replace(original, key, keys, 1))
		command(t.Context(), admin, "reload", "-c", s.config, "--url", s.admin).Want(t, exitYes)
		command(t.Context(), admin, "connections", "reseal", "-c", s.config).Want(t, exitYes)
	}
	forge.refuseSeen()
	ann.gets(t, "forge__look", `{"n":2}`, "ann")
	s.stop(t, exitYes)
	verifies(t, s.dir)
}

// TestDiscoverAndRegister: the operator gets the configuration from the server's address, and a client from its authorization server.
func TestDiscoverAndRegister(t *testing.T) {
	t.Parallel()
	forge := newOAuthForge(t)
	r := command(t.Context(), nil, "connections", "discover", forge.URL)
	r.Expect(t, exitYes, `scopes: ["repo", "gist", "offline_access"]`)
	elsewhere := strings.Replace(forge.URL, "127.0.0.1", "localhost", 1)
	command(t.Context(), nil, "connections", "discover", elsewhere).Expect(t, exitCould, "another resource")
	config := filepath.Join(clitest.Folder(t, "pgfsm.yaml", "version: 1\n"+r.Stdout+`allowlist: allowlist.json
connections: {keys: ["${file:connections.key}"]}
serve: {admin_url: "https://gateway.example.com"}
`, "allowlist.json", `{"server": ["look"]}`, "connections.key", sealKey), "pgfsm.yaml")
	command(t.Context(), nil, "config", "check", "-c", config).Want(t, exitYes)
	r = command(t.Context(), nil, "connections", "register", "server", "-c", config, "--json")
	r.Want(t, exitYes, "/redirect_uri", "https://gateway.example.com/console/connected/server")
	if secret, known := forge.Clients[r.Member("/client_id")]; !known || secret != "" {
		t.Errorf("register: %s", r.Stdout)
	}

	forge.issuer = "https://evil.example.com\"\n  x: y"
	for _, args := range [][]string{{"discover", forge.URL}, {"discover", "http://forge.example.com/mcp"}, {"register", "wiki", "-c", config}} {
		if r := command(t.Context(), nil, append([]string{"connections"}, args...)...); r.Code == exitYes {
			t.Errorf("%q: %s", args, r.Stdout)
		}
	}
}

// TestServeHostileCallbacks: a response of the authorization server counts in the session that began, once, and for its server. Nothing else
// makes a request to the token endpoint, or a connection.
func TestServeHostileCallbacks(t *testing.T) {
	t.Parallel()
	forge := newOAuthForge(t)
	s := serve(t, forge.folder(t))
	token, other := makeToken(t, s.config, "person", "ann"), makeToken(t, s.config, "person", "eve")
	b, eve := signedIn(t, s, token), signedIn(t, s, other)
	forge.SignIn("ann")
	response := func(b *browser) *url.URL {
		t.Helper()
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		got, err := client.Get(b.begins())
		check.NoError(t, err)
		got.Body.Close()
		back, err := got.Location()
		check.NoError(t, err)
		if back.Path != "/console/connected/forge" {
			t.Fatalf("the authorization server sends the browser to %s", back)
		}
		return back
	}
	edited := func(back *url.URL, edit func(url.Values)) string {
		q, to := back.Query(), *back
		edit(q)
		to.RawQuery = q.Encode()
		return to.String()
	}
	mine, theirs := response(b), response(eve)
	same := func(url.Values) {}
	for _, tt := range []struct {
		name string
		b    *browser
		at   string
	}{
		{"of-another-session", b, theirs.String()},
		{"in-another-session", eve, mine.String()},
		{"without-a-state", b, edited(mine, func(q url.Values) { q.Del("state") })},
		{"error-with-another-state", b, edited(mine, func(q url.Values) { q.Set("state", "x"); q.Set("error", "access_denied") })},
		{"for-another-server", b, strings.Replace(mine.String(), "/forge?", "/wiki?", 1)},
		{"without-a-session", &browser{t: t, client: http.DefaultClient}, mine.String()},
		{"at-the-page-of-the-session", b, strings.Replace(edited(theirs, same), s.admin+"/console/connected/", strings.TrimSuffix(b.page, "connections")+"connecting/", 1)},
	} {
		status, page, _ := tt.b.sends(http.MethodGet, tt.at, nil)
		if status < 400 || forge.Requests("/token") != 0 {
			t.Errorf("%s: %d, %d token requests\n%s", tt.name, status, forge.Requests("/token"), page)
		}
	}

	// An answer of another issuer, and one that names none, end the attempt without a request.
	for _, edit := range []func(url.Values){func(q url.Values) { q.Set("iss", "https://evil.example.com") }, func(q url.Values) { q.Del("iss") }} {
		if status, page, _ := b.sends(http.MethodGet, edited(response(b), edit), nil); status != http.StatusBadGateway || forge.Requests("/token") != 0 {
			t.Errorf("iss: %d, %d token requests\n%s", status, forge.Requests("/token"), page)
		}
	}

	// The right response counts once.
	mine = response(b)
	for n, want := range []int{http.StatusOK, http.StatusNotFound} {
		if status, page, _ := b.sends(http.MethodGet, mine.String(), nil); status != want || forge.Requests("/token") != 1 {
			t.Errorf("response %d: %d, %d token requests\n%s", n, status, forge.Requests("/token"), page)
		}
	}

	// The server names another issuer: nobody is sent there, and a connection that exists goes on.
	forge.issuer = "https://evil.example.com"
	if status, page, _ := b.sends(http.MethodPost, b.page, url.Values{"do": {"connect"}, "server": {"forge"}}); status != http.StatusServiceUnavailable || continueAt.MatchString(page) {
		t.Errorf("another issuer: %d %s", status, page)
	}
	ann := s.agent("/mcp", token)
	ann.gets(t, "forge__look", "{}", "ann")

	// The server refuses the token at the handshake of another session: there it is refreshed, and the call is sent once.
	forge.refuseSeen()
	another, before := &stateless{s: s, url: s.mcp, token: token, can: `{}`}, forge.called()
	if got := another.call(t, "forge__look", `{}`); got.code() != "ann" || forge.called() != before+1 {
		t.Errorf("after a refusal at the handshake: %d calls, %s", forge.called()-before, got.Raw)
	}

	// The tokens have expired, and the authorization server has none for now: nothing is sent, and the connection stays.
	forge.issuer = forge.Issuer
	forge.Override("/token", func(w http.ResponseWriter, _ *http.Request) {
		identitytest.Answer(w, http.StatusOK, map[string]any{"access_token": forge.Sign(nil), "token_type": "Bearer", "refresh_token": "refresh-1234", "expires_in": -1})
	})
	b.authorizes(forge, "ann")
	sent := forge.called()
	forge.Override("/token", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "down", http.StatusBadGateway) })
	for range 2 {
		ann.gets(t, "forge__look", "{}", "no_servers")
	}
	if _, page, _ := b.sends(http.MethodGet, b.page, nil); !strings.Contains(page, ">connected<") || forge.called() != sent {
		t.Errorf("%d calls with expired tokens\n%s", forge.called()-sent, page)
	}
	s.stop(t, exitYes)
	if !strings.Contains(s.stderr.String(), "does not name the issuer") {
		t.Errorf("the log: %s", s.stderr)
	}
}
