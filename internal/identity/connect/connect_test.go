package connect_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/identity/connect"
	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/identity/login"
	"pgfsm/internal/oauth"
	"pgfsm/internal/test/check"
)

const (
	redirect   = "https://gateway.example.com/console/connected/forge"
	openID     = "/.well-known/openid-configuration"
	attempted  = "the-secret-of-an-attempt-0000000000"
	jsonType   = "application/json"
	metadata   = "metadata"
	onTheBack  = "way back"
	atExchange = "exchange"
)

// A world is a provider, an MCP server whose metadata names it, and the configuration for both.
type world struct {
	*identitytest.Provider
	server *connect.Server
	names  map[string]any   // the MCP server's metadata
	refuse http.HandlerFunc // the MCP server's answers but its metadata; nil: not found
	back   func(url.Values)
	masked []string

	asserted []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Provider: identitytest.New(t)}
	w.Rotate = true
	w.Clients["forge-client"] = "forge-secret"
	w.SignIn("alice")
	mcp := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/.well-known/oauth-protected-resource/mcp":
			identitytest.Answer(rw, http.StatusOK, w.names)
		case w.refuse != nil:
			w.refuse(rw, r)
		default:
			http.NotFound(rw, r)
		}
	}))
	t.Cleanup(mcp.Close)
	at := mcp.URL + "/mcp"
	w.names = map[string]any{"resource": at, "authorization_servers": []string{"https://other.example.com", w.Issuer}}
	w.server = &connect.Server{
		Client:    oauth.Client{ID: "forge-client", Secret: "forge-secret", Issuer: w.Issuer},
		URL:       at,
		Resource:  at,
		Scopes:    []string{"repo", "openid"},
		Account:   "/login",
		HTTP:      connect.NewHTTPClient(),
		MaskToken: func(token string) { w.masked = append(w.masked, token) },
	}
	return w
}

// changes overrides one member of the provider's metadata; nil removes it.
func (w *world) changes(name string, value any) {
	w.Override(openID, func(rw http.ResponseWriter, _ *http.Request) {
		m := w.Metadata()
		if m[name] = value; value == nil {
			delete(m, name)
		}
		identitytest.Answer(rw, http.StatusOK, m)
	})
}

// says overrides the provider's answer at a path.
func (w *world) says(path string, status int, content, body string) {
	w.Override(path, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", content)
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	})
}

