package gateway

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// requestStates binds each requestState of a server to a client, server and target, so that no
// client can continue the request of another. The key lives as long as the process. So other
// processes, and this gateway after a restart, reject the states.
type requestStates struct{ key [32]byte }

func newRequestStates() *requestStates {
	s := new(requestStates)
	rand.Read(s.key[:])
	return s
}

// macBytes is the length of the authentication code in a state.
const macBytes = 16

func (s *requestStates) mac(native string, client Identity, server, target string) string {
	mac := hmac.New(sha256.New, s.key[:])
	fmt.Fprintf(mac, "%q", []string{client.Name, client.Token, client.Client, client.OnBehalfOf, server, target,
		native})
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:macBytes])
}

// sealState returns the state for the client.
func (s *requestStates) sealState(native string, client Identity, server, target string) string {
	return s.mac(native, client, server, target) + "." + native
}

// openState returns the server's state from a sealed one. It reports false if seal did not make it
// for this client, server and target.
func (s *requestStates) openState(sealed string, client Identity, server, target string) (native string, ok bool) {
	code, native, ok := strings.Cut(sealed, ".")
	return native, ok && hmac.Equal([]byte(code), []byte(s.mac(native, client, server, target)))
}
