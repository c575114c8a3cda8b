package front

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/web"
	"pgfsm/mcp/gateway/session"
	"pgfsm/policy"
)

const issuer = "https://login.example.com"

// provider authenticates by tokens of an identity provider. They are "jwt" and the subject, the client, the person that the client acts for
// and the groups, between commas. All other tokens are those of owners.
type provider struct{}

func (provider) Authenticate(r *http.Request) (web.Caller, error) {
	token, ok := web.BearerToken(r)
	if !ok {
		return web.Caller{}, web.ErrNoCredentials
	}
	parts := strings.Split(token, ",")
	switch {
	case token == "later":
		return web.Caller{}, &web.RetryError{After: 1500 * time.Millisecond, Err: errors.New("an unknown key")}
	case token == "scopeless":
		return web.Caller{}, &web.ScopeError{Caller: web.Caller{Name: policy.SubjectName(issuer, "bot")}, Missing: []string{"mcp:call"}}
	case token == "nameless":
		return web.Caller{Name: "bob"}, nil
	case parts[0] == "jwt":
		groups := strings.Split(parts[4], "+")
		return web.Caller{
			Name: policy.SubjectName(issuer, parts[1]), Expires: time.Now().Add(time.Minute),
			Identity: &policy.Identity{Kind: policy.ActorAgent, Client: parts[2], OnBehalfOf: parts[3], Groups: &groups},
		}, nil
	}
	return owners{}.Authenticate(r)
}

// withProvider is a gateway whose clients have tokens of an identity provider.
func withProvider(o *setup) {
	o.Clients = provider{}
	o.Metadata = &Metadata{PublicURL: "https://mcp.example.com", Issuers: []string{issuer}, Scopes: []string{"mcp:call", "mcp:read"}}
}