// connects makes the person's connection, and returns at which step it failed.
func (w *world) connects(t *testing.T) (g connect.Grant, step string, err error) {
	t.Helper()
	attempt := &login.SignIn{Secret: attempted, Redirect: redirect}
	at, err := w.server.AuthorizationURL(t.Context(), attempt)
	if err != nil {
		return g, metadata, err
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := browser.Get(at)
	check.NoError(t, err)
	got.Body.Close()
	back, err := got.Location()
	if err != nil || !strings.HasPrefix(back.String(), redirect+"?") {
		t.Fatalf("the provider answered %s, %v", got.Status, err)
	}
	q := back.Query()
	if w.back != nil {
		w.back(q)
	}
	before := w.Requests("/token")
	g, err = w.server.Exchange(t.Context(), attempt, q)
	if step = onTheBack; w.Requests("/token") > before {
		step = atExchange
	}
	return g, step, err
}

func TestConnect(t *testing.T) {
	w := newWorld(t)
	w.Users["alice"] = map[string]any{"login": "alice-gh"}
	w.Life = time.Minute
	g, _, err := w.connects(t)
	check.NoError(t, err)
	if g.Account != "alice-gh" || strings.Join(g.Scopes, " ") != "openid repo" || !g.ExpireWithin(2*time.Minute) || g.ExpireWithin(30*time.Second) {
		t.Errorf("connected = %+v", g)
	}

	text, err := g.Encode()
	check.NoError(t, err)
	old, err := connect.Decode(text)
	if err != nil || old != g.Tokens {
		t.Fatalf("Decode() = %+v, %v", old, err)
	}
	fresh, err := w.server.Refresh(t.Context(), old, g.Scopes)
	check.NoError(t, err)
	if fresh.Access == old.Access || fresh.Refresh == old.Refresh || w.Reuses() != 0 {
		t.Errorf("Refresh() = %+v after %+v", fresh, old)
	}
	for _, token := range []string{old.Access, old.Refresh, fresh.Access, fresh.Refresh} {
		if !strings.Contains(strings.Join(w.masked, " "), token) {
			t.Errorf("%s is not masked", token)
		}
	}

	check.NoError(t, w.server.Revoke(t.Context(), fresh))
	if _, err := w.server.Refresh(t.Context(), fresh, g.Scopes); !errors.Is(err, connect.ErrGrant) || w.Live() != 0 {
		t.Errorf("a refresh after the revocation: %v, %d live", err, w.Live())
	}
}

// Clients without a secret, and issuers without metadata, work the same.
func TestConnectOtherwise(t *testing.T) {
	for name, change := range map[string]func(*world){ // in any order
		"public": func(w *world) { w.Clients["forge-client"], w.server.Secret = "", "" },
		"metadata-document": func(w *world) {
			w.server.ID, w.server.Secret = "https://gateway.example.com/client.json", ""
			w.Clients[w.server.ID] = ""
		},
		"endpoints-of-the-operator": func(w *world) {
			w.server.Endpoints = connect.Endpoints{Authorization: w.Issuer + "/authorize", Token: w.Issuer + "/token"}
			w.says(openID, http.StatusNotFound, jsonType, "")
		},
		"metadata-of-rfc-8414": func(w *world) {
			w.says(openID, http.StatusNotFound, jsonType, "")
			w.Override("/.well-known/oauth-authorization-server"+identitytest.Realm, func(rw http.ResponseWriter, _ *http.Request) {
				identitytest.Answer(rw, http.StatusOK, w.Metadata())
			})
		},
		"private-key": func(w *world) {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				panic(err)
			}
			w.Clients["forge-client"] = "" // the provider does not look at assertions
			w.server.Secret, w.server.Key, w.server.Alg = "", key, "ES256"
			w.server.Mask = func(assertion string) { w.asserted = append(w.asserted, assertion) }
		},
		"secret-in-the-form":    func(w *world) { w.PostOnly = true },
		"label-in-the-response": func(w *world) { w.server.Account = "/scope" },
		"no-resource":           func(w *world) { w.server.Resource = "" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			change(w)
			g, _, err := w.connects(t)
			if want := map[string]string{"label-in-the-response": "repo openid"}[name]; err != nil || g.Account != want {
				t.Fatalf("connected = %+v, %v", g, err)
			}
			if _, err := w.server.Refresh(t.Context(), g.Tokens, g.Scopes); err != nil {
				t.Errorf("Refresh() = %v", err)
			}
			if err := w.server.Revoke(t.Context(), g.Tokens); err != nil {
				t.Errorf("Revoke() = %v", err)
			}
			if (name == "private-key") != (len(w.asserted) == 3 && w.asserted[0] != w.asserted[1]) {
				t.Errorf("%d assertions", len(w.asserted))
			}
		})
	}
}

