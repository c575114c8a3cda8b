package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/traces/ledger"
)

// MaxBody bounds the body of a ballot in bytes: a reason of [ledger.MaxReason] bytes, each of them
// escaped, and a digest.
const MaxBody = 8 << 10

// maxBodyDepth bounds the nesting of a ballot: it is one flat object.
const maxBodyDepth = 1

// A ballot is the body of an approval or a denial.
type ballot struct {
	ExpectedDigest *string `json:"expected_digest"`
	Reason         string  `json:"reason"`
}

func (h *Handler) castApproval(v *visit) (answer, error) { return h.castVote(v, true) }
func (h *Handler) castDenial(v *visit) (answer, error)   { return h.castVote(v, false) }

// castVote casts a ballot.
func (h *Handler) castVote(v *visit, approve bool) (answer, error) {
	b, err := readBallot(v)
	if err != nil {
		return answer{}, err
	}
	key, err := idempotencyKey(v.r.Header)
	if err != nil {
		return answer{}, err
	}
	if b.ExpectedDigest == nil || *b.ExpectedDigest == "" {
		return answer{}, newProblem(DigestRequired,
			"expected_digest is missing: send the binding of the request as you saw it, so that you decide about nothing else")
	}

	cast := ledger.Ballot{
		Run:     v.run,
		Binding: canonical.Digest(*b.ExpectedDigest),
		By:      v.caller,
		Approve: approve,
		Reason:  b.Reason,
		Key:     key,
	}

	q, err := h.Ledger.Vote(v.r.Context(), cast)
	if err != nil {
		return answer{}, err
	}

	// The vote counts from here on. The rest tells the approver whether the call can still be made.
	h.Voted(cast)
	out := voted{SchemaVersion: present.SchemaVersion, Request: present.NewRun(&q)}
	err = h.Ledger.View(v.r.Context(), func(r ledger.Reader) (err error) {
		out.NotCalled, err = ledger.WhyNotCalled(r, &q)
		return err
	})
	if err != nil { // the vote counts nevertheless
		h.Log("whether the call of run " + q.RunID + " can still be made is not known: " + err.Error())
	}

	return jsonAnswer(out), nil
}

// readBallot reads the body strictly.
func readBallot(v *visit) (b ballot, err error) {
	kind, params, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	charset, given := params["charset"]
	if err != nil || kind != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
		return b, newProblem(ContentType, "the body must be application/json, in UTF-8")
	}
	if e := v.r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return b, newProblem(ContentType, "the body must not be compressed")
	}

	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, MaxBody))
	var large *http.MaxBytesError
	var slow net.Error

	switch {
	case errors.As(err, &large):
		return b, newProblem(BodyTooLarge, fmt.Sprintf("the body has more than %d bytes", MaxBody))
	case errors.As(err, &slow) && slow.Timeout():
		return b, newProblem(BodyTooSlow, "the body did not come in time")
	case err != nil:
		return b, newProblem(BodyInvalid, "the body broke off")
	}

	// Json would decode null as an empty object.
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return b, newProblem(BodyInvalid, "the body is not a JSON object")
	}

	if err := canonical.CheckDepth(body, maxBodyDepth); err != nil {
		return b, newInvalidBody(err)
	}
	if err := canonical.Unmarshal(body, &b); err != nil {
		return b, newInvalidBody(err)
	}

	return b, nil
}

func newInvalidBody(err error) *problem {
	return newProblem(BodyInvalid,
		"the body is not the JSON object that is expected: "+canonical.Explain(err).Error())
}

// idempotencyKey reads the Idempotency-Key header: a string of RFC 8941, as the draft requires, or
// without quotes, as many clients send it.
func idempotencyKey(h http.Header) (string, error) {
	values, sent := h["Idempotency-Key"]
	if !sent {
		return "", nil
	}

	refuse := func() (string, error) {
		return "", newProblem(KeyInvalid, fmt.Sprintf(
			`the Idempotency-Key must be 1 to %d printable ASCII characters: "in quotes", or bare without spaces and ,;"\`, ledger.MaxKey))
	}
	text := values[0]
	quoted := strings.HasPrefix(text, `"`)
	if quoted {
		if len(text) < 2 || !strings.HasSuffix(text, `"`) {
			return refuse()
		}
		text = text[1 : len(text)-1]
	}

	var key strings.Builder
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case b < ' ' || b > '~', !quoted && strings.IndexByte(` ,;"\`, b) >= 0, b == '"':
			return refuse()
		// A backslash stands before a quote or a backslash.
		case b == '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return refuse()
			}
			b = text[i]
		}
		key.WriteByte(b)
	}

	if key.Len() == 0 || key.Len() > ledger.MaxKey {
		return refuse()
	}

	return key.String(), nil
}
