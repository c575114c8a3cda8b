package web

import "net/http"

// SetSecurityHeaders forbids caches to keep an answer, other sites to embed it, and browsers to
// guess its type.
func SetSecurityHeaders(h http.Header, contentPolicy, referrerPolicy string) {
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", referrerPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
}
