package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"pgfsm/internal/visible"
	"pgfsm/internal/web"
	"pgfsm/traces/ledger"
)

// A Code is a stable name of one reason why a request is refused. Refusals of the ledger have the
// ledger's codes.
type Code string

// The codes that are not the ledger's.
const (
	HostRefused     Code = "host_refused"
	OriginRefused   Code = "origin_refused"
	HeaderRepeated  Code = "header_repeated"
	PathUnknown     Code = "path_unknown"
	MethodUnknown   Code = "method_not_allowed"
	QueryInvalid    Code = "query_invalid"
	ContentType     Code = "content_type_invalid"
	BodyTooLarge    Code = "body_too_large"
	BodyTooSlow     Code = "body_too_slow"
	BodyInvalid     Code = "body_invalid"
	BodyNotExpected Code = "body_not_expected"
	KeyInvalid      Code = "idempotency_key_invalid"
	DigestRequired  Code = "digest_required"
	TokenMissing    Code = "token_missing"
	ReloadRefused   Code = "reload_refused"
	Unavailable     Code = "unavailable"
	Internal        Code = "internal"
)

// refusals is the table of errors: the HTTP status of each code, and what it means and what to do.
// Most refusals have a more precise text than the table.
var refusals = map[Code]struct {
	status int
	detail string
}{
	HostRefused: {http.StatusMisdirectedRequest, "the Host header names another service; serve.hosts of the " +
		"configuration, or pgfsm approvals serve --host, adds a name"},
	OriginRefused:  {http.StatusForbidden, "a web page of another origin sent the request"},
	HeaderRepeated: {http.StatusBadRequest, "a header that decides something came more than once"},
	PathUnknown: {http.StatusNotFound,
		"there is nothing at this path; /openapi.yaml says what there is"},
	MethodUnknown:   {http.StatusMethodNotAllowed, "this path does not take this method"},
	QueryInvalid:    {http.StatusBadRequest, "the query cannot be read"},
	ContentType:     {http.StatusUnsupportedMediaType, "the body must be application/json, in UTF-8"},
	BodyTooLarge:    {http.StatusRequestEntityTooLarge, "the body is too large"},
	BodyTooSlow:     {http.StatusRequestTimeout, "the body did not come in time"},
	BodyInvalid:     {http.StatusBadRequest, "the body broke off"},
	BodyNotExpected: {http.StatusBadRequest, "a body came where none belongs"},
	KeyInvalid: {http.StatusBadRequest, fmt.Sprintf("the Idempotency-Key must be 1 to %d printable ASCII characters: "+
		`"in quotes", or bare without spaces and ,;"\`, ledger.MaxKey)},
	DigestRequired: {http.StatusPreconditionRequired, "expected_digest is missing: send the binding of the request " +
		"as you saw it, so that you decide about nothing else"},
	TokenMissing: {http.StatusUnauthorized,
		"no token came: send Authorization: Bearer and a token of pgfsm token create"},
	ReloadRefused: {http.StatusUnprocessableEntity, "the configuration cannot be used; the former one stays active"},
	Unavailable:   {http.StatusServiceUnavailable, "the service cannot do this now; ask again later"},
	Internal: {http.StatusInternalServerError,
		"the request could not be answered; the service's log says why"},

	Code(ledger.RefusedToken):   {http.StatusUnauthorized, ledger.ErrToken.Message},
	Code(ledger.RefusedRole):    {http.StatusForbidden, ""},
	Code(ledger.RefusedBlocked): {http.StatusForbidden, ""},
	Code(ledger.RefusedBallot):  {http.StatusUnprocessableEntity, ""},
	Code(ledger.RefusedUnknown): {http.StatusNotFound, "the ledger has no such run"},
	Code(ledger.RefusedNotHeld): {http.StatusConflict, ""},
	Code(ledger.RefusedDecided): {http.StatusConflict, ""},
	Code(ledger.RefusedExpired): {http.StatusGone, ""},
	// The caller sent the digest as a condition, which does not hold.
	Code(ledger.RefusedBinding):  {http.StatusPreconditionFailed, ""},
	Code(ledger.RefusedEligible): {http.StatusForbidden, ""},
	Code(ledger.RefusedFresh):    {http.StatusForbidden, ""},
	Code(ledger.RefusedVoted):    {http.StatusConflict, ""},
	// Status of draft-ietf-httpapi-idempotency-key-header.
	Code(ledger.RefusedKey): {http.StatusUnprocessableEntity, ""},
}

// causes are errors for which the service is unavailable. The first that matches an error counts.
var causes = []struct {
	is     error
	detail string
	posted string // detail for a POST; empty: the same
	logged bool
}{
	{is: ledger.ErrClockBack, detail: ledger.ErrClockBack.Error(), logged: true},
	{is: ledger.ErrUnsettled, logged: true, detail: "whether the ledger has recorded this is not known; read the " +
		"request's status, or send the same again (in the API with the same Idempotency-Key)"},
	{is: ledger.ErrUnavailable, logged: true, detail: "the ledger cannot be read now; the service's log says why",
		posted: "the ledger cannot record now, and nothing was decided; the service's log says why"},
	{is: ledger.ErrClosed, detail: ending}, {is: ledger.ErrFenced, detail: ending},
	{is: ledger.ErrLost, detail: ending}, {is: ledger.ErrLedgerClosed, detail: ending},
	{is: web.ErrUnavailable, logged: true, detail: "the token cannot be verified now; the service's log says why"},
}

const ending = "the service is ending; ask again later"

// statusOf returns the HTTP status of a refusal of the ledger; 0 if it does not concern callers.
func statusOf(refusal *ledger.Refusal) int { return refusals[Code(refusal.Code)].status }

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

// newProblem returns the problem of a code. An empty detail is the table's.
func newProblem(c Code, detail string) *problem {
	status := refusals[c].status
	return &problem{
		Code:   c,
		Detail: visible.Clip(cmp.Or(detail, refusals[c].detail), maxDetail),
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
	}

	log := h.Log
	if errors.Is(err, web.ErrUnavailable) {
		log = h.logFailed
	}
	for _, cause := range causes {
		if !errors.Is(err, cause.is) {
			continue
		}
		if cause.logged {
			log(err.Error())
		}
		p = newProblem(Unavailable, cause.detail)
		if v.r.Method == http.MethodPost && cause.posted != "" {
			p = newProblem(Unavailable, cause.posted)
		}
		if later := (*web.RetryError)(nil); errors.As(err, &later) {
			p.retryAfter = later.Seconds()
		}
		return p
	}

	if v.r.Context().Err() != nil { // the client has disconnected
		return newProblem(Unavailable, "the request was cancelled")
	}
	h.Log("a request could not be answered: " + err.Error())
	return newProblem(Internal, "")
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
	return answer{status: p.Status, mime: "application/problem+json", body: encodeDocument(p)}
}

// sentence returns the detail of a problem as a sentence for a page.
func (p *problem) sentence() string {
	first, size := utf8.DecodeRuneInString(p.Detail)
	return string(unicode.ToUpper(first)) + strings.TrimSuffix(p.Detail[size:], ".") + "."
}
