package identity

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/web"
)

// Bounds of tokens.
const (
	maxTokenBytes = 16 << 10
	maxDepth      = 16
	maxLife       = 24 * time.Hour
	leeway        = 60 * time.Second // the allowance for clocks that differ
)

// Reasons for which tokens are invalid. They are constant, so that no text of a token gets into
// logs.
var (
	errSize      = errors.New("the token is larger than 16 KiB")
	errForm      = errors.New("the token is neither one of the ledger, which begins with pgfsm_, nor a signed JWT of an identity provider")
	errHeader    = errors.New("the token's header is not strict JSON of the expected form, or has crit, jku, jwk, x5c, x5u or b64")
	errAlgorithm = errors.New("the token's algorithm is not accepted")
	errType      = errors.New("the token's typ is not that of an access token of its issuer")
	errClaims    = errors.New("the token's claims are not strict JSON of the expected form")
	errIssuer    = errors.New("the token's issuer is not configured")
	errKey       = errors.New("the provider has no key that can verify the token")
	errSignature = errors.New("the token's signature is wrong")
	errTime      = errors.New("the token has no exp or no iat, is valid for more than 24 hours, or has a time outside of the valid range")
	errExpired   = errors.New("the token has expired")
	errEarly     = errors.New("the token is not valid yet")
	errBound     = errors.New("the token is bound to a key of its client (cnf), which is not supported")
	errNoAccess  = errors.New("the token is an id token, a refresh token or a logout token, not an access token")
	errSubject   = errors.New("the token's subject is not 1 to 255 printable ASCII characters without spaces")
	errClient    = errors.New("the token names no client, several ones, or one with characters that are not printable ASCII")
	errAct       = errors.New("the token's act has no valid subject, another issuer or an act of its own, or the client is one of people")
	errAudience  = errors.New("the token is for another audience")
	errAgent     = errors.New("the token is that of an agent")
	errIDToken   = errors.New("the id token was not issued for this sign-in")
)

// header has the members of a JOSE header that decide. Those that name a key elsewhere, or change
// what is signed, must be absent.
type header struct {
	Algorithm jose.SignatureAlgorithm `json:"alg"`
	KeyID     string                  `json:"kid"`
	Type      string                  `json:"typ"`

	Critical jsontext.Value `json:"crit"`
	KeySet   jsontext.Value `json:"jku"`
	Key      jsontext.Value `json:"jwk"`
	Chain    jsontext.Value `json:"x5c"`
	ChainURL jsontext.Value `json:"x5u"`
	Base64   jsontext.Value `json:"b64"`
}

// claims holds the claims that this package reads by name.
type claims struct {
	Issuer    string   `json:"iss"`
	Audience  texts    `json:"aud"`
	Expires   *float64 `json:"exp"`
	NotBefore *float64 `json:"nbf"`
	IssuedAt  *float64 `json:"iat"`
	AuthTime  *float64 `json:"auth_time"`
	ID        *string  `json:"jti"`

	Authorized *string `json:"azp"`
	ClientID   *string `json:"client_id"`
	OktaClient *string `json:"cid"`
	EntraV1    *string `json:"appid"`

	Scope texts          `json:"scope"`
	Scp   texts          `json:"scp"` // Okta sends a list, Entra a string
	Bound jsontext.Value `json:"cnf"`

	// Tokens of other uses have these.
	Nonce      jsontext.Value `json:"nonce"`
	AccessHash jsontext.Value `json:"at_hash"`
	CodeHash   jsontext.Value `json:"c_hash"`
	Events     jsontext.Value `json:"events"`
	Type       *string        `json:"typ"`       // Keycloak
	Use        *string        `json:"token_use"` // Cognito
}

// texts is a string or a list of strings.
type texts []string

// UnmarshalJSON reads both forms.
func (t *texts) UnmarshalJSON(doc []byte) error {
	if doc[0] != '"' {
		return json.Unmarshal(doc, (*[]string)(t))
	}
	*t = make(texts, 1)
	return json.Unmarshal(doc, &(*t)[0])
}

// token is a token with a good signature.
type token struct {
	provider *provider
	keyID    string
	typ      string
	claims   claims
	all      map[string]any // the claims again, for pointers
	caller   web.Caller     // the caller of an access token, without roles
}

// unverified is a token whose form is good.
type unverified struct {
	header header
	jws    *jose.JSONWebSignature
	claims claims
	doc    []byte // the claims
}

// parseToken reads a token strictly. It calls no cryptography.
func parseToken(raw string) (*unverified, error) {
	if len(raw) > maxTokenBytes {
		return nil, errSize
	}
	parts := strings.Split(raw, ".")
	if len(parts) != 3 || strings.ContainsAny(raw, "\r\n") { // Go's decoder would skip line breaks
		return nil, errForm
	}

	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return nil, errForm
		}
	}

	u := &unverified{doc: decoded[1]}
	// Members that name a key elsewhere, or change what is signed, are refused.
	h := &u.header
	if canonical.Check(decoded[0], maxDepth) != nil || json.Unmarshal(decoded[0], h) != nil ||
		h.Critical != nil || h.KeySet != nil || h.Key != nil || h.Chain != nil || h.ChainURL != nil || h.Base64 != nil {
		return nil, errHeader
	}
	if !slices.Contains(algorithms, h.Algorithm) {
		return nil, errAlgorithm
	}
	if canonical.Check(u.doc, maxDepth) != nil || json.Unmarshal(u.doc, &u.claims) != nil {
		return nil, errClaims
	}

	var err error
	if u.jws, err = jose.ParseSignedCompact(raw, algorithms); err != nil {
		return nil, errForm
	}

	return u, nil
}

// verifySignature checks the signature with a key of the provider.
func (u *unverified) verifySignature(p *provider, k key) (*token, error) {
	if !slices.Contains(k.algs, u.header.Algorithm) {
		return nil, errKey
	}
	if _, err := u.jws.Verify(k.public); err != nil {
		return nil, errSignature
	}
	t := &token{provider: p, keyID: u.header.KeyID, typ: "jwt", claims: u.claims}
	if u.header.Type != "" { // RFC 7519 section 5.1: JWT may be left out, and Okta leaves it out
		t.typ = mediaType(u.header.Type)
	}
	if json.Unmarshal(u.doc, &t.all) != nil {
		return nil, errClaims
	}
	return t, nil
}

// mediaType normalizes a value of typ (RFC 7515 section 4.1.9).
func mediaType(typ string) string { return strings.TrimPrefix(strings.ToLower(typ), "application/") }

// checkTimes checks the token's times.
func (c *claims) checkTimes(now time.Time) error {
	for _, date := range []*float64{c.Expires, c.NotBefore, c.IssuedAt, c.AuthTime} {
		if date != nil && (*date < 0 || *date > 1<<40) {
			return errTime
		}
	}
	if c.Expires == nil || c.IssuedAt == nil { // RFC 9068 and OpenID Connect Core require both
		return errTime
	}
	issued, expires := timeOf(c.IssuedAt), timeOf(c.Expires)
	switch latest := now.Add(leeway); {
	case expires.Sub(issued) > maxLife:
		return errTime
	case !now.Before(expires.Add(leeway)):
		return errExpired
	case issued.After(latest), c.NotBefore != nil && timeOf(c.NotBefore).After(latest):
		return errEarly
	}
	return nil
}

// timeOf converts a NumericDate.
func timeOf(date *float64) time.Time { return time.Unix(int64(*date), 0) }
