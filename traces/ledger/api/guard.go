package api

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"pgfsm/internal/web"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// admit is the one guard of the API and of the console. It finds the route of a visit, and refuses
// the visit unless every check of the route holds.
func (h *Handler) admit(v *visit, p *resource) error {
	if err := h.checkOrigin(v); err != nil {
		return err
	}
	if err := v.findRoute(p); err != nil {
		return err
	}
	if err := h.identifyCaller(v); err != nil {
		return err
	}
	if err := v.readQuery(); err != nil {
		return err
	}
	if !v.route.body && (v.r.ContentLength != 0 || v.r.Body != http.NoBody) {
		return newProblem(BodyNotExpected, "")
	}
	return nil
}

// Content policies. The API's forbids browsers to render, execute or frame an answer. The console's
// allows only the console's own files. It requires Trusted Types and allows none to be made: the
// script cannot write markup.
const (
	apiPolicy     = "default-src 'none'; frame-ancestors 'none'"
	consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; " +
		"trusted-types 'none'"
)

// setSecurityHeaders sets headers that keep other pages and caches away. Without the origin in
// Referer, browsers would send forms with the Origin null.
func (v *visit) setSecurityHeaders() {
	if !v.console {
		web.SetSecurityHeaders(v.w.Header(), apiPolicy, "no-referrer")
		return
	}
	web.SetSecurityHeaders(v.w.Header(), consolePolicy, "same-origin")
	v.w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
}

// checkOrigin rejects repeated headers, and requests for another host or of another origin. Links
// from other pages to the console are allowed.
func (h *Handler) checkOrigin(v *visit) error {
	check := h.guard.Check
	if v.console {
		check = h.guard.CheckHost
	}

	err := check(v.r)
	switch {
	case errors.As(err, new(web.RepeatedHeader)):
		return newProblem(HeaderRepeated, err.Error())
	case errors.Is(err, web.ErrHost):
		return newProblem(HostRefused, "")
	case err != nil, v.console && h.origin.Check(v.r) != nil:
		return newProblem(OriginRefused, "")
	}
	return nil
}

// findRoute finds the route of a visit among the operations of its path.
func (v *visit) findRoute(p *resource) error {
	unknown := newProblem(PathUnknown, "")
	if v.console {
		unknown = newProblem(PathUnknown, "there is no such page")
	}
	if len(p.routes) == 0 {
		return unknown
	}

	v.base = ConsolePath
	for name, form := range variables { // in any order: each is checked on its own
		switch value := v.r.PathValue(name); {
		case value == "":
		case !form.MatchString(value):
			return unknown
		case name == "session":
			v.base = strings.Replace(sessionPath, "{session}", value, 1)
		default:
			v.id = value
		}
	}
	v.page = strings.TrimPrefix(v.r.URL.Path, v.base)

	if v.route = p.find(v.r.Method); v.route == nil {
		v.w.Header().Set("Allow", p.methods())
		return newProblem(MethodUnknown, "this path takes "+p.methods())
	}
	return nil
}

// identifyCaller verifies the credentials of a visit, and that the caller's role allows it.
func (h *Handler) identifyCaller(v *visit) (err error) {
	_, sent := v.r.Header["Authorization"]
	switch {
	case v.route.open, v.route.local && !sent && web.FromThisMachine(v.r):
		return nil
	case h.Ledger == nil:
		return newProblem(PathUnknown, "this service has no ledger, so there is nothing to decide")
	case v.console:
		err = h.findSession(v)
	default:
		v.caller, err = h.authenticate(v.r)
	}
	if err != nil {
		return err
	}

	web.Authenticated(v.r.Context(), v.caller.Name)
	if !slices.ContainsFunc(v.route.may, v.caller.May) {
		return v.caller.Allow(v.route.may[0])
	}
	return nil
}

// authenticate verifies the token of a request and returns the caller.
func (h *Handler) authenticate(r *http.Request) (ledger.Caller, error) {
	c, err := h.Callers.Authenticate(r)
	switch {
	case errors.Is(err, web.ErrNoCredentials):
		return ledger.Caller{}, newProblem(TokenMissing, "")
	case err == nil, errors.As(err, new(*ledger.Refusal)), errors.Is(err, web.ErrUnavailable):
		return CallerOf(c), err
	}
	return ledger.Caller{}, &ledger.Refusal{
		Code:    ledger.RefusedToken,
		Message: ledger.ErrToken.Message,
		Detail:  err.Error(),
	}
}

// CallerOf returns the ledger's caller for a caller that an authenticator has verified.
func CallerOf(c web.Caller) ledger.Caller {
	caller := ledger.Caller{TokenID: c.Token, Name: c.Name, Roles: c.Roles, Identity: c.Identity}
	if !c.Expires.IsZero() {
		caller.Expires = c.Expires.UTC().Format(policy.TimeForm)
	}
	return caller
}

// readQuery reads the query. In the API, it rejects unknown, repeated and empty parameters: a
// browser sends the empty fields of a form.
func (v *visit) readQuery() error {
	v.query = make(map[string]string)
	values, err := url.ParseQuery(v.r.URL.RawQuery)
	if err != nil && !v.console {
		return newProblem(QueryInvalid, "")
	}

	for name, sent := range values { // in any order: each is checked on its own, and any refusal will do
		switch {
		case v.console:
		case !slices.Contains(v.route.query, name):
			return newProblem(QueryInvalid, describeParameters(v.route.query))
		case len(sent) > 1:
			return newProblem(QueryInvalid, "a parameter of the query came more than once")
		case sent[0] == "":
			return newProblem(QueryInvalid, "a parameter of the query is empty")
		}
		v.query[name] = sent[0]
	}
	return nil
}

func describeParameters(known []string) string {
	if len(known) == 0 {
		return "this path takes no query"
	}
	return fmt.Sprintf("a parameter of the query is not known; known are %s", strings.Join(known, ", "))
}

// MaxBody bounds the body of a vote in bytes: a reason of [ledger.MaxReason] bytes, each of them
// escaped, and a digest.
const MaxBody = 8 << 10

// readBody reads a body of at most a number of bytes.
func (v *visit) readBody(most int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, most))
	var slow net.Error
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, newProblem(BodyTooLarge, fmt.Sprintf("the body has more than %d bytes", most))
	case errors.As(err, &slow) && slow.Timeout():
		return nil, newProblem(BodyTooSlow, "")
	case err != nil:
		return nil, newProblem(BodyInvalid, "")
	}
	return body, nil
}

// errForm refuses a form that no page of the console sends.
var errForm = newProblem(BodyInvalid, "the form cannot be read")

// readForm reads the fields of a form. It rejects repeated and unknown fields.
func (v *visit) readForm(most int64, known ...string) (map[string]string, error) {
	kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" || v.r.URL.RawQuery != "" {
		return nil, errForm
	}
	body, err := v.readBody(most)
	if err != nil {
		return nil, err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errForm
	}

	fields := make(map[string]string)
	for name, sent := range values { // in any order: any refusal will do
		if len(sent) != 1 || !slices.Contains(known, name) {
			return nil, errForm
		}
		fields[name] = sent[0]
	}
	return fields, nil
}
