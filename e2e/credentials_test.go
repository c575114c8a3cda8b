package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgfsm/internal/secret"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// TestCredentialsStayOut: a server and its token endpoint repeat everything that they get, in every form. Nothing that a call or a gateway
// prints or records has the client's secret, private key or assertion, or the access token, be it as it is, in base64 or percent-encoded.
func TestCredentialsStayOut(t *testing.T) {
	t.Parallel()
	const clientSecret, token = "client-s3cret/+=4711", "eyJhbGciOiJub25lIn0.t0ken-4711/+.sig=="
	private := newPrivateKey(t)
	for _, tt := range []struct {
		name     string
		endpoint func(w http.ResponseWriter, r *http.Request)
		server   string // the rest of the server's answer to a call; ASSERTION stands for the client's
		want     string // is printed or recorded
	}{
		{"token-in-the-result", nil, `"result":{"content":[{"type":"text","text":"you sent Bearer ` + token + `"}]}`, secret.Mask},
		{"token-as-a-member", nil, `"result":{"content":[],"structuredContent":{"Bearer ` + token + `":1}}`, secret.Mask},
		{"token-behind-the-answer", nil, `"result":{"content":[]}} ` + token + ` {"a":1`, "server_protocol"},
		{"token-in-an-error", nil, `"error":{"code":1,"message":"bad Bearer ` + token + `"}`, secret.Mask},
		{"token-refused", nil, "", "HTTP status 401 Unauthorized to the access token"},
		{"secret-in-an-error-of-the-endpoint", func(w http.ResponseWriter, r *http.Request) {
			mcptest.SayJSON(w, http.StatusUnauthorized,
				fmt.Sprintf(`{"error":"invalid_client","error_description":%q,"error_uri":%q}`, clientSecret, r.Header.Get("Authorization")))
		}, "", "error invalid_client"},
		{"secret-as-the-error-code", func(w http.ResponseWriter, r *http.Request) {
			mcptest.SayJSON(w, http.StatusBadRequest, fmt.Sprintf(`{"error":%q}`, r.Header.Get("Authorization")))
		}, "", "HTTP status 400 Bad Request"},
		{"secret-in-html", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "<p>%s %s %s", clientSecret, url.QueryEscape(clientSecret), r.Header.Get("Authorization"))
		}, "", "something else than an access token"},
		{"assertion-in-the-result", nil, `"result":{"content":[{"type":"text","text":"you signed ASSERTION"}]}`, secret.Mask},
		{"assertion-in-an-error", nil, `"error":{"code":1,"message":"bad ASSERTION"}`, secret.Mask},
		{"assertion-in-an-error-of-the-endpoint", func(w http.ResponseWriter, r *http.Request) {
			mcptest.SayJSON(w, http.StatusUnauthorized, fmt.Sprintf(`{"error":"invalid_client","error_description":%[1]q,"error_uri":%[1]q}`, r.PostForm.Encode()))
		}, "", "error invalid_client"},
		{"assertion-as-the-error-code", func(w http.ResponseWriter, r *http.Request) {
			mcptest.SayJSON(w, http.StatusBadRequest, fmt.Sprintf(`{"error":%q}`, r.PostFormValue("client_assertion")))
		}, "", "HTTP status 400 Bad Request"},
		{"assertion-as-the-token", func(w http.ResponseWriter, r *http.Request) {
			mcptest.SayJSON(w, http.StatusOK, fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer"}`, r.PostFormValue("client_assertion")))
		}, "", "HTTP status 401 Unauthorized to the access token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.endpoint == nil {
				tt.endpoint = func(w http.ResponseWriter, _ *http.Request) {
					mcptest.SayJSON(w, http.StatusOK, `{"access_token":"`+token+`","token_type":"Bearer","expires_in":3600}`)
				}
			}
			answer, credentials := tt.server, `client_secret: "${file:secret}"`
			if strings.HasPrefix(tt.name, "assertion-") {
				credentials = `private_key: "${file:key}", issuer: "https://login.example.com", key_id: k1`
			}
			var mu sync.Mutex
			var assertions []string
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if assertion := r.PostFormValue("client_assertion"); assertion != "" {
					mu.Lock()
					assertions = append(assertions, assertion)
					answer = strings.ReplaceAll(tt.server, "ASSERTION", assertion)
					mu.Unlock()
				}
				tt.endpoint(w, r)
			}))
			t.Cleanup(endpoint.Close)
			repeats := mcptest.New(t, mcptest.Honest)
			repeats.SetReply(func(w http.ResponseWriter, _ *http.Request, id string) {
				mu.Lock()
				defer mu.Unlock()
				mcptest.SayJSON(w, http.StatusOK, `{"jsonrpc":"2.0","id":`+id+`,`+answer+`}`)
			})
			inner, err := url.Parse(repeats.URL)
			check.NoError(t, err)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "Bearer "+token || tt.server == "" {
					w.Header().Set("WWW-Authenticate", r.Header.Get("Authorization"))
					w.WriteHeader(http.StatusUnauthorized)
					fmt.Fprint(w, r.Header)
					return
				}
				httputil.NewSingleHostReverseProxy(inner).ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			ledgerURL := newLedger(t)
			dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers:
  echo: {type: http, url: %q, auth: {client_credentials: {token_url: %q, client_id: pgfsm, %s}}}
allowlist: allowlist.json
ledger: %q
`, server.URL, endpoint.URL, credentials, ledgerURL), "allowlist.json", `{"echo": ["look"]}`, "secret", clientSecret, "key", private)
			traces := t.TempDir()
			r := command(t.Context(), map[string]string{"SAFE_TRACE_DIR": traces},
				"call", "--json", "-c", filepath.Join(dir, "pgfsm.yaml"), "echo", "look", "{}")
			called := r.Stdout + r.Stderr
			for _, path := range clitest.Traces(t, traces) {
				called += clitest.Read(t, path)
			}
			g := serve(t, dir)
			answered := string(g.agent("/servers/echo/mcp", "").call("look", "{}").Raw)
			g.stop(t, exitYes)
			served := answered + g.stderr.String() + command(t.Context(), nil, "ledger", "export", "-c", g.config).Stdout
			for by, all := range map[string]string{"call": called, "serve": served} { // in any order
				if !strings.Contains(all, tt.want) {
					t.Errorf("%s: %q is nowhere:\n%s", by, tt.want, all)
				}
			}
			written := map[string]string{"call": called, "serve": served}
			if ledgerURL == inFile {
				written["ledger"] = clitest.Read(t, filepath.Join(dir, "pgfsm.db"))
			}
			if signed := len(assertions) > 0; signed != strings.HasPrefix(tt.name, "assertion-") {
				t.Errorf("the client signed %d assertions", len(assertions))
			}
			secrets := append(strings.Split(private, "\n")[1:3], assertions...)
			for by, all := range written { // in any order
				clitest.WantNone(t, by, all, append(secrets, clientSecret, token, "pgfsm:"+url.QueryEscape(clientSecret))...)
			}
		})
	}
}

// newPrivateKey returns a key that signs assertions, in PEM.
func newPrivateKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	check.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
