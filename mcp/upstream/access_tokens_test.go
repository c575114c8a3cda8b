package upstream

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/oauth"
	"pgfsm/internal/secret"
	"pgfsm/internal/test/check"
)

const clientSecret = "s3cret/+of=the client"

// A provider is a token endpoint. It issues token-0001, token-0002 and so on, and counts the requests.
type provider struct {
	*httptest.Server
	answer http.HandlerFunc // nil: a token for expires seconds
	expiry int

	mu    sync.Mutex
	forms []url.Values
	basic [][2]string
}

func serveProvider(t *testing.T, answer http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{answer: answer, expiry: 3600}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, password, _ := r.BasicAuth()
	err := r.ParseForm()
	p.mu.Lock()
	p.forms, p.basic = append(p.forms, r.PostForm), append(p.basic, [2]string{id, password})
	n := len(p.forms)
	p.mu.Unlock()
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case p.answer != nil:
		p.answer(w, r)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token-%04d","token_type":"bearer","expires_in":%d}`, n, p.expiry)
	}
}

func (p *provider) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.forms)
}

func (p *provider) credentials() *ClientCredentials {
	return &ClientCredentials{TokenURL: p.URL + "/token", ClientID: "pgfsm", ClientSecret: clientSecret}
}

// issued accepts every token of a provider.
func issued(token string) bool { return strings.HasPrefix(token, "token-") }

// locked serves a script to requests with a token that accept takes, with the credentials of a provider. It remembers the tokens that
// come, without repetitions.
func locked(t *testing.T, s script, p *provider, accept func(token string) bool) (*scripted, func() []string, Server) {
	t.Helper()
	var mu sync.Mutex
	var tokens []string
	srv := serveScript(t, s, false)
	srv.intercept = func(rw http.ResponseWriter, r *http.Request, _ spoken) bool {
		mu.Lock()
		defer mu.Unlock()
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if n := len(tokens); n == 0 || tokens[n-1] != token {
			tokens = append(tokens, token)
		}
		if accept(token) {
			return false
		}
		rw.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	}
	seen := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(tokens)
	}
	server := srv.server()
	server.Auth = p.credentials()
	return srv, seen, server
}