func TestMetadata(t *testing.T) {
	const at = "/.well-known/oauth-protected-resource"
	for _, c := range []struct {
		name, method, path string
		headers            []string
		status             int
		resource           string
	}{
		{"all-servers", "GET", at + "/mcp", nil, 200, "https://mcp.example.com/mcp"},
		{"one-server", "GET", at + "/servers/files/mcp", nil, 200, "https://mcp.example.com/servers/files/mcp"},
		{"older-transport", "GET", at + "/sse", nil, 200, "https://mcp.example.com/sse"},
		{"older-transport-of-one-server", "GET", at + "/servers/notes/sse", nil, 200, "https://mcp.example.com/servers/notes/sse"},
		{"from-afar-with-a-wrong-token", "GET", at + "/mcp", []string{"Peer: 192.0.2.1:4000", "Authorization: Bearer wrong"}, 200,
			"https://mcp.example.com/mcp"},
		{"another-host", "GET", at + "/mcp", []string{"Host: evil.example"}, 403, ""},
		{"web-page-of-another-origin", "GET", at + "/mcp", []string{"Origin: https://evil.example"}, 403, ""},
		{"no-endpoint", "GET", at, nil, 404, ""},
		{"unknown-server", "GET", at + "/servers/secret/mcp", nil, 404, ""},
		{"messages", "GET", at + "/sse/messages", nil, 404, ""},
		{"escaped", "GET", at + "/%6dcp", nil, 404, ""},
		{"post", "POST", at + "/mcp", nil, 405, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := scripted(t, withProvider)
			w := serve(g, come(c.method, c.path, "", c.headers...))
			if w.Code != c.status {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if c.status != 200 {
				return
			}
			var got map[string]any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Header().Get("Content-Type") != "application/json" {
				t.Fatalf("%v: %s %s", err, w.Header().Get("Content-Type"), w.Body)
			}
			want := map[string]any{
				"resource": c.resource, "authorization_servers": []any{issuer}, "scopes_supported": []any{"mcp:call", "mcp:read"},
				"bearer_methods_supported": []any{"header"},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMetadataOnlyWithIssuers(t *testing.T) {
	g, _ := scripted(t, nil)
	if w := serve(g, come("GET", "/.well-known/oauth-protected-resource/mcp", "")); w.Code != 404 {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// TestChallenges holds challenges to the specifications: RFC 6750 section 3, RFC 9728 section 5.1, and MCP's authorization of 2026-07-28.
func TestChallenges(t *testing.T) {
	const all, files = `resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`,
		`resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/servers/files/mcp"`
	const scope = `, scope="mcp:call mcp:read"`
	const wrong, far = "Authorization: Bearer wrong", "Peer: 192.0.2.1:4000"
	bare := func(o *setup) { o.Metadata.Scopes = nil }
	required := func(o *setup) { o.Required = true }
	for _, c := range []struct {
		name      string
		change    func(*setup)
		path      string
		headers   []string
		status    int
		code      string
		challenge string // without the scheme
	}{
		// RFC 6750 section 3.1: without credentials a challenge should have no error.
		{"no-token", nil, "/mcp", []string{far}, 401, "token_refused", all + scope},
		{"no-token-from-this-machine", required, "/mcp", nil, 401, "token_refused", all + scope},
		// MCP: access tokens are not in the query of a URL. RFC 6750 section 2.3 is not supported.
		{"token-in-the-query", nil, "/mcp?access_token=token-ann", []string{far}, 401, "token_refused", all + scope},
		{"empty-token", nil, "/mcp", []string{"Authorization: Bearer "}, 401, "token_refused", all + scope},
		{"invalid-token", nil, "/mcp", []string{wrong}, 401, "token_refused", all + scope + `, error="invalid_token"`},
		{"no-name-of-a-provider", nil, "/mcp", []string{"Authorization: Bearer nameless"}, 401, "token_refused", all + scope + `, error="invalid_token"`},
		{"no-scopes-needed", bare, "/mcp", []string{far}, 401, "token_refused", all},
		{"one-server", nil, "/servers/files/mcp", []string{far}, 401, "token_refused", files + scope},
		{"older-transport", nil, "/servers/files/sse", []string{far}, 401, "token_refused", strings.Replace(files, "/mcp\"", "/sse\"", 1) + scope},
		{"message-of-the-older-transport", nil, "/sse/messages?session=x", []string{far}, 401, "token_refused",
			strings.Replace(all, "/mcp\"", "/sse\"", 1) + scope},
		{"unknown-server", nil, "/servers/secret/mcp", []string{far}, 401, "token_refused", all + scope},
		{"quotes-in-the-path", nil, `/x",error="x`, []string{far}, 401, "token_refused", all + scope},
		// MCP: one challenge names everything that the operation needs.
		{"insufficient-scope", nil, "/mcp", []string{"Authorization: Bearer scopeless"}, 403, "insufficient_scope",
			all + scope + `, error="insufficient_scope"`},
		{"insufficient-scope-for-one-server", nil, "/servers/files/mcp", []string{"Authorization: Bearer scopeless"}, 403, "insufficient_scope",
			files + scope + `, error="insufficient_scope"`},
		{"other-403", nil, "/mcp", []string{"Host: evil.example"}, 403, "host_refused", ""},
		{"not-verified-now", nil, "/mcp", []string{"Authorization: Bearer down"}, 503, "authentication_unavailable", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, s := scripted(t, func(o *setup) {
				withProvider(o)
				if c.change != nil {
					c.change(o)
				}
			})
			s.before = func(*session.Request) { t.Error("it was dispatched") }
			r := come("POST", "/mcp", rpc("1", "tools/list", `{`+meta+`}`), append(c.headers, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list")...)
			path, query, _ := strings.Cut(c.path, "?")
			r.URL.Path, r.URL.RawQuery = path, query
			w := serve(g, r)
			if reason, _ := code(w.Body.Bytes()); w.Code != c.status || reason != c.code {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
			got := w.Header().Values("WWW-Authenticate")
			if c.challenge == "" {
				if len(got) > 0 {
					t.Errorf("a challenge: %q", got)
				}
				return
			}
			if diff := cmp.Diff([]string{"Bearer " + c.challenge}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	g, _ := scripted(t, withProvider)
	for token, want := range map[string]string{"later": "2", "down": "1"} {
		w := serve(g, come("POST", "/mcp", rpc("1", "ping", "{}"), "Authorization: Bearer "+token))
		if w.Code != 503 || w.Header().Get("Retry-After") != want {
			t.Errorf("%s: %d, Retry-After %q", token, w.Code, w.Header().Get("Retry-After"))
		}
	}
}

// TestRefusedScopesAreReported: the paths of clients are reported only if they are endpoints, because each report is an entry of the log.
func TestRefusedScopesAreReported(t *testing.T) {
	var told []string
	g, _ := scripted(t, func(o *setup) {
		withProvider(o)
		o.RefusedScope = func(_ context.Context, endpoint string, lacking *web.ScopeError) {
			told = append(told, fmt.Sprint(endpoint, lacking.Caller.Name, lacking.Missing))
		}
	})
	for _, path := range []string{"/servers/files/sse/messages?session=x", "/servers/secret/mcp", "/any/path"} {
		serve(g, come("POST", path, "{}", "Authorization: Bearer scopeless"))
	}
	want := []string{"/servers/files/sse" + issuer + "#bot[mcp:call]", "/mcp" + issuer + "#bot[mcp:call]", "/mcp" + issuer + "#bot[mcp:call]"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

func TestResources(t *testing.T) {
	resources := Resources("https://mcp.example.com", []string{"files"})
	every := []string{
		"https://mcp.example.com/mcp", "https://mcp.example.com/servers/files/mcp",
		"https://mcp.example.com/servers/files/sse", "https://mcp.example.com/sse",
	}
	for path, want := range map[string][]string{
		"/mcp": every[:1], "/sse": every[3:], "/sse/messages?session=x": every[3:], "/servers/files/mcp?x=1": every[1:2],
		"/servers/files/sse/messages?session=x": every[2:3], "/status/x": every, "/servers/secret/mcp": every,
	} {
		if diff := cmp.Diff(want, resources(come("GET", path, ""))); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

// TestClientsOfAProvider: everything that is bound to a client is bound to its subject, its client id and the person it acts for, but to no
// token: the serial number of a token changes nothing.
func TestClientsOfAProvider(t *testing.T) {
	const ann = "Authorization: Bearer jwt,ann,cli,,oncall,1"
	for _, c := range []struct {
		name, header string
		status       int
	}{
		{"same-token", ann, 200},
		{"next-token", "Authorization: Bearer jwt,ann,cli,,oncall,2", 200},
		{"next-token-with-other-groups", "Authorization: Bearer jwt,ann,cli,,night,2", 200},
		{"another-subject", "Authorization: Bearer jwt,bob,cli,,oncall,1", 404},
		{"another-client", "Authorization: Bearer jwt,ann,bot,,oncall,1", 404},
		{"on-behalf-of-a-person", "Authorization: Bearer jwt,ann,cli," + issuer + "#eve,oncall,1", 404},
		{"ledger-token", "Authorization: Bearer token-ann", 404},
		{"anonymous", "Host: 127.0.0.1:8787", 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, _ := scripted(t, withProvider)
			id := begin(t, g, "/mcp", "2025-06-18", ann)
			if w := serve(g, come("POST", "/mcp", rpc("1", "ping", "{}"), c.header, "Mcp-Session-Id: "+id)); w.Code != c.status {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
}

// TestIdentityOfEachRequest: groups may change between the requests of a session.
func TestIdentityOfEachRequest(t *testing.T) {
	var got []string
	g, s := scripted(t, withProvider)
	s.before = func(q *session.Request) {
		groups := "none"
		if q.Identity != nil {
			groups = strings.Join(*q.Identity.Groups, "+")
		}
		got = append(got, q.Method+" "+groups)
	}
	id := begin(t, g, "/mcp", "2025-06-18", "Authorization: Bearer jwt,ann,cli,,oncall,1")
	serve(g, come("POST", "/mcp", rpc("1", "ping", "{}"), "Authorization: Bearer jwt,ann,cli,,day+night,2", "Mcp-Session-Id: "+id))
	serve(g, come("POST", "/mcp", rpc("1", "tools/list", `{`+meta+`}`), "Authorization: Bearer jwt,ann,cli,,day,3",
		"Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/list"))
	begin(t, g, "/mcp", "2025-06-18", "Authorization: Bearer token-ann")
	begin(t, g, "/mcp", "2025-06-18")
	if diff := cmp.Diff([]string{"initialize oncall", "ping day+night", "tools/list day", "initialize none", "initialize none"}, got); diff != "" {
		t.Error(diff)
	}
}
