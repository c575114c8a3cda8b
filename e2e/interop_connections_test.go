package e2e

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
)

// newGuarded is an MCP server for people with tokens of an issuer. Its tool look answers with the person.
func newGuarded(t *testing.T, issuer string) *httptest.Server {
	t.Helper()
	looks := newLooks(t, subjectOf)
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const metadata = "/.well-known/oauth-protected-resource"
		switch {
		case r.URL.Path == metadata:
			identitytest.Answer(w, http.StatusOK, map[string]any{
				"resource": s.URL, "authorization_servers": []string{issuer}, "scopes_supported": []string{"openid", "mcp:call"},
			})
		case subjectOf(r) == "":
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+s.URL+metadata+`"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			looks.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// signsInAt connects the person's account at a server: at its provider the person says who they are, on a page if it has one.
func (b *browser) signsInAt(server, person string) {
	b.t.Helper()
	_, page, _ := b.sends(http.MethodPost, b.page, url.Values{"do": {"connect"}, "server": {server}})
	found := continueAt.FindStringSubmatch(page)
	if found == nil {
		b.t.Fatalf("%s connects %s: %s", person, server, page)
	}
	status, page, at := b.sends(http.MethodGet, html.UnescapeString(found[1])+"&login="+person, nil)
	if strings.Contains(page, `name="login"`) {
		status, page, at = b.sends(http.MethodPost, at, url.Values{"login": {person}})
	}
	if status != http.StatusOK || at != b.page || !strings.Contains(page, ">connected<") {
		b.t.Fatalf("%s comes back from %s at %s: %d %s", person, server, at, status, page)
	}
}

// TestInteropConnections: two people use clients that others wrote at once, and two servers with providers that others wrote. Each is refused with
// one address, signs in there and connects an account at each provider; then the same calls are made with the person's own accounts.
func TestInteropConnections(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	oidc, mock := freePort(t), freePort(t)
	in.listen(t, oidc, nil, interopFile(t, "fixtures/oidc-provider.mjs"), fmt.Sprint(oidc), "asks")
	in.listen(t, mock, nil, interopFile(t, "fixtures/oauth2-mock-server.mjs"), fmt.Sprint(mock))
	issuers := []string{fmt.Sprintf("http://127.0.0.1:%d", oidc), fmt.Sprintf("http://localhost:%d", mock)}
	notes, wiki := newGuarded(t, issuers[0]), newGuarded(t, issuers[1])

	// The operator registers the client at the provider that registers clients; the other one knows every client.
	admin := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	text := fmt.Sprintf(`version: 1
allowlist: allowlist.json
connections: {keys: ["${file:connections.key}"]}
ledger: sqlite:pgfsm.db
serve: {admin_url: "http://%s"}
servers:
  notes: {url: %q, auth: {person: {oauth: {issuer: %q, client_id: CLIENT_ID, client_secret: "${file:notes.secret}", scopes: [openid, "mcp:call"]}}}}
  wiki: {url: %q, auth: {person: {oauth: {issuer: %q, client_id: wiki-client, scopes: [openid, "mcp:call"]}}}}
`, admin, notes.URL, issuers[0], wiki.URL, issuers[1])
	dir := clitest.Folder(t, "pgfsm.yaml", text, "allowlist.json", `{"notes": ["look"], "wiki": ["look"]}`, "connections.key", sealKey, "notes.secret", "none")
	config := filepath.Join(dir, "pgfsm.yaml")
	r := command(t.Context(), nil, "connections", "register", "notes", "-c", config, "--json")
	r.Want(t, exitYes, "/redirect_uri", "http://"+admin+"/console/connected/notes")
	text = strings.Replace(text, "CLIENT_ID", clitest.Quote(r.Member("/client_id")), 1)
	if secret := r.Member("/client_secret"); secret == "" {
		text = strings.Replace(text, `, client_secret: "${file:notes.secret}"`, "", 1)
	} else {
		check.NoError(t, os.WriteFile(filepath.Join(dir, "notes.secret"), []byte(secret), 0o600))
	}
	check.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	s := serve(t, dir, "--admin", admin)

	t.Run("people", func(t *testing.T) {
		for _, c := range []struct{ person, script, mode string }{
			{"ann", "sdk-v1", "http"}, {"ben", "sdk-v1", "stdio"}, {"cat", "sdk-v2", "legacy"}, {"dan", "sdk-v2", "auto"},
		} {
			token := makeToken(t, s.config, "person", c.person)
			t.Run(c.person+"-"+c.script+"-"+c.mode, func(t *testing.T) {
				t.Parallel()
				order := clientOrder{URL: s.mcp, Token: token}
				if c.mode == "stdio" {
					order.Command = []string{in.node, filepath.Join(in.modules, "mcp-remote", "dist", "proxy.js"), s.mcp, "--header", "Authorization:Bearer " + token}
				}
				for _, server := range []string{"notes", "wiki"} {
					order.Calls = append(order.Calls, clientCall{Name: server + "__look", Arguments: jsontext.Value(`{"n":1}`)})
				}
				page := s.admin + "/console/connections"
				refused := in.drive(t, c.script, c.mode, order)
				for i, a := range refused.Answers {
					if a.Code != "credentials_needed" || !strings.Contains(a.Text, page) {
						t.Errorf("%s: %+v, want a refusal with %s", order.Calls[i].Name, a, page)
					}
				}
				if want := []string{"notes__connect", "wiki__connect"}; !slices.Equal(slices.Sorted(slices.Values(refused.Tools)), want) {
					t.Errorf("without accounts the tools are %q, want %q", refused.Tools, want)
				}

				b := signedIn(t, s, token)
				b.signsInAt("notes", c.person)
				b.signsInAt("wiki", c.person)

				made := in.drive(t, c.script, c.mode, order)
				for i, a := range made.Answers {
					if a.IsError || !strings.HasPrefix(a.Text, c.person+"\n") {
						t.Errorf("%s: %+v, want the account of %s\n%s", order.Calls[i].Name, a, c.person, s.stderr)
					}
				}
				if want := []string{"notes__look", "wiki__look"}; !slices.Equal(slices.Sorted(slices.Values(made.Tools)), want) {
					t.Errorf("with accounts the tools are %q, want %q", made.Tools, want)
				}
			})
		}
	})
	s.stop(t, exitYes)
	verifies(t, dir)
}
