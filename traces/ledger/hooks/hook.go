package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"pgfsm/internal/canonical"
)

// Kinds of message.
const (
	Requested = "requested" // a call is held
	Reminder  = "reminder"  // a held call expires soon
	Decided   = "decided"   // approvers decided about a held call, or it expired
	Pruned    = "pruned"    // somebody pruned the ledger
)

// A Hook is a receiver of web hooks, as configured. Package config has checked its URL and its
// kinds of message.
type Hook struct {
	URL    string
	Secret string // whsec_ and base64, as in Standard Webhooks, or any text, whose bytes are the key
	Events []string
}

// secretPrefix begins a secret whose key is in base64.
const secretPrefix = "whsec_"

// MinSecret is the minimum size of a signature's key in bytes, according to the specification.
const MinSecret = 24

// A receiver is a hook with the key of its signatures.
type receiver struct {
	url    string
	key    []byte
	events []string
	id     string // the hook's id in the ledger
	remind string // the id of the hook's reminders in the ledger
	// Index after the entries that this process has read since the stored progress; none of them
	// needs a message.
	read int64
}

// newReceiver reads the secret of a hook. The error does not contain it.
func newReceiver(h Hook) (*receiver, error) {
	key := []byte(h.Secret)
	if coded, ok := strings.CutPrefix(h.Secret, secretPrefix); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(coded); err != nil {
			return nil, fmt.Errorf("the text after %s in its secret is not base64", secretPrefix)
		}
	}
	if len(key) < MinSecret {
		return nil, fmt.Errorf("its secret has %d bytes; it must have %d or more", len(key), MinSecret)
	}
	return &receiver{
		url:    h.URL,
		key:    key,
		events: h.Events,
		id:     string(canonical.Sum("hook", []byte(h.URL))),
		remind: string(canonical.Sum("hook reminder", []byte(h.URL))),
	}, nil
}

// signatureOf returns the signature of a message for the webhook-signature header.
func (r *receiver) signatureOf(id string, at int64, body []byte) string {
	mac := hmac.New(sha256.New, r.key)
	fmt.Fprintf(mac, "%s.%s.%s", id, strconv.FormatInt(at, 10), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
