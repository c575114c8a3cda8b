package serverrequest

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"pgfsm/mcp/gateway/session"
)

// States binds each requestState of a server to a client, server and target, so that no client can continue the request of another. The
// key lives as long as the process. So other processes, and this gateway after a restart, reject the states.
type States struct{ key [32]byte }

// NewStates returns States with a new key.
func NewStates() *States {
	s := new(States)
	rand.Read(s.key[:])
	return s
}

// macBytes is the length of the authentication code in a state.
const macBytes = 16

func (s *States) mac(native string, client session.Identity, server, target string) string {
	mac := hmac.New(sha256.New, s.key[:])
	for _, part := range []string{client.Name, client.Token, client.Client, client.OnBehalfOf, server, target} {
		mac.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	mac.Write([]byte(native))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:macBytes])
}

// Seal returns the state for the client.
func (s *States) Seal(native string, client session.Identity, server, target string) string {
	return s.mac(native, client, server, target) + "." + native
}

// Open returns the server's state from a sealed one. It reports false if Seal did not make it for this client, server and target.
func (s *States) Open(sealed string, client session.Identity, server, target string) (native string, ok bool) {
	code, native, ok := strings.Cut(sealed, ".")
	return native, ok && hmac.Equal([]byte(code), []byte(s.mac(native, client, server, target)))
}
