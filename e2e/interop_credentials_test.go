package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// TestConformanceOfClientCredentials: the suite's own provider accepts the token requests of pgfsm, and its server the tokens.
func TestConformanceOfClientCredentials(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	for _, tt := range []struct{ scenario, check string }{
		{"auth/client-credentials-basic", "client-credentials-basic-auth"},
		{"auth/client-credentials-jwt", "client-credentials-jwt-verified"},
	} {
		verdicts := in.judged(t, notPassed, "client", "--command", "confidential", "--scenario", tt.scenario)
		if want := tt.scenario + " " + tt.check + " SUCCESS"; !slices.Contains(verdicts, want) {
			t.Errorf("verdicts = %q, want %q among them", verdicts, want)
		}
		for _, v := range verdicts {
			if !strings.HasSuffix(v, " SUCCESS") && !strings.HasSuffix(v, " INFO") {
				t.Error(v)
			}
		}
	}
}

// confidential lists the tools of the server at the URL that is the last argument, as an operator's configuration with client credentials
// says. The operator's part, to look up the token endpoint (RFC 9728, RFC 8414), is done here.
func confidential() {
	if err := listConfidentially(os.Args[len(os.Args)-1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func listConfidentially(server string) error {
	var client struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Key    string `json:"private_key_pem"`
		Alg    string `json:"signing_algorithm"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &client); err != nil {
		return err
	}
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	var resource struct {
		Servers []string `json:"authorization_servers"`
	}
	if err := fetchJSON(u.Scheme+"://"+u.Host+"/.well-known/oauth-protected-resource"+u.Path, &resource); err != nil || len(resource.Servers) == 0 {
		return fmt.Errorf("no authorization server: %w", err)
	}
	var provider struct {
		Issuer        string `json:"issuer"`
		TokenEndpoint string `json:"token_endpoint"`
	}
	if err := fetchJSON(resource.Servers[0]+"/.well-known/oauth-authorization-server", &provider); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "pgfsm")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	credentials := `client_secret: "${env:CLIENT_SECRET}"`
	if client.Key != "" {
		credentials = fmt.Sprintf(`private_key: "${env:CLIENT_KEY}", alg: %s, issuer: %q`, client.Alg, provider.Issuer)
	}
	config := fmt.Sprintf(`version: 1
servers:
  s: {url: %q, auth: {client_credentials: {token_url: %q, client_id: %q, %s}}}
allowlist: allowlist.json
`, server, provider.TokenEndpoint, client.ID, credentials)
	path := filepath.Join(dir, "pgfsm.yaml")
	for name, text := range map[string]string{path: config, filepath.Join(dir, "allowlist.json"): "{}"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	tools := exec.Command("pgfsm", "tools", "-c", path)
	tools.Env = append(os.Environ(), "CLIENT_SECRET="+client.Secret, "CLIENT_KEY="+client.Key)
	tools.Stdout, tools.Stderr = os.Stdout, os.Stderr
	return tools.Run()
}

func fetchJSON(url string, to any) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered with %d: %w", url, resp.StatusCode, err)
	}
	return json.Unmarshal(body, to)
}
