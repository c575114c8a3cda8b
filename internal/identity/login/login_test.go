package login_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/identity"
	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/identity/login"
	"pgfsm/internal/test/check"
)

const resource = "https://approvals.example.com"

// newClient returns a client of a provider where alice is signed in.
func newClient(t *testing.T) (*identitytest.Provider, *login.Client) {
	p := identitytest.New(t)
	p.Clients["cli"], p.Clients["console"] = "", "console-secret"
	p.SignIn("alice")
	providers := identity.New(identity.Options{Issuers: []identity.Issuer{{URL: p.Issuer}}, Client: p.Client()})
	return p, &login.Client{ID: "cli", Issuer: p.Issuer, Providers: providers, Resource: resource, Scopes: []string{"openid"}}
}

// get opens a URL as a browser does, which follows no redirect.
func get(t *testing.T, at string) *http.Response {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := browser.Get(at)
	check.NoError(t, err)
	got.Body.Close()
	return got
}

// consent opens a URL of the provider, and returns that to which the provider sends the browser back.
func consent(t *testing.T, at string) *url.URL {
	t.Helper()
	got := get(t, at)
	back, err := got.Location()
	if err != nil {
		t.Fatalf("the provider answered %s: %v", got.Status, err)
	}
	return back
}

// visit opens a URL of the provider and follows it back. edit changes the query of the way back.
func visit(t *testing.T, at string, edit func(url.Values)) *http.Response {
	t.Helper()
	back := consent(t, at)
	q := back.Query()
	if edit != nil {
		edit(q)
	}
	back.RawQuery = q.Encode()
	return get(t, back.String())
}

// wants fails the test unless a sign-in ended with a token, or with an error that has some text.
func wants(t *testing.T, token string, err error, text string) {
	t.Helper()
	switch {
	case text == "" && (err != nil || strings.Count(token, ".") != 2):
		t.Errorf("the sign-in ended with %q, %v, want a token", token, err)
	case text != "" && (err == nil || !strings.Contains(err.Error(), text)):
		t.Errorf("the sign-in ended with %v, want %q", err, text)
	}
}

func TestBrowser(t *testing.T) {
	for _, tt := range []struct {
		name string
		user string
		edit func(url.Values)
		want string // part of the error; empty: a token
	}{
		{"signs-in", "alice", nil, ""},
		{"refused-by-the-person", "", nil, "the identity provider refused: access_denied"},
		{"issuer-of-another-provider", "alice", func(q url.Values) { q.Set("iss", "https://evil.example.com") }, "RFC 9207"},
		{"issuer-missing", "alice", func(q url.Values) { q.Del("iss") }, "RFC 9207"},
		{"code-of-somebody-else", "alice", func(q url.Values) { q.Set("code", "stolen") }, "invalid_grant"},
		{"neither-code-nor-error", "alice", func(q url.Values) { q.Del("code") }, "neither a code nor an error"},
		{"error-with-an-escape", "alice", func(q url.Values) { q.Set("error", "a\x1b[2J") }, `refused: a\u001b[2J`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, c := newClient(t)
			p.SignIn(tt.user)
			token, err := c.Browser(context.Background(), func(at string) error {
				visit(t, at, tt.edit)
				return nil
			})
			wants(t, token, err, tt.want)
		})
	}
}

// TestBrowserIgnoresOtherStates: other programs on the machine can send requests to the listener.
func TestBrowserIgnoresOtherStates(t *testing.T) {
	_, c := newClient(t)
	token, err := c.Browser(context.Background(), func(at string) error {
		got := visit(t, at, func(q url.Values) { q.Set("state", "another"); q.Set("code", "another") })
		if got.StatusCode != http.StatusBadRequest {
			t.Errorf("a response with another state is answered %s", got.Status)
		}
		visit(t, at, nil)
		return nil
	})
	if err != nil || token == "" {
		t.Errorf("Browser() = %v", err)
	}
}

func TestBrowserEndsWithItsContext(t *testing.T) {
	_, c := newClient(t)
	ctx, cancel := context.WithCancel(context.Background())
	_, err := c.Browser(ctx, func(string) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Browser() = %v", err)
	}
}

func TestDevice(t *testing.T) {
	answers := func(doc string) func(p *identitytest.Provider) {
		return func(p *identitytest.Provider) {
			p.Override("/device_authorization", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(doc))
			})
		}
	}
	for _, tt := range []struct {
		name string
		with func(p *identitytest.Provider)
		want string
	}{
		{"signs-in", nil, ""},
		{"unknown-client", func(p *identitytest.Provider) { delete(p.Clients, "cli") }, "invalid_client"},
		{"negative-interval", answers(`{"device_code": "d", "user_code": "u", "interval": -1}`), "every -1 seconds"},
		{"huge-interval", answers(`{"device_code": "d", "user_code": "u", "interval": 9223372036854775807}`), "every 9223372036854775807 seconds"},
		{"down", func(p *identitytest.Provider) { p.SetDown(true) }, "cannot be fetched now"},
		{"token-endpoint-down", func(p *identitytest.Provider) {
			p.Override("/device_authorization", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		}, "the identity provider answered 502"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, c := newClient(t)
			if tt.with != nil {
				tt.with(p)
			}
			token, err := c.Device(context.Background(), func(at, code string) error {
				if at == "" || code != "WDJB-MJHT" {
					t.Errorf("shown are %q and %q", at, code)
				}
				return nil
			})
			wants(t, token, err, tt.want)
		})
	}
}

func TestDeviceFlowNotOffered(t *testing.T) {
	p, c := newClient(t)
	p.Override("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		without := p.Metadata()
		delete(without, "device_authorization_endpoint")
		identitytest.Answer(w, http.StatusOK, without)
	})
	if _, err := c.Device(context.Background(), nil); !errors.Is(err, login.ErrNoDeviceFlow) {
		t.Errorf("Device() = %v", err)
	}
}

func TestSignIn(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(s *login.SignIn, q url.Values)
		want string
	}{
		{"signs-in", func(*login.SignIn, url.Values) {}, ""},
		{"state-of-another-attempt", func(_ *login.SignIn, q url.Values) { q.Set("state", "x") }, login.ErrState.Error()},
		{"secret-of-another-attempt", func(s *login.SignIn, _ url.Values) { s.Secret = "other" }, login.ErrState.Error()},
		{"redirect-elsewhere", func(s *login.SignIn, _ url.Values) { s.Redirect += "x" }, "invalid_grant"},
		{"issuer-of-another-provider", func(_ *login.SignIn, q url.Values) { q.Set("iss", "https://evil.example.com") }, "RFC 9207"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, c := newClient(t)
			c.ID, c.Secret, c.Resource = "console", "console-secret", ""
			s := &login.SignIn{Secret: "attempt", Redirect: "http://127.0.0.1:1/console/callback", MaxAge: 5 * time.Minute}
			at, err := c.SignInURL(context.Background(), s)
			check.NoError(t, err)
			if u, err := url.Parse(at); err != nil || u.Query().Get("max_age") != "300" || u.Query().Get("nonce") != s.Nonce() {
				t.Errorf("%s, %v", at, err)
			}
			q := consent(t, at).Query()
			tt.edit(s, q)
			token, err := c.SignIn(context.Background(), s, q)
			wants(t, token, err, tt.want)
		})
	}
}
