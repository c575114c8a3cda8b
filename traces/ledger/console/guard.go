package console

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"pgfsm/internal/web"
)

// contentPolicy allows only the console's own files. It requires Trusted Types and allows none to
// be made: the script cannot write markup.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// setSecurityHeaders sets headers that keep other pages and caches away. Without the origin in
// Referer, browsers would send forms with the Origin null.
func setSecurityHeaders(h http.Header) {
	web.SetSecurityHeaders(h, contentPolicy, "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// checkOrigin rejects repeated headers, requests for another host, and forms of another origin.
// Links from other pages are allowed.
func (h *Handler) checkOrigin(r *http.Request) error {
	err := h.guard.CheckHost(r)
	switch {
	case errors.As(err, new(web.RepeatedHeader)):
		return errHeaders
	case err != nil:
		return errHost
	case h.origin.Check(r) != nil:
		return errOrigin
	}
	return nil
}

// maxForm bounds a form in bytes: a reason of [ledger.MaxReason] bytes, each of them escaped, and a
// digest.
const maxForm = 8 << 10

// readForm reads the fields of a form. It rejects repeated and unknown fields.
func readForm(v *visit, known ...string) (map[string]string, error) {
	return readSizedForm(v, maxForm, known...)
}

// readSizedForm reads a form like readForm, with another bound.
func readSizedForm(v *visit, size int64, known ...string) (map[string]string, error) {
	kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" || v.r.URL.RawQuery != "" {
		return nil, errForm
	}
	body, err := io.ReadAll(http.MaxBytesReader(v.w, v.r.Body, size))
	if err != nil {
		return nil, &refusal{http.StatusRequestEntityTooLarge, "The form is too large, or broke off."}
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
