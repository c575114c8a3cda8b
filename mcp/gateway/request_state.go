package gateway

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// seals bind what a server wants back to the client that it was given to, so that nobody can go on with the request of another.
// The key lives as long as the process: what was asked before it began has to be asked again.
type stateSealer struct{ key [32]byte }

func (s *stateSealer) init() { rand.Read(s.key[:]) }

func (s *stateSealer) mac(whose, native string, who Identity, server, what string) string {
	mac := hmac.New(sha256.New, s.key[:])
	for _, part := range []string{whose, who.Name, who.Token, server, what} {
		var size [8]byte
		for i := range size {
			size[i] = byte(len(part) >> (8 * i))
		}
		mac.Write(size[:])
		mac.Write([]byte(part))
	}
	mac.Write([]byte(native))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:sealBytes])
}

// seal is the state as the client gets it.
func (s *stateSealer) seal(whose, native string, who Identity, server, what string) string {
	return s.mac(whose, native, who, server, what) + "." + native
}

// open is the state as it was sealed, if this client got it for this.
func (s *stateSealer) open(whose, sealed string, who Identity, server, what string) (native string, ok bool) {
	code, native, ok := strings.Cut(sealed, ".")
	return native, ok && hmac.Equal([]byte(code), []byte(s.mac(whose, native, who, server, what)))
}

// sealBytes is the length of a seal: what of the code is kept.
const sealBytes = 16

// Whose a sealed state is.
const (
	stateServer  = "server" // the upstream server's own
	statePending = "errand" // that of a request which goes on meanwhile; see errand
	stateURL     = "shown"  // that of a call which waits for people; see calling.shows
)
