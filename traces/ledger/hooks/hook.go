package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/internal/web/loopback"
)

// Kinds of message.
const (
	Requested = "requested" // a call is held
	Reminder  = "reminder"  // a held call expires soon
	Decided   = "decided"   // approvers decided about a held call, or it expired
)

// Kinds returns the kinds of message.
func Kinds() []string { return []string{Requested, Reminder, Decided} }

// A Hook is a receiver of web hooks, as configured.
type Hook struct {
	URL    string
	Secret string // whsec_ and base64, as in Standard Webhooks, or any text, whose bytes are the key
	Events []string
}

// secretPrefix begins a secret whose key is in base64.
const secretPrefix = "whsec_"

// MinSecret is the minimum size of a signature's key in bytes, according to the specification.
const MinSecret = 24

// maxHooks bounds the number of hooks: each has a goroutine.
const maxHooks = 16

// A receiver is a validated hook.
type receiver struct {
	url    string
	key    []byte
	events []string
	id     string // the hook's id in the ledger
	remind string // the id of the hook's reminders in the ledger
	read   int64  // index after the entries that this process has read since the stored progress; none of them needs a message
}

// receivers validates hooks. No error contains a secret, or a URL, which may be one.
func receivers(all []Hook) ([]*receiver, error) {
	if len(all) > maxHooks {
		return nil, fmt.Errorf("there are %d hooks; at most %d are told", len(all), maxHooks)
	}
	var out []*receiver
	for i, h := range all {
		u, err := url.Parse(h.URL)
		if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
			return nil, fmt.Errorf("hook %d: its URL is not one of a web hook", i)
		}
		if u.Scheme != "https" && !(u.Scheme == "http" && loopback.Host(u.Hostname())) {
			return nil, fmt.Errorf("hook %d: its URL must be https, or http on this machine", i)
		}
		key := []byte(h.Secret)
		if coded, ok := strings.CutPrefix(h.Secret, secretPrefix); ok {
			if key, err = base64.StdEncoding.DecodeString(coded); err != nil {
				return nil, fmt.Errorf("hook %d: what stands behind %s in its secret is not base64", i, secretPrefix)
			}
		}
		if len(key) < MinSecret {
			return nil, fmt.Errorf("hook %d: its secret has %d bytes; it must have %d or more", i, len(key), MinSecret)
		}
		for _, kind := range h.Events {
			if !slices.Contains(Kinds(), kind) {
				return nil, fmt.Errorf("hook %d: %q is no kind of message", i, kind)
			}
		}
		r := &receiver{
			url: h.URL, key: key, events: h.Events, id: string(canonical.Sum("hook", []byte(h.URL))),
			remind: string(canonical.Sum("hook reminder", []byte(h.URL))),
		}
		if slices.ContainsFunc(out, func(o *receiver) bool { return o.id == r.id }) {
			return nil, fmt.Errorf("hook %d: its URL is that of another one", i)
		}
		out = append(out, r)
	}
	return out, nil
}

// sign returns the signature of a message for the webhook-signature header.
func (r *receiver) sign(id string, at int64, body []byte) string {
	mac := hmac.New(sha256.New, r.key)
	fmt.Fprintf(mac, "%s.%s.%s", id, strconv.FormatInt(at, 10), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