// TestFetchResource: a server names its metadata and its scopes when it refuses a POST, or a GET if it is of type sse.
func TestFetchResource(t *testing.T) {
	for _, tt := range []struct{ name, method, challenge, want string }{
		{"challenge-names-all", http.MethodPost, `Bearer scope="mcp:read mcp:write", resource_metadata="HERE/custom"`, "custom mcp:read,mcp:write"},
		{"challenge-of-a-get", http.MethodGet, `Bearer resource_metadata="HERE/custom"`, "custom all"},
		{"challenge-names-scopes", http.MethodPost, `Bearer scope="mcp:read"`, "well-known mcp:read"},
		{"metadata-at-an-address-in-clear", http.MethodPost, `Bearer resource_metadata="http://evil.example.com/"`, "well-known all"},
		{"no-challenge", http.MethodPost, "", "well-known all"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.names = map[string]any{"resource": "well-known", "scopes_supported": []string{"all"}}
			w.refuse = func(rw http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/custom":
					identitytest.Answer(rw, http.StatusOK, map[string]any{"resource": "custom", "scopes_supported": []string{"all"}})
				case r.Method == tt.method:
					rw.Header().Set("WWW-Authenticate", strings.Replace(tt.challenge, "HERE", strings.TrimSuffix(w.server.URL, "/mcp"), 1))
					rw.WriteHeader(http.StatusUnauthorized)
				default:
					http.Error(rw, "", http.StatusMethodNotAllowed)
				}
			}
			r, err := connect.FetchResource(t.Context(), w.server.HTTP, w.server.URL)
			check.NoError(t, err)
			if got := r.Resource + " " + strings.Join(r.Scopes, ","); got != tt.want {
				t.Errorf("FetchResource() = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	for resource, want := range map[string]bool{ // in any order
		"https://forge.example.com/mcp":     true,
		"https://forge.example.com/mcp/":    true,
		"https://forge.example.com":         true,
		"https://forge.example.com/mc":      false,
		"https://forge.example.com/mcp/v1":  false,
		"https://forge.example.com/mcp?a=b": false,
		"https://forge.example.com:444/mcp": false,
		"https://evil.example.com/mcp":      false,
		"http://forge.example.com/mcp":      false,
		"forge.example.com/mcp":             false,
		"":                                  false,
	} {
		if r := (&connect.Resource{Resource: resource}); r.Covers("https://forge.example.com/mcp") != want {
			t.Errorf("Covers() of %q = %t", resource, !want)
		}
	}
}

// TestHostile: what a hostile MCP server, a hostile issuer, or another page in the browser can say. No case gets a token, a code or a secret
// to another place, and no error repeats one.
func TestHostile(t *testing.T) {
	const leak = "LEAK-0123456789"
	const token = `{"access_token":"` + leak + `","token_type":"Bearer","expires_in":60`
	for _, tt := range []struct {
		name   string
		change func(*world)
		step   string
		want   string
	}{
		{"server-names-another-issuer", func(w *world) { w.names["authorization_servers"] = []string{"https://evil.example.com"} }, metadata, "does not name the issuer"},
		{"server-names-the-issuer-with-a-slash", func(w *world) { w.names["authorization_servers"] = []string{w.Issuer + "/"} }, metadata, "does not name the issuer"},
		{"server-names-no-issuer", func(w *world) { delete(w.names, "authorization_servers") }, metadata, "does not name the issuer"},
		{"server-is-another-resource", func(w *world) { w.names["resource"] = "https://bank.example.com/mcp" }, metadata, "another resource"},
		{"server-has-no-metadata", func(w *world) { w.server.URL += "/more" }, metadata, "cannot be read"},
		{"issuer-is-another", func(w *world) { w.changes("issuer", "https://evil.example.com") }, metadata, "names the issuer"},
		{"issuer-with-a-slash", func(w *world) { w.changes("issuer", w.Issuer+"/") }, metadata, "character by character"},
		{"issuer-with-another-case", func(w *world) { w.changes("issuer", strings.ToUpper(w.Issuer)) }, metadata, "character by character"},
		{"issuer-twice", func(w *world) { w.says(openID, 200, jsonType, `{"issuer":"`+w.Issuer+`","issuer":"x"}`) }, metadata, "strict JSON"},
		{"no-pkce", func(w *world) { w.changes("code_challenge_methods_supported", nil) }, metadata, "S256"},
		{"plain-pkce", func(w *world) { w.changes("code_challenge_methods_supported", []string{"plain"}) }, metadata, "S256"},
		{"token-endpoint-in-clear", func(w *world) { w.changes("token_endpoint", "http://evil.example.com/token") }, metadata, "no https URL"},
		{"revocation-endpoint-in-clear", func(w *world) { w.changes("revocation_endpoint", "http://evil.example.com/") }, metadata, "no https URL"},
		{"authorization-endpoint-is-a-script", func(w *world) { w.changes("authorization_endpoint", "javascript:alert(1)") }, metadata, "no https URL"},
		{"no-token-endpoint", func(w *world) { w.changes("token_endpoint", nil) }, metadata, "no token endpoint"},
		{"metadata-redirects", func(w *world) {
			w.Override(openID, func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, w.Issuer+"/other", http.StatusFound)
			})
		}, metadata, "cannot be read"},
		{"metadata-is-endless", func(w *world) { w.says(openID, 200, jsonType, strings.Repeat(" ", 1<<20+1)) }, metadata, "more than"},

		{"state-is-another", func(w *world) { w.back = func(q url.Values) { q.Set("state", "x") } }, onTheBack, "another attempt"},
		{"state-is-another-and-an-error", func(w *world) { w.back = func(q url.Values) { q.Set("state", ""); q.Set("error", leak) } }, onTheBack, "another attempt"},
		{"iss-is-absent", func(w *world) { w.back = func(q url.Values) { q.Del("iss") } }, onTheBack, "RFC 9207"},
		{"iss-is-another", func(w *world) { w.back = func(q url.Values) { q.Set("iss", "https://evil.example.com") } }, onTheBack, "RFC 9207"},
		{"iss-with-a-slash", func(w *world) { w.back = func(q url.Values) { q.Set("iss", w.Issuer+"/") } }, onTheBack, "RFC 9207"},
		{"iss-twice", func(w *world) { w.back = func(q url.Values) { q.Add("iss", "https://evil.example.com") } }, onTheBack, "RFC 9207"},
		{"iss-is-another-though-not-announced", func(w *world) {
			w.changes("authorization_response_iss_parameter_supported", nil)
			w.back = func(q url.Values) { q.Set("iss", "https://evil.example.com") }
		}, onTheBack, "RFC 9207"},
		{"iss-is-another-and-an-error", func(w *world) {
			w.back = func(q url.Values) { q.Set("iss", "https://evil.example.com"); q.Set("error", leak) }
		}, onTheBack, "RFC 9207"},
		{"person-refuses", func(w *world) { w.SignIn("") }, onTheBack, "access_denied"},
		{"no-code", func(w *world) { w.back = func(q url.Values) { q.Del("code") } }, onTheBack, "neither a code nor an error"},
		{"code-of-another", func(w *world) { w.back = func(q url.Values) { q.Set("code", "x") } }, atExchange, "invalid_grant"},

		{"token-endpoint-redirects", func(w *world) {
			w.Override("/token", func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, w.Issuer+"/other", http.StatusTemporaryRedirect)
			})
		}, atExchange, "status 307"},
		{"token-is-of-another-type", func(w *world) { w.says("/token", 200, jsonType, strings.Replace(token, "Bearer", "DPoP", 1)+"}") }, atExchange, "not of type Bearer"},
		{"token-is-short", func(w *world) { w.says("/token", 200, jsonType, strings.Replace(token, leak, "seven77", 1)+"}") }, atExchange, "fewer than"},
		{"token-has-a-line-end", func(w *world) { w.says("/token", 200, jsonType, strings.Replace(token, leak, leak+`\r\nX: y`, 1)+"}") }, atExchange, "characters"},
		{"token-is-long", func(w *world) {
			w.says("/token", 200, jsonType, strings.Replace(token, leak, strings.Repeat("x", oauth.MaxToken+1), 1)+"}")
		}, atExchange, "more than"},
		{"refresh-token-is-long", func(w *world) {
			w.says("/token", 200, jsonType, token+`,"refresh_token":"`+strings.Repeat("x", oauth.MaxToken+1)+`"}`)
		}, atExchange, "refresh token"},
		{"error-repeats-the-secret", func(w *world) { w.says("/token", 400, jsonType, `{"error":"`+leak+`","error_description":"`+leak+`"}`) }, atExchange, "status 400"},
		{"no-json", func(w *world) { w.says("/token", 200, jsonType, leak) }, atExchange, "did not answer with an access token"},
		{"error-with-success", func(w *world) { w.says("/token", 200, jsonType, token+`,"error":"invalid_grant"}`) }, atExchange, "invalid_grant"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			tt.change(w)
			g, step, err := w.connects(t)
			if err == nil || step != tt.step || !strings.Contains(err.Error(), tt.want) || g.Access != "" {
				t.Fatalf("connected = %+v, %v at %s, want %q at %s", g, err, step, tt.want, tt.step)
			}
			for _, secret := range []string{leak, "forge-secret", "seven77"} {
				if tt.name != "person-refuses" && strings.Contains(err.Error(), secret) {
					t.Errorf("the error repeats a secret: %v", err)
				}
			}
			if w.Requests("/other") != 0 {
				t.Error("a redirect was followed")
			}
		})
	}
}