func TestAccessTokenIsRequestedOnceForAllSessions(t *testing.T) {
	noLeak(t)
	release := make(chan struct{})
	p := serveProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"access_token":"token-0001","token_type":"Bearer"}`)
	})
	_, seen, s := locked(t, honest, p, issued)
	s.Auth.Scopes, s.Auth.Resource, s.Auth.Audience = []string{"crm.read", "crm.write"}, s.URL, "crm"
	u := upstreams(t, Limits{}, s)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			link, err := u.Link(t.Context(), "web", Peer{})
			if err != nil {
				t.Error(err)
				return
			}
			link.Close()
		})
	}
	eventually(t, "a token is requested", func() bool { return p.asked() > 0 })
	close(release)
	wg.Wait()
	mustList(t, u)
	if r := call(t.Context(), u, "web", `{}`); r.Effect != EffectDone {
		t.Errorf("Call() = %+v, want done", r)
	}
	if d := cmp.Diff([]string{"token-0001"}, seen()); d != "" {
		t.Errorf("tokens at the server (-want +got):\n%s", d)
	}
	want := []url.Values{{"grant_type": {"client_credentials"}, "scope": {"crm.read crm.write"}, "resource": {s.URL}, "audience": {"crm"}}}
	if d := cmp.Diff(want, p.forms); d != "" {
		t.Errorf("token requests (-want +got):\n%s", d)
	}
	// RFC 6749, section 2.3.1: both are encoded as in a form.
	if d := cmp.Diff([][2]string{{"pgfsm", url.QueryEscape(clientSecret)}}, p.basic); d != "" {
		t.Errorf("credentials (-want +got):\n%s", d)
	}
}

func TestRefusedAccessToken(t *testing.T) {
	p := serveProvider(t, nil)
	var revoked atomic.Value // the last token that is; the earlier ones are as well
	revoked.Store("token-0000")
	srv, seen, s := locked(t, honest, p, func(token string) bool { return token > revoked.Load().(string) })
	u := upstreams(t, Limits{}, s)
	mustList(t, u)
	revoked.Store("token-0001")
	first := call(t.Context(), u, "web", `{}`)
	if first.Effect != EffectUnknown || first.Code != CodeUnreachable ||
		!strings.Contains(first.Reason, "401 Unauthorized to the access token from 127.0.0.1:") || srv.count(methodCall) != 1 {
		t.Errorf("Call() with a revoked token = %+v, %d sent, want unknown and one", first, srv.count(methodCall))
	}
	if second := call(t.Context(), u, "web", `{}`); second.Effect != EffectDone || srv.count(methodCall) != 2 {
		t.Errorf("next Call() = %+v, %d sent, want done and two", second, srv.count(methodCall))
	}

	revoked.Store("token-0002")
	lists := srv.count(methodList)
	mustList(t, u)
	if d := cmp.Diff([]string{"token-0001", "token-0002", "token-0003"}, seen()); d != "" {
		t.Errorf("tokens at the server (-want +got):\n%s", d)
	}
	if n := srv.count(methodList) - lists; n != 2 || p.asked() != 3 {
		t.Errorf("%d lists sent, %d token requests, want the list twice, and 3", n, p.asked())
	}
}

func TestServerThatAcceptsNoTokenCausesFewTokenRequests(t *testing.T) {
	p := serveProvider(t, nil)
	_, seen, s := locked(t, honest, p, func(string) bool { return false })
	u := upstreams(t, Limits{}, s)
	begun := time.Now()
	for range 3 {
		if reason := mustBeDown(t, u, CodeUnreachable); !strings.Contains(reason, "HTTP status 401 Unauthorized to the access token from 127.0.0.1:") {
			t.Errorf("reason = %q", reason)
		}
	}
	if n := p.asked(); n != 1 && time.Since(begun) < refusedWait {
		t.Errorf("%d token requests, want 1; the server saw %v", n, seen())
	}
}

func TestTokenEndpointThatFails(t *testing.T) {
	const inBody = "what-the-endpoint-repeats"
	sends := func(status int, content, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", content)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	token := func(token string) http.HandlerFunc {
		return sends(200, "application/json", fmt.Sprintf(`{"access_token":%q,"token_type":"Bearer"}`, token))
	}
	const unusable = "it answered with something else than an access token"
	for _, tt := range []struct {
		name         string
		answer       http.HandlerFunc
		code, reason string
	}{
		{"client-refused", sends(401, "application/json", `{"error":"invalid_client","error_description":"`+inBody+`"}`),
			CodeUnreachable, "HTTP status 401 Unauthorized, error invalid_client"},
		{"error-with-status-200", sends(200, "application/json", `{"error":"invalid_target"}`), CodeUnreachable, "200 OK, error invalid_target"},
		{"error-code-that-is-a-text", sends(400, "application/json", `{"error":"`+inBody+`"}`), CodeUnreachable, "400 Bad Request"},
		{"html", sends(200, "text/html", "<p>"+inBody), CodeProtocol, unusable},
		{"form", sends(200, "application/x-www-form-urlencoded", "a=%zz"+inBody), CodeProtocol, unusable},
		{"no-token", sends(200, "application/json", `{"access_tokens":"`+inBody+`"}`), CodeProtocol, unusable},
		{"ten-megabytes", sends(200, "application/json", `{"x":"`+strings.Repeat("x", 10<<20)+`","access_token":"token-0001"}`), CodeProtocol, unusable},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/"+inBody, http.StatusTemporaryRedirect)
		},
			CodeRedirect, "307 Temporary Redirect"},
		{"not-http", func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				io.WriteString(conn, inBody+"\r\n\r\n")
				conn.Close()
			}
		}, CodeUnreachable, "it did not answer in HTTP"},
		{"other-type", sends(200, "application/json", `{"access_token":"token-0001","token_type":"`+inBody+`"}`), CodeProtocol, "not of type Bearer"},
		{"short-token", token("seven77"), CodeProtocol, "fewer than 8 bytes"},
		{"long-token", token(strings.Repeat("x", oauth.MaxToken+1)), CodeProtocol, "more than 16384 bytes"},
		{"token-with-a-line-end", token(inBody + "\r\nX: y"), CodeProtocol, "characters that a header may not have"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := serveProvider(t, tt.answer)
			srv, _, s := locked(t, honest, p, issued)
			reason := mustBeDown(t, upstreams(t, Limits{}, s), tt.code)
			if !strings.HasPrefix(reason, "there is no access token from 127.0.0.1:") || !strings.Contains(reason, tt.reason) {
				t.Errorf("reason = %q, want it to name %q", reason, tt.reason)
			}
			if strings.Contains(reason, inBody) || strings.Contains(reason, clientSecret) {
				t.Errorf("reason = %q: it repeats the response", reason)
			}
			if n := p.asked(); n != 1 || len(srv.seen) > 0 {
				t.Errorf("%d token requests, %d messages at the server, want 1 and 0", n, len(srv.seen))
			}
		})
	}
}

// A call for which no token can be had is not sent.
func TestCallWithoutATokenIsNotSent(t *testing.T) {
	var broken atomic.Bool
	p := serveProvider(t, nil)
	p.answer = func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"access_token":"token-0001","expires_in":1}`)
	}
	srv, _, s := locked(t, honest, p, issued)
	u := upstreams(t, Limits{}, s)
	mustList(t, u)
	broken.Store(true)
	r := call(t.Context(), u, "web", `{}`)
	if r.Effect != EffectNotSent || r.Code != CodeUnreachable || srv.count(methodCall) != 0 {
		t.Errorf("Call() = %+v, %d sent, want not sent", r, srv.count(methodCall))
	}
	broken.Store(false)
	if r := call(t.Context(), u, "web", `{}`); r.Effect != EffectDone {
		t.Errorf("Call() after the endpoint is back = %+v, want done", r)
	}
}

func TestAccessTokenIsMasked(t *testing.T) {
	p := serveProvider(t, nil)
	_, _, s := locked(t, answering("tools/call", answerWith(`{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"bad Bearer token-0001"}}`)), p, issued)
	secrets := secret.New([]string{clientSecret})
	u := New([]Server{s}, Limits{}, Info{}, secrets)
	defer u.Close()
	mustList(t, u)
	r := call(t.Context(), u, "web", `{}`)
	if strings.Contains(r.Reason, "token-0001") || !strings.Contains(r.Reason, secret.Mask) {
		t.Errorf("Reason = %q, want it without the token", r.Reason)
	}
	if got := secrets.String("token-0001"); got != secret.Mask {
		t.Errorf("String(the token) = %q, want it masked", got)
	}
	check.NoError(t, u.Close())
	if got := secrets.String("token-0001"); got == secret.Mask {
		t.Error("the token is kept after nobody uses it any more")
	}
}
