package api

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"pgfsm/internal/visible"
	"pgfsm/internal/web"
	"pgfsm/traces/ledger"
)

// A Code is a stable name of one reason why a call is rejected. Refusals of the ledger have the
// ledger's codes.
type Code string

// The codes that are not the ledger's.
const (
	HostRefused    Code = "host_refused"       // the service does not serve this Host header
	OriginRefused  Code = "origin_refused"     // the call comes from another page
	HeaderRepeated Code = "header_repeated"    // a header that affects the decision was sent twice
	PathUnknown    Code = "path_unknown"       //
	MethodUnknown  Code = "method_not_allowed" //
	// A parameter is unknown, repeated, or has an invalid value.
	QueryInvalid Code = "query_invalid"
	ContentType  Code = "content_type_invalid" // the Content-Type is not JSON
	BodyTooLarge Code = "body_too_large"       //
	BodyTooSlow  Code = "body_too_slow"        //
	// The body is not one strict JSON object with the known members.
	BodyInvalid     Code = "body_invalid"
	BodyNotExpected Code = "body_not_expected"       //
	KeyInvalid      Code = "idempotency_key_invalid" //
	DigestRequired  Code = "digest_required"         // the vote does not name a digest
	TokenMissing    Code = "token_missing"           //
	// The configuration cannot be used; the former one stays active.
	ReloadRefused Code = "reload_refused"
	Unavailable   Code = "unavailable" // the ledger cannot record now
	Internal      Code = "internal"    //
)

// statuses maps each code to its HTTP status.
var statuses = map[Code]int{
	HostRefused: http.StatusMisdirectedRequest, OriginRefused: http.StatusForbidden,
	HeaderRepeated: http.StatusBadRequest,
	PathUnknown:    http.StatusNotFound, MethodUnknown: http.StatusMethodNotAllowed,
	QueryInvalid: http.StatusBadRequest,
	ContentType:  http.StatusUnsupportedMediaType, BodyTooLarge: http.StatusRequestEntityTooLarge,
	BodyTooSlow: http.StatusRequestTimeout, BodyInvalid: http.StatusBadRequest, BodyNotExpected: http.StatusBadRequest,
	KeyInvalid: http.StatusBadRequest, DigestRequired: http.StatusPreconditionRequired,
	TokenMissing:  http.StatusUnauthorized,
	ReloadRefused: http.StatusUnprocessableEntity, Unavailable: http.StatusServiceUnavailable,
	Internal: http.StatusInternalServerError,

	Code(ledger.RefusedToken):   http.StatusUnauthorized,
	Code(ledger.RefusedRole):    http.StatusForbidden,
	Code(ledger.RefusedBlocked): http.StatusForbidden,
	Code(ledger.RefusedBallot):  http.StatusUnprocessableEntity,
	Code(ledger.RefusedUnknown): http.StatusNotFound,
	Code(ledger.RefusedNotHeld): http.StatusConflict,
	Code(ledger.RefusedDecided): http.StatusConflict,
	Code(ledger.RefusedExpired): http.StatusGone,
	// The caller sent the digest as a condition, which does not hold.
	Code(ledger.RefusedBinding):  http.StatusPreconditionFailed,
	Code(ledger.RefusedEligible): http.StatusForbidden,
	Code(ledger.RefusedFresh):    http.StatusForbidden,
	Code(ledger.RefusedVoted):    http.StatusConflict,
	// Status of draft-ietf-httpapi-idempotency-key-header.
	Code(ledger.RefusedKey): http.StatusUnprocessableEntity,
}

// statusOf returns the HTTP status of a refusal of the ledger.
func statusOf(refusal *ledger.Refusal) int { return statuses[Code(refusal.Code)] }

// problemPrefix is the prefix of a problem type's URI; the code follows.
const problemPrefix = "urn:pgfsm:problem:"

// maxDetail bounds a problem's detail: it may quote the request, or a reason of a thousand bytes.
const maxDetail = 4 << 10

// A problem is the body of an error (RFC 9457).
type problem struct {
	Code    Code     `json:"code"`
	Detail  string   `json:"detail"`
	Reasons []Reason `json:"reasons,omitempty"` // reasons why the service is not ready
	Status  int      `json:"status"`
	Title   string   `json:"title"`
	Type    string   `json:"type"`

	retryAfter int // in seconds; 0: unknown
}

