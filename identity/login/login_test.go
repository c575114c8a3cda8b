package login_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"pgfsm/identity/identitytest"
	"pgfsm/identity/login"
)

const resource = "https://approvals.example.com"

// newClient returns a client of a provider where alice is signed in.
func newClient(t *testing.T) (*identitytest.Provider, *login.Client) {
	p := identitytest.New(t)
	p.Clients["cli"], p.Clients["console"] = "", "console-secret"
	p.SignIn("alice")
	return p, &login.Client{
		ID: "cli", Issuer: p.Issuer, Resource: resource, Scopes: []string{"openid"}, HTTP: p.Client(),
		Endpoints: func(context.Context) (login.Endpoints, error) {
			return login.Endpoints{Endpoint: oauth2.Endpoint{
				AuthURL: p.Issuer + "/authorize", TokenURL: p.Issuer + "/token", DeviceAuthURL: p.Issuer + "/device_authorization",
			}, NamesIss: true}, nil
		},
	}
}

// visit opens a URL as a browser does. edit changes the query with which the provider sends the browser back.
func visit(t *testing.T, at string, edit func(url.Values)) *http.Response {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := browser.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	back, err := got.Location()
	if err != nil {
		t.Fatalf("the provider answered %s: %v", got.Status, err)
	}
	q := back.Query()
	if edit != nil {
		edit(q)
	}
	back.RawQuery = q.Encode()
	got, err = browser.Get(back.String())
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	return got
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
			switch {
			case tt.want == "" && (err != nil || strings.Count(token, ".") != 2):
				t.Errorf("Browser() = %q, %v, want a token", token, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Browser() = %v, want %q", err, tt.want)
			}
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
		{"down", func(p *identitytest.Provider) { p.SetDown(true) }, "the identity provider answered 502"},
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
			switch {
			case tt.want == "" && (err != nil || strings.Count(token, ".") != 2):
				t.Errorf("Device() = %q, %v, want a token", token, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Device() = %v, want %q", err, tt.want)
			}
		})
	}
}

func TestDeviceFlowNotOffered(t *testing.T) {
	_, c := newClient(t)
	c.Endpoints = func(context.Context) (login.Endpoints, error) { return login.Endpoints{}, nil }
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
			if err != nil {
				t.Fatal(err)
			}
			if u, err := url.Parse(at); err != nil || u.Query().Get("max_age") != "300" || u.Query().Get("nonce") != s.Nonce() {
				t.Errorf("%s, %v", at, err)
			}
			browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			got, err := browser.Get(at)
			if err != nil {
				t.Fatal(err)
			}
			got.Body.Close()
			back, err := got.Location()
			if err != nil {
				t.Fatal(err)
			}
			q := back.Query()
			tt.edit(s, q)
			token, err := c.SignIn(context.Background(), s, q)
			switch {
			case tt.want == "" && (err != nil || strings.Count(token, ".") != 2):
				t.Errorf("SignIn() = %q, %v, want a token", token, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("SignIn() = %v, want %q", err, tt.want)
			}
		})
	}
}
