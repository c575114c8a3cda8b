package identitytest

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// grant is a client's right to exchange a code or device code for tokens once.
type grant struct {
	client, sub, redirect, challenge, nonce, resource, scope string
	authTime                                                 time.Time

	family *family // nil: the grant has no refresh token
}

// family has the refresh tokens of one grant of a person. The access tokens name it (sid), and the refresh tokens begin with it.
type family struct {
	grant
	id      string
	current string // empty: the next answer has a new one
	ended   bool
}

// newFamily gives a grant refresh tokens, if the provider issues any.
func (p *Provider) newFamily(g *grant) {
	if p.Rotate || p.Keeps {
		g.family = &family{grant: *g, id: rand.Text()}
	}
}

// Grant returns the tokens of a client whose use a user has allowed, as the token endpoint does.
func (p *Provider) Grant(client, sub, resource, scope string) map[string]any {
	g := &grant{client: client, sub: sub, resource: resource, scope: scope, authTime: p.Now()}
	p.newFamily(g)
	return p.tokens(g)
}

// Family returns the family of a refresh token.
func Family(refresh string) string {
	id, _, _ := strings.Cut(strings.TrimPrefix(refresh, "refresh-"), "-")
	return id
}

// authorize answers an authorization request as if the signed-in user had consented. It shows no page.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	redirect, err := url.Parse(q.Get("redirect_uri"))
	if _, known := p.Clients[q.Get("client_id")]; !known || err != nil || redirect.Host == "" {
		http.Error(w, "unknown client or redirect_uri", http.StatusBadRequest)
		return
	}
	out := url.Values{"iss": {p.Issuer}, "state": q["state"]}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case q.Get("response_type") != "code" || q.Get("code_challenge") == "" || q.Get("code_challenge_method") != "S256":
		out.Set("error", "invalid_request")
	case p.user == "":
		out.Set("error", "access_denied")
	default:
		code := rand.Text()
		p.grants[code] = &grant{client: q.Get("client_id"), sub: p.user, redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge"),
			nonce: q.Get("nonce"), resource: q.Get("resource"), authTime: p.Now(),
			scope: strings.Join(slices.DeleteFunc(strings.Fields(q.Get("scope")), func(s string) bool { return s == p.Withheld }), " ")}
		out.Set("code", code)
	}
	redirect.RawQuery = out.Encode()
	http.Redirect(w, r, redirect.String(), http.StatusFound)
}

