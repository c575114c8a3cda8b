package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// issuedBy serves a gateway to clients that have tokens of an issuer.
func issuedBy(t *testing.T, issuer string) *office {
	t.Helper()
	o := &office{u: mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools))}
	o.dir = clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {echo: {type: http, url: %q}}
allowlist: allowlist.json
ledger: %s
identity:
  required: true
  scopes: [mcp:call, mcp:read]
  issuers: [{issuer: "%s"}]
`, o.u.URL, inFile, issuer), "allowlist.json", `{"echo": ["look"]}`)
	o.served = serve(t, o.dir)
	return o
}

// TestInteropOAuthClients: the TypeScript SDK's OAuth clients sign in at an OpenID Provider, from nothing but the URL of an endpoint.
func TestInteropOAuthClients(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	port := freePort(t)
	in.listen(t, port, nil, interopFile(t, "fixtures/oidc-provider.mjs"), fmt.Sprint(port))
	issuer := fmt.Sprintf("http://127.0.0.1:%d", port)
	o := issuedBy(t, issuer)
	made := int32(0)
	registered, unregistered, lessAtFirst := &oauthClient{ID: "registered"}, &oauthClient{}, &oauthClient{ID: "less-at-first"}
	robot := &oauthClient{ID: "robot", Secret: "s3cret-of-the-robot", Issuer: issuer}
	robotWithScope := &oauthClient{robot.ID, robot.Secret, robot.Issuer, "mcp:call mcp:read"}
	for _, c := range []struct {
		name, script, mode string
		oauth              *oauthClient // nil for mcp-remote
		asks               int          // how often the client sends its user to the provider, as far as it says so
	}{
		{"sdk-v1-registered", "sdk-v1", "http", registered, 1},
		{"sdk-v1-registers-itself", "sdk-v1", "http", unregistered, 1},
		{"sdk-v1-sse", "sdk-v1", "sse", registered, 1},
		{"sdk-v1-client-credentials", "sdk-v1", "http", robotWithScope, 0},
		{"sdk-v1-mcp-remote", "sdk-v1", "stdio", nil, 0},
		{"sdk-v2-legacy-registered", "sdk-v2", "legacy", registered, 1},
		{"sdk-v2-legacy-registers-itself", "sdk-v2", "legacy", unregistered, 1},
		{"sdk-v2-legacy-scope-missing-at-first", "sdk-v2", "legacy", lessAtFirst, 2},
		{"sdk-v2-auto-registers-itself", "sdk-v2", "auto", unregistered, 1},
		{"sdk-v2-auto-scope-missing-at-first", "sdk-v2", "auto", lessAtFirst, 2},
		{"sdk-v2-auto-client-credentials", "sdk-v2", "auto", robot, 0},
	} {
		for path, tool := range map[string]string{"/mcp": "echo__look", "/servers/echo/mcp": "look"} { // in any order
			if c.mode == "sse" {
				path = strings.Replace(path, "/mcp", "/sse", 1)
			}
			t.Run(c.name+strings.ReplaceAll(path, "/", "-"), func(t *testing.T) {
				order := clientOrder{URL: o.base + path, OAuth: c.oauth, Calls: []clientCall{{Name: tool, Arguments: jsontext.Value(`{"n":1}`)}}}
				if c.oauth == nil {
					order.Command = []string{"env", "BROWSER=" + in.node + " " + interopFile(t, "clients/browser.mjs"), in.node,
						filepath.Join(in.modules, "mcp-remote", "dist", "proxy.js"), order.URL}
				}
				report := in.drive(t, c.script, c.mode, order)
				if !slices.Equal(report.Tools, []string{tool}) || len(report.Answers) != 1 || report.Answers[0] != (clientAnswer{Text: "hi"}) {
					t.Errorf("tools %q, answers %+v\n%s", report.Tools, report.Answers, o.stderr)
				}
				made++
				if len(report.Authorizations) != c.asks {
					t.Errorf("%d authorization requests, want %d", len(report.Authorizations), c.asks)
				}
				for _, asked := range report.Authorizations {
					scopes := slices.Sorted(strings.FieldsSeq(asked["scope"]))
					if asked["resource"] != order.URL || asked["code_challenge_method"] != "S256" || !slices.Equal(scopes, []string{"mcp:call", "mcp:read"}) {
						t.Errorf("an authorization request has the parameters %v", asked)
					}
				}
			})
		}
	}
	o.u.Reached(t, made)
	actors := map[string]int32{}
	for _, run := range recorded(t, o.dir) {
		actors[run.Actor]++
	}
	if diff := cmp.Diff(map[string]int32{issuer + "#ann": made - 4, issuer + "#robot": 4}, actors); diff != "" {
		t.Errorf("calls by actor:\n%s", diff)
	}
	verifies(t, o.dir)
}

// TestInteropIssuedTokens: a token of another author's authorization server is verified, and refused if one claim is wrong.
func TestInteropIssuedTokens(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	port := freePort(t)
	in.listen(t, port, nil, interopFile(t, "fixtures/oauth2-mock-server.mjs"), fmt.Sprint(port))
	issuer := fmt.Sprintf("http://localhost:%d", port)
	o := issuedBy(t, issuer)
	right := map[string]any{"sub": "ci", "client_id": "robot", "aud": o.mcp, "scope": "mcp:read mcp:call"}
	a, now := o.agent("/mcp", issued(t, issuer, right)), time.Now()
	for _, c := range []struct {
		name   string
		claims map[string]any
		status int
	}{
		{"all-claims-right", nil, http.StatusOK},
		{"several-audiences", map[string]any{"aud": []string{"https://other.example.com", o.mcp}}, http.StatusOK},
		{"another-audience", map[string]any{"aud": "https://other.example.com"}, http.StatusUnauthorized},
		{"audience-of-another-endpoint", map[string]any{"aud": o.base + "/servers/echo/mcp"}, http.StatusUnauthorized},
		{"no-audience", map[string]any{"aud": nil}, http.StatusUnauthorized},
		{"another-issuer", map[string]any{"iss": issuer + "/"}, http.StatusUnauthorized},
		{"no-client", map[string]any{"client_id": nil}, http.StatusUnauthorized},
		{"expired", map[string]any{"exp": now.Add(-2 * time.Minute).Unix()}, http.StatusUnauthorized},
		{"not-valid-yet", map[string]any{"nbf": now.Add(3 * time.Minute).Unix()}, http.StatusUnauthorized},
		{"scope-missing", map[string]any{"scope": "mcp:read"}, http.StatusForbidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			claims := maps.Clone(right)
			maps.Copy(claims, c.claims)
			a.token = issued(t, issuer, claims)
			if resp, body := a.post(callMessage("echo__look", `{"n":1}`)); resp.StatusCode != c.status {
				t.Errorf("%s, want %d: %s\n%s", resp.Status, c.status, body, o.stderr)
			}
		})
	}
	o.u.Reached(t, 2)
	verifies(t, o.dir)
}

// issued is a token of oauth2-mock-server with some claims.
func issued(t *testing.T, issuer string, claims map[string]any) string {
	t.Helper()
	text, err := json.Marshal(claims)
	check.NoError(t, err)
	form := url.Values{"grant_type": {"client_credentials"}, "claims": {string(text)}}
	resp, err := send(t.Context(), http.MethodPost, issuer+"/token", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, form.Encode())
	check.NoError(t, err)
	defer resp.Body.Close()
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.UnmarshalRead(resp.Body, &answer); err != nil || answer.Token == "" {
		t.Fatalf("%s: %v", resp.Status, err)
	}
	return answer.Token
}
