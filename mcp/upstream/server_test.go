package upstream

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/secret"
)

func TestNewChecks(t *testing.T) {
	web := func(change func(s *Server)) Server {
		s := Server{Name: "w", Type: TypeHTTP, URL: "https://example.com/mcp"}
		change(&s)
		return s
	}
	header := func(name, value string) Server {
		return web(func(s *Server) { s.Headers = []Header{{name, value}} })
	}
	plain := func(url string) Server {
		return web(func(s *Server) { s.URL = url; s.Headers = []Header{{"Authorization", "Bearer hush"}} })
	}
	child := func(change func(s *Server)) Server {
		s := Server{Name: "c", Type: TypeStdio, Command: "x"}
		change(&s)
		return s
	}
	tests := []struct {
		name   string
		server Server
		want   string // part of the error; empty: none
	}{
		{"https", web(func(*Server) {}), ""},
		{"https-with-header", header("Authorization", "Bearer hush"), ""},
		{"http-without-header", web(func(s *Server) { s.URL = "http://example.com" }), ""},
		{"http-header-to-ipv4-loopback", plain("http://127.0.0.1:1/"), ""},
		{"http-header-to-ipv6-loopback", plain("http://[::1]:1/"), ""},
		{"http-header-to-localhost", plain("http://LocalHost/"), ""},
		{"http-header-elsewhere", plain("http://example.com/"), "clear text"},
		{"http-header-to-almost-localhost", plain("http://localhost.example.com/"), "clear text"},
		{"http-header-to-any-address", plain("http://0.0.0.0/"), "clear text"},
		{"zero", Server{}, "no name"},
		{"name-with-joint", web(func(s *Server) { s.Name = "a__b" }), "__"},
		{"unknown-type", web(func(s *Server) { s.Type = "websocket" }), "stdio, sse or http"},
		{"negative-timeout", web(func(s *Server) { s.Timeout = -time.Second }), "negative"},
		{"negative-timeout-total", web(func(s *Server) { s.TimeoutTotal = -time.Second }), "negative"},
		{"negative-connect-timeout", web(func(s *Server) { s.ConnectTimeout = -time.Second }), "negative"},
		{"no-url", web(func(s *Server) { s.URL = "" }), "http://"},
		{"url-unparsable", web(func(s *Server) { s.URL = "https://h:port/?k=hush" }), "cannot be parsed"},
		{"file-url", web(func(s *Server) { s.URL = "file:///etc/passwd" }), "http://"},
		{"url-without-host", web(func(s *Server) { s.URL = "https:///x" }), "no host"},
		{"url-with-password", web(func(s *Server) { s.URL = "https://u:hush@h/" }), "user or password"},
		{"url-with-fragment", web(func(s *Server) { s.URL = "https://h/#x" }), "fragment"},
		{"http-with-command", web(func(s *Server) { s.Command = "x" }), "no command"},
		{"stdio", child(func(*Server) {}), ""},
		{"stdio-without-command", child(func(s *Server) { s.Command = "" }), "needs a command"},
		{"stdio-with-url", child(func(s *Server) { s.URL = "http://h" }), "no url"},
		{"env-with-equals", child(func(s *Server) { s.Env = []Header{{"A=B", "hush"}} }), "environment"},
		{"env-with-nul", child(func(s *Server) { s.Env = []Header{{"A", "hush\x00"}} }), "environment"},
		{"header-name-empty", header("", "hush"), "not a header name"},
		{"header-name-with-space", header("a b", "hush"), "not a header name"},
		{"header-value-with-newline", header("a", "hush\r\nb: c"), "control character"},
		{"header-idempotency-key", header("idempotency-key", "hush"), "transport"},
		{"header-host", header("host", "hush"), "transport"},
		{"header-session", header("mcp-session-id", "hush"), "protocol"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u, err := New([]Server{tt.server}, Limits{}, Info{}, nil)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("New() = %v, want no error", err)
			case tt.want == "":
			case err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush"):
				t.Errorf("New() = %v, want an error with %q and no secret", err, tt.want)
			}
			if u != nil {
				u.Close()
			}
		})
	}
	_, err := New([]Server{web(func(*Server) {}), web(func(*Server) {}), {}}, Limits{Pages: -1}, Info{}, nil)
	for _, want := range []string{"twice", "no name", "Pages"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New() = %v, want it to name %q among all mistakes", err, want)
		}
	}
}

func TestReservedHeadersAreCanonical(t *testing.T) {
	for _, name := range reserved {
		if got := http.CanonicalHeaderKey(name); got != name {
			t.Errorf("reserved holds %q, want %q: it would never match", name, got)
		}
	}
}

func TestLimitsNeverMeanUnlimited(t *testing.T) {
	l, err := Limits{}.withDefaults()
	want := Limits{DefaultResultBytes, DefaultCatalogBytes, DefaultPages, DefaultTools, DefaultUnasked, DefaultLinks, DefaultServerSessions}
	if err != nil || l != want {
		t.Errorf("withDefaults() = %+v, %v, want %+v", l, err, want)
	}
	for _, bad := range []Limits{
		{ResultBytes: -1}, {CatalogBytes: -1}, {Pages: -1}, {Tools: -1}, {Unasked: -1}, {Links: -1}, {ServerSessions: -1},
	} {
		if _, err := bad.withDefaults(); err == nil {
			t.Errorf("withDefaults(%+v) = nil error, want one", bad)
		}
	}
}

func TestPresentable(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "connection refused", "connection refused"},
		{"ansi", "\x1b[2Jx", `\u001b[2Jx`},
		{"bidi", "a\u202eb", `a\u202eb`},
		{"line-break", "a\nb", `a\u000ab`},
		{"broken-utf8", "a\xffb", `a\xffb`},
		{"secret", "key secret-1 and Bearer secret-1", "key " + secret.Mask + " and " + secret.Mask},
		{"secret-in-quotes", `it said "secret\"2"`, `it said "` + secret.Mask + `"`},
		{"long", strings.Repeat("x", maxReason+10), strings.Repeat("x", maxReason) + "…"},
	}
	secrets := secret.New([]string{"Bearer secret-1", `secret"2`})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := presentable(tt.in, secrets); got != tt.want {
				t.Errorf("presentable(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestLabelKeepsCharactersWhole(t *testing.T) {
	if got := label(strings.Repeat("x", maxLabel-1)+"é", nil); got != strings.Repeat("x", maxLabel-1) {
		t.Errorf("label() = %q, want it cut before the character that does not fit", got)
	}
	if got := label(strings.Repeat("x", maxLabel), nil); len(got) != maxLabel {
		t.Errorf("label() of %d bytes has %d, want all", maxLabel, len(got))
	}
}
