package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
)

// provideForAgents serves agents of an identity provider. Everybody may look, and the group oncall may burn, too.
func provideForAgents(t *testing.T) *provided {
	t.Helper()
	p := identitytest.New(t)
	p.Clients["robot"] = "s3cret-of-the-robot"
	o := &office{u: mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools))}
	o.dir = clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {echo: {type: http, url: %q}}
allowlist: {default: allowlist.json, groups: {oncall: oncall.json}}
ledger: %s
identity:
  required: true
  scopes: [mcp:call, mcp:read]
  issuers:
    - {issuer: %s, audiences: {mcp: [gateway]}, groups: /groups}
`, o.u.URL, inFile, p.Issuer), "allowlist.json", `{"echo": ["look"]}`, "oncall.json", `{"echo": ["burn"]}`)
	o.served = serve(t, o.dir)
	return &provided{o, p}
}

// TestServeIdentitySDK: go-sdk's OAuth client signs in from nothing but the URL of an endpoint, for this endpoint only.
func TestServeIdentitySDK(t *testing.T) {
	t.Parallel()
	o := provideForAgents(t)
	o.p.SignIn("ann")
	var token string
	for _, path := range []string{"/mcp", "/servers/echo/mcp"} {
		t.Run(strings.ReplaceAll(path[1:], "/", "-"), func(t *testing.T) {
			handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
				PreregisteredClient: &oauthex.ClientCredentials{
					ClientID: "robot", ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: "s3cret-of-the-robot"},
				},
				RedirectURL: "http://127.0.0.1:1/callback", AuthorizationCodeFetcher: consents,
			})
			check.NoError(t, err)
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: o.base + path, OAuthHandler: handler}, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, o.stderr)
			}
			defer session.Close()
			tools, err := session.ListTools(t.Context(), nil)
			if err != nil || len(tools.Tools) != 1 {
				t.Fatalf("%v, %v", tools, err)
			}
			got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tools.Tools[0].Name, Arguments: map[string]any{"n": 1}})
			if err != nil || got.IsError {
				t.Errorf("%+v, %v\n%s", got, err, o.stderr)
			}
			source, err := handler.TokenSource(t.Context())
			check.NoError(t, err)
			issued, err := source.Token()
			check.NoError(t, err)
			token = issued.AccessToken
		})
	}
	for _, run := range recorded(t, o.dir) {
		if run.Actor != o.p.Issuer+"#ann" {
			t.Errorf("a run of %s", run.Actor)
		}
	}
	resp, err := send(t.Context(), http.MethodPost, o.mcp,
		http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + token}}, callMessage("echo__look", `{"n":1}`))
	check.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || !strings.HasSuffix(resp.Header.Get("WWW-Authenticate"), `, error="invalid_token"`) {
		t.Errorf("a token for one endpoint at another one: %s %s", resp.Status, resp.Header.Get("WWW-Authenticate"))
	}
}

// consents plays the browser of a user who consents.
func consents(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, args.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := browser.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	to, err := resp.Location()
	if err != nil {
		return nil, errors.Join(errors.New(resp.Status), err)
	}
	q := to.Query()
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}
