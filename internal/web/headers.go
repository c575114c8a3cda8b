package web

import (
	"mime"
	"net/http"
	"strings"
)

// SetSecurityHeaders forbids caches to keep an answer, other sites to embed it, and browsers to
// guess its type.
func SetSecurityHeaders(h http.Header, contentPolicy, referrerPolicy string) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", referrerPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
}

// HasJSON reports whether the headers of a request say that its body is JSON in UTF-8.
func HasJSON(r *http.Request) bool {
	value := r.Header.Get("Content-Type")
	if value == "application/json" { // nearly all
		return true
	}
	kind, params, err := mime.ParseMediaType(value)
	charset, given := params["charset"]
	return err == nil && kind == "application/json" && (!given || strings.EqualFold(charset, "utf-8"))
}
