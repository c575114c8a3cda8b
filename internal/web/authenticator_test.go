package web_test

import (
	"net/http"
	"net/http/httptest"
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
