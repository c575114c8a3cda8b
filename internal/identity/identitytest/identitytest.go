// Package identitytest runs an identity provider for tests: discovery, keys that rotate, tokens with any claims, the code flow with PKCE,
// client credentials and the device flow. Tests can also make it hostile.
package identitytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Realm is the path of the issuer.
const Realm = "/realms/corp"

// A Provider is an identity provider of one test. Its exported fields may be changed before the first request reaches it.
type Provider struct {
	Issuer   string
	Audience string                    // the audience of access tokens whose request names no resource
	Clients  map[string]string         // the secret of each client id; empty: a public client. Others are refused
	Users    map[string]map[string]any // claims of each subject, in its access and id tokens
	Now      func() time.Time
	Life     time.Duration // the lifetime of its tokens
	// Rotate issues a refresh token with each code's tokens, and another one at each refresh. A used one that comes again
	// ends the whole family (RFC 9700 section 4.14.2), and counts as a reuse.
	Rotate   bool
	Keeps    bool   // issues a refresh token with each code's tokens that stays good: a refresh brings no other
	Withheld string // a scope that it does not grant
	PostOnly bool   // clients send their secrets in the form, and not in the header

	client  *http.Client
	handler http.Handler

	mu        sync.Mutex
	keys      []*key // the last one signs
	drawn     int    // numbers the keys
	down      bool
	user      string // the user who is signed in at the provider; empty: sign-in is refused
	overrides map[string]http.HandlerFunc
	requests  map[string]int
	grants    map[string]*grant // the grants by code or device code
	families  map[string]*family
	reuses    int
}

// key is one key of the provider.
type key struct {
	id, alg string
	private crypto.Signer
}

// New starts a provider on loopback, without TLS, until the test ends.
func New(t testing.TB) *Provider { return start(t, httptest.NewServer) }

// NewTLS is [New] with TLS. [Provider.Client] trusts its certificate.
func NewTLS(t testing.TB) *Provider { return start(t, httptest.NewTLSServer) }

func start(t testing.TB, serve func(http.Handler) *httptest.Server) *Provider {
	p := Unserved("")
	server := serve(p)
	t.Cleanup(server.Close)
	p.Issuer, p.client = server.URL+Realm, server.Client()
	return p
}

// Unserved returns a provider without a listener: its Client calls its handler directly, so it can be used in a bubble of testing/synctest.
func Unserved(origin string) *Provider {
	p := &Provider{
		Issuer: origin + Realm, Audience: "api", Clients: map[string]string{}, Users: map[string]map[string]any{}, Now: time.Now, Life: time.Hour,
		overrides: map[string]http.HandlerFunc{}, requests: map[string]int{}, grants: map[string]*grant{}, families: map[string]*family{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Realm+"/.well-known/openid-configuration", p.metadata)
	mux.HandleFunc("GET "+Realm+"/jwks", p.jwks)
	mux.HandleFunc("GET "+Realm+"/authorize", p.authorize)
	mux.HandleFunc("POST "+Realm+"/token", p.token)
	mux.HandleFunc("POST "+Realm+"/device_authorization", p.device)
	mux.HandleFunc("POST "+Realm+"/revoke", p.revoke)
	mux.HandleFunc("POST "+Realm+"/register", p.register)
	p.handler, p.client = mux, &http.Client{Transport: direct{p}}
	p.AddKey(jose.ES256)
	return p
}

// direct calls a provider's handler without a connection.
type direct struct{ p *Provider }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.p.ServeHTTP(w, r)
	return w.Result(), nil
}

// ServeHTTP answers a request as the provider.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, Realm)
	p.mu.Lock()
	p.requests[path]++
	down, override := p.down, p.overrides[path]
	p.mu.Unlock()
	switch {
	case down:
		http.Error(w, "the provider is down", http.StatusBadGateway)
	case override != nil:
		override(w, r)
	default:
		p.handler.ServeHTTP(w, r)
	}
}