// device begins the device flow. The code can be exchanged as soon as a user is signed in.
func (p *Provider) device(w http.ResponseWriter, r *http.Request) {
	client, ok := p.authenticate(r)
	if !ok {
		Answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.grants[code] = &grant{client: client, resource: r.PostForm.Get("resource"), scope: r.PostForm.Get("scope")}
	Answer(w, http.StatusOK, map[string]any{"device_code": code, "user_code": "WDJB-MJHT", "verification_uri": p.Issuer + "/device", "expires_in": 600, "interval": 1})
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	client, ok := p.authenticate(r)
	if !ok {
		Answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	g, problem := p.redeem(client, r.PostForm)
	if problem != "" {
		Answer(w, http.StatusBadRequest, map[string]any{"error": problem})
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	Answer(w, http.StatusOK, p.tokens(g))
}

// tokens returns the response with the tokens of a grant.
func (p *Provider) tokens(g *grant) map[string]any {
	claims := maps.Clone(p.Users[g.sub])
	if claims == nil {
		claims = map[string]any{}
	}
	claims["sub"] = g.sub
	id := maps.Clone(claims)
	claims["client_id"], claims["scope"] = g.client, g.scope
	if g.resource != "" {
		claims["aud"] = g.resource
	}
	claims["jti"] = rand.Text()
	answer := map[string]any{"token_type": "Bearer", "expires_in": int(p.Life.Seconds()), "scope": g.scope}
	if g.family != nil {
		claims["sid"] = g.family.id
		if token := p.rotate(g.family); token != "" {
			answer["refresh_token"] = token
		}
	}
	answer["access_token"] = p.Sign(claims)
	if strings.Contains(" "+g.scope+" ", " openid ") {
		id["aud"], id["client_id"], id["auth_time"] = g.client, nil, g.authTime.Unix()
		if g.nonce != "" {
			id["nonce"] = g.nonce
		}
		answer["id_token"] = p.Sign(id, Type("JWT"))
	}
	return answer
}

// redeem returns the grant for a client's request, or the code of an error.
func (p *Provider) redeem(client string, form url.Values) (g *grant, problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch form.Get("grant_type") {
	case "client_credentials":
		if p.Clients[client] == "" {
			return nil, "unauthorized_client"
		}
		return &grant{client: client, sub: client, resource: form.Get("resource"), scope: form.Get("scope")}, ""
	case "authorization_code":
		g := p.grants[form.Get("code")]
		delete(p.grants, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if g == nil || g.sub == "" || g.client != client || g.redirect != form.Get("redirect_uri") || g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) {
			return nil, "invalid_grant"
		}
		p.newFamily(g)
		return g, ""
	case "refresh_token":
		token := form.Get("refresh_token")
		f := p.families[token]
		switch {
		case f == nil, f.ended, f.client != client:
			return nil, "invalid_grant"
		case f.resource != form.Get("resource"):
			return nil, "invalid_target"
		case f.current != token:
			f.ended = true
			p.reuses++
			return nil, "invalid_grant"
		}
		if !p.Keeps {
			f.current = "" // until the answer
		}
		g := f.grant
		g.family = f
		return &g, ""
	case deviceGrant:
		g := p.grants[form.Get("device_code")]
		switch {
		case g == nil || g.challenge != "" || g.client != client:
			return nil, "invalid_grant"
		case p.user == "":
			return nil, "authorization_pending"
		}
		delete(p.grants, form.Get("device_code"))
		g.sub, g.authTime = p.user, p.Now()
		return g, ""
	}
	return nil, "unsupported_grant_type"
}

// authenticate reads the form of a request, and the client that it authenticates as. A public client gives its id only.
func (p *Provider) authenticate(r *http.Request) (client string, ok bool) {
	if r.ParseForm() != nil {
		return "", false
	}
	id, secret, basic := r.BasicAuth()
	if basic { // RFC 6749 section 2.3.1 encodes both
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	want, known := p.Clients[id]
	return id, known && !(basic && p.PostOnly) && subtle.ConstantTimeCompare([]byte(want), []byte(secret)) == 1
}

// rotate issues the next refresh token of a family; empty if the current one stays good.
func (p *Provider) rotate(f *family) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.current != "" {
		return ""
	}
	f.current = "refresh-" + f.id + "-" + rand.Text()
	p.families[f.current] = f
	return f.current
}

// Reuses counts the refresh tokens that came again.
func (p *Provider) Reuses() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reuses
}

// Live counts the families of refresh tokens that have not ended.
func (p *Provider) Live() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for token, f := range p.families { // in any order
		if f.current == token && !f.ended {
			n++
		}
	}
	return n
}

// revoke ends the family of a refresh token (RFC 7009).
func (p *Provider) revoke(w http.ResponseWriter, r *http.Request) {
	client, ok := p.authenticate(r)
	if !ok {
		Answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := p.families[r.PostForm.Get("token")]; f != nil && f.client == client {
		f.ended = true
	}
}

// register adds a client (RFC 7591).
func (p *Provider) register(w http.ResponseWriter, r *http.Request) {
	var asked map[string]any
	if json.NewDecoder(r.Body).Decode(&asked) != nil {
		Answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	asked["client_id"] = "client-" + rand.Text()
	p.mu.Lock()
	p.Clients[asked["client_id"].(string)] = ""
	p.mu.Unlock()
	Answer(w, http.StatusCreated, asked)
}
