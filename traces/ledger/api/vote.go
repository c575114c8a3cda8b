package api

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/internal/present"
	"pgfsm/internal/visible"
	"pgfsm/internal/web"
	"pgfsm/traces/ledger"
)

// maxBodyDepth bounds the nesting of a ballot: it is one flat object.
const maxBodyDepth = 1

// A ballot is the body of an approval or a denial.
type ballot struct {
	ExpectedDigest *string `json:"expected_digest"`
	Reason         string  `json:"reason"`
}

// A voted document answers a vote that counted. Its request is in the state after the vote.
type voted struct {
	SchemaVersion int         `json:"schema_version"`
	Request       present.Run `json:"request"`
	// Reason why the call will not be made although the vote counts.
	NotCalled string `json:"not_called,omitzero"`
}

func (h *Handler) approve(v *visit) (voted, error) { return h.castBallot(v, true) }
func (h *Handler) deny(v *visit) (voted, error)    { return h.castBallot(v, false) }

// castBallot casts the ballot of a body.
func (h *Handler) castBallot(v *visit, approve bool) (out voted, err error) {
	b, err := readBallot(v)
	if err != nil {
		return out, err
	}
	key, err := idempotencyKey(v.r.Header)
	if err != nil {
		return out, err
	}
	if b.ExpectedDigest == nil || *b.ExpectedDigest == "" {
		return out, newProblem(DigestRequired, "")
	}
	q, err := h.castVote(v, ledger.Ballot{
		Binding: canonical.Digest(*b.ExpectedDigest),
		Approve: approve,
		Reason:  b.Reason,
		Key:     key,
	})
	if err != nil {
		return out, err
	}

	// The vote counts. The rest tells the approver whether the call can still be made.
	out = voted{SchemaVersion: present.SchemaVersion, Request: present.NewRun(&q)}
	out.NotCalled, err = readValue(h, v, func(r ledger.Reader) (string, error) { return ledger.WhyNotCalled(r, &q) })
	if err != nil {
		h.Log("whether the call of run " + q.RunID + " can still be made is not known: " + err.Error())
	}
	return out, nil
}

// castVote casts the vote of a visit's caller about its run.
func (h *Handler) castVote(v *visit, b ledger.Ballot) (ledger.RunRow, error) {
	b.Run, b.By = v.id, v.caller
	q, err := h.Ledger.Vote(v.r.Context(), b)
	if err == nil && h.Voted != nil {
		h.Voted(b)
	}
	return q, err
}

// sendVote casts the vote of a form in the console.
func (h *Handler) sendVote(v *visit) (answer, error) {
	fields, err := v.readForm(MaxBody, "vote", "digest", "reason")
	if err != nil {
		return answer{}, err
	}
	approve := fields["vote"] == "approve"
	if !approve && fields["vote"] != "deny" {
		return answer{}, errForm
	}

	// The same vote again, after a double click or a lost connection, counts as one vote.
	key := canonical.Sum("console vote", []byte(v.secret), []byte(v.id), []byte(fields["digest"]),
		[]byte(fields["vote"]), []byte(fields["reason"]))
	_, err = h.castVote(v, ledger.Ballot{
		Binding: canonical.Digest(fields["digest"]),
		Approve: approve,
		Reason:  fields["reason"],
		Key:     string(key),
	})

	var refused *ledger.Refusal
	switch {
	case errors.Is(err, ledger.ErrToken):
		return answer{}, ledger.ErrSession
	case errors.As(err, &refused) && refused.Code != ledger.RefusedUnknown:
		body := callView{GivenReason: fields["reason"]}
		if body.NeedsWhy = !approve && refused.Code == ledger.RefusedBallot && visible.Blank(body.GivenReason); !body.NeedsWhy {
			body.Refused = "Your vote does not count: " + refused.Error() + "."
		}
		return h.showCallWith(v, body, statusOf(refused))
	}
	return redirectTo(v.base + "calls/" + v.id), err
}

// readBallot reads the body strictly.
func readBallot(v *visit) (b ballot, err error) {
	if !web.HasJSON(v.r) {
		return b, newProblem(ContentType, "")
	}
	if e := v.r.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return b, newProblem(ContentType, "the body must not be compressed")
	}

	body, err := v.readBody(MaxBody)
	if err != nil {
		return b, err
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

	invalid := newProblem(KeyInvalid, "")
	text := values[0]
	quoted := strings.HasPrefix(text, `"`)
	if quoted {
		if len(text) < 2 || !strings.HasSuffix(text, `"`) {
			return "", invalid
		}
		text = text[1 : len(text)-1]
	}

	var key strings.Builder
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch {
		case b < ' ' || b > '~', !quoted && strings.IndexByte(` ,;"\`, b) >= 0, b == '"':
			return "", invalid
		// A backslash stands before a quote or a backslash.
		case b == '\\':
			if i++; i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", invalid
			}
			b = text[i]
		}
		key.WriteByte(b)
	}

	if key.Len() == 0 || key.Len() > ledger.MaxKey {
		return "", invalid
	}

	return key.String(), nil
}
