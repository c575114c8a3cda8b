package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgfsm/internal/web"
)

func TestBearerToken(t *testing.T) {
	for _, tt := range []struct {
		name, value, token string
		ok                 bool
	}{
		{"a-token", "Bearer abc", "abc", true},
		{"another-case", "bEARER abc", "abc", true},
		{"more-spaces", "Bearer   abc", "abc", true},
		{"two-words", "Bearer abc def", "abc def", true},
		{"empty", "Bearer", "", true},
		{"another-scheme", "Basic abc", "abc", false},
		{"none", "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			if tt.value != "" {
				r.Header.Set("Authorization", tt.value)
			}
			if token, ok := web.BearerToken(r); ok != tt.ok || ok && token != tt.token {
				t.Errorf("%q, %v, want %q, %v", token, ok, tt.token, tt.ok)
			}
		})
	}
}

// TestMiddleware: the first one sees a request first, and each sees every response.
func TestMiddleware(t *testing.T) {
	adds := func(name string) web.Middleware {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Add("X-Passed", name)
				next.ServeHTTP(w, r)
			})
		}
	}
	h := web.Handler(http.NotFoundHandler(), adds("first"), adds("second"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if got := strings.Join(w.Header()["X-Passed"], " "); got != "first second" || w.Code != http.StatusNotFound {
		t.Errorf("%d, %q", w.Code, got)
	}
}
