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

const remedyPEM = "write ${file:PATH} of a file with an unencrypted private key in PEM"

// parsePrivateKey reads the one private key of a PEM text: PKCS #8, or the older forms of OpenSSL. It ignores certificates and parameters
// beside the key. No message repeats the text or an error of the parser.
func parsePrivateKey(text string) (crypto.Signer, fault) {
	var found *pem.Block
	other := ""
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		switch {
		case block.Type == "OPENSSH PRIVATE KEY":
			return nil, fault{"is in the format of OpenSSH", "convert a copy of the file with ssh-keygen -p -m PKCS8 -f FILE"}
		case block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
			return nil, fault{"is encrypted, and pgfsm has no passphrase for it", remedyPEM}
		case !strings.HasSuffix(block.Type, "PRIVATE KEY"):
			other = block.Type
		case found != nil:
			return nil, fault{"holds more than one private key", "keep the one whose public key the provider knows"}
		default:
			found = block
		}
	}
	switch {
	case found == nil && strings.HasSuffix(other, "PUBLIC KEY"):
		return nil, fault{"is a public key", remedyPEM}
	case found == nil && other == "CERTIFICATE":
		return nil, fault{"is a certificate without its private key", remedyPEM}
	case found == nil:
		return nil, fault{"is not a private key in PEM", remedyPEM}
	}
	key, err := parseBlock(found)
	if err != nil {
		return nil, fault{"is in PEM, but its content is not a private key", remedyPEM}
	}
	return usableKey(key)
}

func parseBlock(b *pem.Block) (any, error) {
	switch b.Type {
	case "RSA PRIVATE KEY":
		return x509.ParsePKCS1PrivateKey(b.Bytes)
	case "EC PRIVATE KEY":
		return x509.ParseECPrivateKey(b.Bytes)
	}
	return x509.ParsePKCS8PrivateKey(b.Bytes)
}

func usableKey(key any) (crypto.Signer, fault) {
	const remedy = "use an RSA, EC P-256 or Ed25519 key"
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if n := key.N.BitLen(); n < minRSABits {
			return nil, fault{fmt.Sprintf("is an RSA key of %d bits; it must have at least %d", n, minRSABits), ""}
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