// Default answers a request as if there were no override.
func (p *Provider) Default(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

// Client returns an HTTP client that reaches the provider.
func (p *Provider) Client() *http.Client { return p.client }

// SetDown lets the provider answer every request with an error, or work again.
func (p *Provider) SetDown(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// SignIn sets the subject for whom the provider confirms sign-in without a page. If it is empty, sign-in is refused.
func (p *Provider) SignIn(sub string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.user = sub
}

// Override answers requests for a path below the issuer, such as /jwks, by another handler. Nil ends that.
func (p *Provider) Override(path string, h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.overrides[path] = h
}

// Requests counts the requests for a path below the issuer.
func (p *Provider) Requests(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// AddKey publishes a new key, which signs from now on, and returns its id.
func (p *Provider) AddKey(alg jose.SignatureAlgorithm) string {
	var private crypto.Signer
	var err error
	switch alg {
	case jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case jose.ES384:
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.ES512:
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case jose.EdDSA:
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drawn++
	k := &key{"key-" + strconv.Itoa(p.drawn), string(alg), private}
	p.keys = append(p.keys, k)
	return k.id
}

// RemoveKey no longer publishes a key. At least one must remain.
func (p *Provider) RemoveKey(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []*key
	for _, k := range p.keys {
		if k.id != id {
			left = append(left, k)
		}
	}
	p.keys = left
}

// KeySet returns the keys that the provider publishes.
func (p *Provider) KeySet() jose.JSONWebKeySet {
	p.mu.Lock()
	defer p.mu.Unlock()
	var set jose.JSONWebKeySet
	for _, k := range p.keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Algorithm: k.alg, Use: "sig"})
	}
	return set
}

// An Option changes how [Provider.Sign] signs a token.
type Option func(*signing)

type signing struct {
	header map[jose.HeaderKey]any
}

// Header sets a member of the token's header; typ is at+jwt without it. With a nil value the header has no such member.
func Header(name string, value any) Option {
	return func(s *signing) { s.header[jose.HeaderKey(name)] = value }
}

// Type sets the header's typ.
func Type(typ string) Option { return Header("typ", typ) }

// Sign returns a token with the claims. Without them it has iss, sub "alice", aud, iat, exp and client_id "agent-1"; a nil value removes one.
func (p *Provider) Sign(claims map[string]any, with ...Option) string {
	now := p.Now()
	all := map[string]any{"iss": p.Issuer, "sub": "alice", "aud": p.Audience, "iat": now.Unix(), "exp": now.Add(p.Life).Unix(), "client_id": "agent-1"}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	payload, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return p.SignBytes(payload, with...)
}

// SignBytes is [Provider.Sign] of any bytes.
func (p *Provider) SignBytes(payload []byte, with ...Option) string {
	s := signing{header: map[jose.HeaderKey]any{"typ": "at+jwt"}}
	for _, w := range with {
		w(&s)
	}
	p.mu.Lock()
	k := p.keys[len(p.keys)-1]
	p.mu.Unlock()
	if _, given := s.header["kid"]; !given {
		s.header["kid"] = k.id
	}
	maps.DeleteFunc(s.header, func(_ jose.HeaderKey, value any) bool { return value == nil })
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(k.alg), Key: k.private}, &jose.SignerOptions{ExtraHeaders: s.header})
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return token
}

// Metadata returns the provider's metadata, for overrides that change some of it.
func (p *Provider) Metadata() map[string]any {
	methods := []string{"client_secret_post", "none", "client_secret_basic"}
	if p.PostOnly {
		methods = methods[:2]
	}
	return map[string]any{
		"issuer": p.Issuer, "jwks_uri": p.Issuer + "/jwks", "authorization_endpoint": p.Issuer + "/authorize", "token_endpoint": p.Issuer + "/token",
		"device_authorization_endpoint": p.Issuer + "/device_authorization", "revocation_endpoint": p.Issuer + "/revoke", "registration_endpoint": p.Issuer + "/register",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "code_challenge_methods_supported": []string{"S256"},
		"scopes_supported":                               []string{"openid", "offline_access"},
		"grant_types_supported":                          []string{"authorization_code", "client_credentials", deviceGrant},
		"token_endpoint_auth_methods_supported":          methods,
		"id_token_signing_alg_values_supported":          []string{"ES256", "RS256"},
		"authorization_response_iss_parameter_supported": true,
	}
}

func (p *Provider) metadata(w http.ResponseWriter, _ *http.Request) {
	Answer(w, http.StatusOK, p.Metadata())
}

func (p *Provider) jwks(w http.ResponseWriter, _ *http.Request) { Answer(w, http.StatusOK, p.KeySet()) }

// Answer writes a value as JSON.
func Answer(w http.ResponseWriter, status int, value any) {
	doc, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(doc) // a client that went away is no fault of the provider
}
