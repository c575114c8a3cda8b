package config

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
)

// minRSABits is the shortest RSA key that RFC 7518 allows for signatures (section 3.3).
const minRSABits = 2048

// parsePrivateKey reads the one private key of a PEM text: PKCS #8, or the older forms of OpenSSL.
// It ignores certificates and parameters beside the key. No message repeats the text or an error of
// the parser.
func parsePrivateKey(text string) (crypto.Signer, fault) {
	var found *pem.Block
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
		case found != nil:
			return nil, fault{"holds more than one private key", "keep the one whose public key the provider knows"}
		default:
			found = block
		}
	}
	if found != nil {
		for _, parse := range []func([]byte) (any, error){x509.ParsePKCS8PrivateKey, parsePKCS1, parseEC} {
			if key, err := parse(found.Bytes); err == nil {
				return usableKey(key)
			}
		}
	}
	return nil, fault{"is not an unencrypted private key in PEM",
		"write ${file:PATH} of a file with one; ssh-keygen -p -m PKCS8 -f FILE converts a key of OpenSSH or without its passphrase"}
}

func parsePKCS1(der []byte) (any, error) { return x509.ParsePKCS1PrivateKey(der) }

func parseEC(der []byte) (any, error) { return x509.ParseECPrivateKey(der) }

func usableKey(key any) (crypto.Signer, fault) {
	const remedy = "use an RSA key of 2048 bits or more, an EC P-256 key or an Ed25519 key"
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if n := key.N.BitLen(); n < minRSABits {
			return nil, fault{fmt.Sprintf("is an RSA key of %d bits; it must have at least %d", n, minRSABits), remedy}
		}
		return key, fault{}
	case *ecdsa.PrivateKey:
		if key.Curve != elliptic.P256() {
			return nil, fault{"is an EC key on " + key.Curve.Params().Name, remedy}
		}
		return key, fault{}
	case ed25519.PrivateKey:
		return key, fault{}
	}
	return nil, fault{"is a private key that does not sign", remedy}
}

// algorithmsOf returns the signature algorithms of a usable key, the default first.
func algorithmsOf(key crypto.Signer) []string {
	switch key.(type) {
	case *rsa.PrivateKey:
		return []string{"RS256", "PS256"}
	case *ecdsa.PrivateKey:
		return []string{"ES256"}
	}
	return []string{"EdDSA"}
}
