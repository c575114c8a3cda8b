package identity

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"maps"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of a key set.
const (
	maxKeys    = 100
	minRSABits = 2048
)

// algorithms lists the signature algorithms that are verified. All have a private key, which only
// the provider has.
var algorithms = []jose.SignatureAlgorithm{
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA, jose.PS256, jose.PS384, jose.PS512, jose.RS256, jose.RS384,
	jose.RS512,
}

// key is a public key of a provider.
type key struct {
	public any
	algs   []jose.SignatureAlgorithm
}

// parseKeys returns the keys of a JWK set (RFC 7517) that may verify tokens. It leaves out every
// other key, and all keys that share an id.
func parseKeys(doc []byte) (map[string]key, error) {
	var set struct {
		Keys []jsontext.Value `json:"keys"`
	}
	if json.Unmarshal(doc, &set) != nil {
		return nil, errors.New("the key set is not strict JSON of the expected form")
	}
	if len(set.Keys) > maxKeys {
		return nil, errors.New("the key set has more than 100 keys")
	}
	keys, count := map[string]key{}, map[string]int{}
	for _, raw := range set.Keys {
		if id, k, ok := parseKey(raw); ok {
			keys[id] = k
			count[id]++
		}
	}
	maps.DeleteFunc(keys, func(id string, _ key) bool { return count[id] > 1 })
	if len(keys) == 0 {
		return nil, errors.New("the key set has no key that can verify tokens")
	}
	return keys, nil
}

// parseKey returns a key and its id. ok is false for a key that must not verify tokens, or cannot.
func parseKey(raw jsontext.Value) (id string, k key, ok bool) {
	var purpose struct {
		Use        *string   `json:"use"`
		Operations *[]string `json:"key_ops"`
	}
	var parsed jose.JSONWebKey
	if json.Unmarshal(raw, &purpose) != nil || purpose.Use != nil && *purpose.Use != "sig" ||
		purpose.Operations != nil && !slices.Contains(*purpose.Operations, "verify") ||
		parsed.UnmarshalJSON(raw) != nil || parsed.KeyID == "" || !parsed.Valid() {
		return "", key{}, false
	}
	k = key{public: parsed.Key, algs: algorithmsOf(parsed.Key)}
	if parsed.Algorithm != "" {
		k.algs = slices.DeleteFunc(k.algs,
			func(alg jose.SignatureAlgorithm) bool { return string(alg) != parsed.Algorithm })
	}
	return parsed.KeyID, k, len(k.algs) > 0
}

// algorithmsOf returns the algorithms of signatures that a public key can verify: none for private
// and symmetric keys.
func algorithmsOf(public any) []jose.SignatureAlgorithm {
	switch k := public.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() >= minRSABits { // go-jose reads no key of more than 4096 bits
			return []jose.SignatureAlgorithm{jose.PS256, jose.PS384, jose.PS512, jose.RS256, jose.RS384, jose.RS512}
		}
	case *ecdsa.PublicKey:
		switch k.Curve.Params().Name {
		case "P-256":
			return []jose.SignatureAlgorithm{jose.ES256}
		case "P-384":
			return []jose.SignatureAlgorithm{jose.ES384}
		case "P-521":
			return []jose.SignatureAlgorithm{jose.ES512}
		}
	case ed25519.PublicKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	}
	return nil
}