func (p *problem) Error() string { return p.Detail }

func newProblem(c Code, detail string) *problem {
	status := statuses[c]
	return &problem{
		Code:   c,
		Detail: visible.Clip(detail, maxDetail),
		Status: status,
		Title:  http.StatusText(status),
		Type:   problemPrefix + string(c),
	}
}

// problemOf returns the problem for an error. It logs the details that the caller must not learn.
func (h *Handler) problemOf(v *visit, err error) *problem {
	var p *problem
	var refusal *ledger.Refusal

	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &refusal) && statusOf(refusal) != 0:
		h.logRefusal(refusal)
		return newProblem(Code(refusal.Code), refusal.Error())
	case errors.Is(err, web.ErrUnavailable) && !errors.Is(err, ledger.ErrUnavailable):
		h.logFailed(err.Error())
		p := newProblem(Unavailable, "the token cannot be verified now; the service's log says why")
		if later := (*web.RetryError)(nil); errors.As(err, &later) {
			p.retryAfter = later.Seconds()
		}
		return p
	case errors.Is(err, ledger.ErrClockBack):
		h.Log(err.Error())
		return newProblem(Unavailable, ledger.ErrClockBack.Error())
	case errors.Is(err, ledger.ErrUnsettled):
		h.Log(err.Error())
		return newProblem(Unavailable,
			"whether the ledger has recorded this is not known; read the request's status, or send the same again "+
				"(in the API with the same Idempotency-Key)")
	case errors.Is(err, ledger.ErrUnavailable):
		if errors.Is(err, web.ErrUnavailable) {
			h.logFailed(err.Error())
		} else {
			h.Log(err.Error())
		}
		if v.r.Method != http.MethodPost {
			return newProblem(Unavailable, "the ledger cannot be read now; the service's log says why")
		}
		return newProblem(Unavailable,
			"the ledger cannot record now, and nothing was decided; the service's log says why")
	case errors.Is(err, ledger.ErrClosed), errors.Is(err, ledger.ErrFenced), errors.Is(err, ledger.ErrLost),
		errors.Is(err, ledger.ErrLedgerClosed):
		return newProblem(Unavailable, "the service is ending; ask again later")
	case v.r.Context().Err() != nil: // the client has disconnected
		return newProblem(Unavailable, "the request was cancelled")
	}

	h.Log("a request could not be answered: " + err.Error())
	return newProblem(Internal, "the request could not be answered; the service's log says why")
}

// logFailed logs why credentials were rejected.
func (h *Handler) logFailed(line string) { h.failed.Do(func() { h.Log(visible.Line(line)) }) }

// logRefusal logs what only the operator may learn about a refusal.
func (h *Handler) logRefusal(refusal *ledger.Refusal) {
	if refusal.Detail != "" {
		h.logFailed("a caller was refused: " + refusal.Detail)
	}
}

// answerError answers with an error: a problem, a page, or the page to sign in.
func (h *Handler) answerError(v *visit, err error) answer {
	if v.console && errors.Is(err, ledger.ErrSession) {
		return h.askToSignIn(v)
	}
	p, header := h.problemOf(v, err), v.w.Header()
	if v.r.Body != http.NoBody && p.Code != Internal {
		header.Set("Connection", "close") // the rest of the body is not read
	}
	if v.console {
		return h.page(v, "error", view{Status: p.Status, Title: p.Title, Body: p.sentence()})
	}

	if p.Status == http.StatusUnauthorized {
		challenge := `Bearer realm="pgfsm"`
		if p.Code != TokenMissing {
			challenge += `, error="invalid_token"`
		}
		header.Set("WWW-Authenticate", challenge)
	}
	if p.retryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	return answer{status: p.Status, mime: "application/problem+json", body: asDocument(p)}
}

// sentence returns the detail of a problem as a sentence for a page.
func (p *problem) sentence() string {
	first, size := utf8.DecodeRuneInString(p.Detail)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(p.Detail[size:], ".") + "."
}