// A refresh that fails ends the connection only if the issuer says so, or gives more than the person granted.
func TestHostileRefresh(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		status     int
		ends       bool
	}{
		{"invalid-grant", `{"error":"invalid_grant"}`, 400, true},
		{"more-scopes", `{"access_token":"token-0123456789","token_type":"Bearer","scope":"repo admin"}`, 200, true},
		{"invalid-client", `{"error":"invalid_client"}`, 401, false},
		{"down", ``, 503, false},
		{"redirect", ``, 302, false},
		{"no-token", `{}`, 200, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.says("/token", tt.status, jsonType, tt.body)
			_, err := w.server.Refresh(context.Background(), connect.Tokens{Access: "token-0000000001", Refresh: "refresh-000001"}, []string{"repo"})
			if err == nil || errors.Is(err, connect.ErrGrant) != tt.ends || w.Requests("/token") != 1 {
				t.Errorf("Refresh() = %v after %d requests", err, w.Requests("/token"))
			}
		})
	}
	w := newWorld(t)
	w.says("/token", 200, jsonType, `{"access_token":"token-0123456789","token_type":"Bearer","scope":"repo"}`)
	t.Run("no-new-refresh-token", func(t *testing.T) {
		got, err := w.server.Refresh(context.Background(), connect.Tokens{Access: "token-0000000001", Refresh: "refresh-000001"}, []string{"repo"})
		if err != nil || got.Refresh != "refresh-000001" {
			t.Errorf("Refresh() = %+v, %v, want the refresh token to stay", got, err)
		}
	})
}
