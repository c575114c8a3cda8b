package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// TestSignInRepeatsCredentials: the token endpoint of an identity provider repeats what it gets from the console and from pgfsm login, or
// sends an ID token that is not valid. No client's secret, code, verifier or ID token is shown or recorded.
func TestSignInRepeatsCredentials(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		token func(o *provided, w http.ResponseWriter, sent string) (idToken string)
	}{
		{"in-an-error", func(_ *provided, w http.ResponseWriter, sent string) string {
			mcptest.SayJSON(w, http.StatusBadRequest, fmt.Sprintf(`{"error":"invalid_grant","error_description":%q,"error_uri":%q}`, sent, sent))
			return ""
		}},
		{"in-a-redirect", func(_ *provided, w http.ResponseWriter, sent string) string {
			w.Header().Set("Location", "/?"+sent)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return ""
		}},
		{"in-place-of-an-id-token", func(_ *provided, w http.ResponseWriter, sent string) string {
			mcptest.SayJSON(w, http.StatusOK, fmt.Sprintf(`{"access_token":"opaque-access-token","token_type":%q,"id_token":%q}`, sent, sent))
			return ""
		}},
		{"id-token-of-another-client", func(o *provided, w http.ResponseWriter, _ string) string {
			id := o.p.Sign(map[string]any{"aud": "another-client", "client_id": nil})
			mcptest.SayJSON(w, http.StatusOK, fmt.Sprintf(`{"access_token":"opaque-access-token","token_type":"Bearer","id_token":%q}`, id))
			return id
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := provide(t, inFile, peopleHold)
			secrets, mu := []string{"s3cret-of-the-console"}, sync.Mutex{}
			o.p.Override("/token", func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				_ = r.ParseForm() // what it cannot read is not repeated
				_, secret, _ := r.BasicAuth()
				sent := []string{r.Header.Get("Authorization"), secret}
				for _, name := range []string{"code", "code_verifier", "device_code"} {
					if v := r.PostForm.Get(name); v != "" {
						sent, secrets = append(sent, v), append(secrets, v)
					}
				}
				if id := tt.token(o, w, strings.Join(sent, " ")); id != "" {
					secrets = append(secrets, strings.Split(id, ".")[1:]...)
				}
			})
			o.p.SignIn("carol")
			jar, err := cookiejar.New(nil)
			check.NoError(t, err)
			browser := &http.Client{Jar: jar}
			resp, err := browser.Get(o.admin + "/console/provider?next=&issuer=" + url.QueryEscape(o.p.Issuer))
			check.NoError(t, err)
			defer resp.Body.Close()
			page, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusBadGateway {
				t.Errorf("the console answers %s %s, %v", resp.Status, page, err)
			}
			login := command(t.Context(), nil, "login", "--device", "-c", o.config)
			o.stop(t, exitYes)
			if len(secrets) < 4 { // the secret, a code, its verifier, a device code
				t.Fatalf("the provider got %q", secrets)
			}
			for by, all := range map[string]string{ // in any order
				"page": string(page), "login": login.Stdout + login.Stderr, "standard error": o.stderr.String(), "file": clitest.Read(t, filepath.Join(o.dir, "pgfsm.db")),
				"export": command(t.Context(), nil, "ledger", "export", "-c", o.config).Stdout,
			} {
				clitest.WantNone(t, by, all, secrets...)
			}
		})
	}
}
