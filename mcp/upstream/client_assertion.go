package upstream

import (
	"crypto/rand"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
)

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" // RFC 7523, section 2.2
	// assertionLife is the validity of an assertion. It leaves room for clocks that differ.
	assertionLife = 2 * time.Minute
)

// signAssertion returns a new assertion of the client for its provider (RFC 7523, section 3). Its
// only audience is the issuer: a provider could use an assertion with more audiences at another
// provider.
func (c *ClientCredentials) signAssertion(now time.Time) (string, error) {
	s, err := jose.NewSigner(jose.SigningKey{
		Algorithm: jose.SignatureAlgorithm(c.Alg), Key: jose.JSONWebKey{Key: c.Key, KeyID: c.KeyID},
	}, new(jose.SignerOptions).WithType("JWT"))
	if err != nil {
		return "", err
	}

	claims, err := json.Marshal(struct {
		Issuer   string `json:"iss"`
		Subject  string `json:"sub"`
		Audience string `json:"aud"`
		ID       string `json:"jti"`
		IssuedAt int64  `json:"iat"`
		Expiry   int64  `json:"exp"`
	}{c.ClientID, c.ClientID, c.Issuer, rand.Text(), now.Unix(), now.Add(assertionLife).Unix()})
	if err != nil {
		return "", err
	}

	signed, err := s.Sign(claims)
	if err != nil {
		return "", err
	}

	return signed.CompactSerialize()
}
