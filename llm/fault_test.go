package llm

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgfsm/internal/secret"
	"pgfsm/internal/test/check"
)

// raw answers with bytes of HTTP and closes the connection.
func raw(answer string) func(http.ResponseWriter, *http.Request, int) {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		io.WriteString(conn, answer)
		conn.Close()
	}
}

// padded is a response of exactly size bytes.
func padded(size int) string {
	const head, tail = `{"choices":[{"message":{"content":"x"}}],"pad":"`, `"}`
	return head + strings.Repeat("a", size-len(head)-len(tail)) + tail
}

func zipped(doc string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, doc)
	z.Close()
	return b.String()
}

func TestModel_Faults(t *testing.T) {
	elsewhere := serve(t, always(http.StatusOK, content("from elsewhere")))
	bomb := zipped(padded(64 << 20))
	header := func(name, value string, then func(http.ResponseWriter, *http.Request, int)) func(
		http.ResponseWriter, *http.Request, int) {
		return func(w http.ResponseWriter, r *http.Request, n int) {
			w.Header().Set(name, value)
			then(w, r, n)
		}
	}
	for _, tt := range []struct {
		name   string
		handle func(http.ResponseWriter, *http.Request, int)
		status int
		want   string // in the error; "" means that there is none, and the content is x
	}{
		{"body-at-the-limit", always(200, padded(MaxCompletionBytes)), 200, ""},
		{"body-one-past-the-limit", always(200, padded(MaxCompletionBytes+1)), 200, "more than 4194304 bytes"},
		{"error-body-past-the-limit", always(500, padded(MaxCompletionBytes+1)), 500, "more than 4194304 bytes"},
		{"gzip-bomb", header("Content-Encoding", "gzip", always(200, bomb)), 200, `encoded as "gzip"`},
		{"gzip-bomb-unsaid", always(200, bomb), 200, "not strict JSON"},
		{"identity-encoding", header("Content-Encoding", "identity", always(200, content("x"))), 200, ""},
		{"server-error", always(500, `{"error":{"message":"it is \u001b[31mred"}}`), 500,
			`500 Internal Server Error: it is \u001b[31mred`},
		{"too-many-requests", header("Retry-After", "1", always(429, `{"error":"slow down"}`)), 429, `Requests: {"error":"slow down"}`},
		{"unknown-status", always(599, ""), 599, "HTTP status 599: no reason given"},
		{"created-is-not-ok", always(201, content("x")), 201, "HTTP status 201"},
		{"no-content", always(204, ""), 204, "HTTP status 204"},
		{"html", header("Content-Type", "text/html", always(200, "<html>hello")), 200, "not strict JSON"},
		{"html-error", always(502, "<html>bad gateway"), 502, "502 Bad Gateway: <html>bad gateway"},
		{"event-stream", always(200, "data: {}\n\n"), 200, "not strict JSON"},
		{"half-a-body", raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"choices\":["), 200, "breaks off"},
		{"half-a-chunk", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{\"choices\":["), 200, "breaks off"},
		{"connection-closed", raw(""), 0, "closed the connection"},
		{"not-http", raw("nonsense\x1b[31m\r\n\r\n"), 0, `malformed HTTP`},
		{"huge-headers", raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", maxHTTPHeader+1<<12) + "\r\n\r\n"), 0, "headers"},
		{"empty-body", always(200, ""), 200, "ends too early"},
		{"white-space", always(200, " \n"), 200, "ends too early"},
		{"redirect-307", header("Location", elsewhere.URL, always(307, "")), 307, "HTTP status 307"},
		{"redirect-308", header("Location", elsewhere.URL, always(308, "")), 308, "HTTP status 308"},
		{"redirect-302", header("Location", elsewhere.URL, always(302, "")), 302, "HTTP status 302"},
		{"two-choices", always(200, `{"choices":[{"message":{"content":"x"}},{"message":{"content":"x"}}]}`), 200,
			"2 choices"},
		{"no-choice", always(200, `{"choices":[]}`), 200, "no choice"},
		{"duplicate-choices", always(200, `{"choices":[{"message":{"content":"x"}}],"choices":[]}`), 200, "duplicate"},
		{"key-in-a-name", always(200, `{"`+testKey+`":1,"`+testKey+`":2}`), 200, "(/[masked by pgfsm])"},
		{"key-echoed", always(401, `{"error":{"message":"Incorrect API key provided: `+testKey+`"}}`), 401, "provided: [masked by pgfsm]"},
		{"key-echoed-with-escapes", always(401, `{"error":{"message":"no \u0073k-test\/0123456789"}}`), 401, "no [masked by pgfsm]"},
		{"key-echoed-in-html", always(401, `<p>`+testKey+`</p>`), 401, "<p>[masked by pgfsm]</p>"},
		{"key-echoed-where-http-should-be", raw(testKey + "\r\n\r\n"), 0, `"[masked by pgfsm]"`},
		{"long-words", always(500, strings.Repeat("\x00", 1<<20)), 500, "bytes)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := serve(t, tt.handle)
			got, err := e.model(t, testKey).Plan(t.Context(), "x", nil)
			if n := len(e.requests()); n != 1 || len(got.Exchanges) != 1 {
				t.Fatalf("%d requests, %d exchanges, want one", n, len(got.Exchanges))
			}
			if x := got.Exchanges[0]; x.Status != tt.status || string(x.Sent) != e.requests()[0] ||
				len(x.Received) > MaxCompletionBytes {
				t.Errorf("exchange: status %d, %d bytes; want status %d", x.Status, len(x.Received), tt.status)
			}
			if tt.want == "" {
				if err != nil || string(got.Content) != "x" {
					t.Errorf("Plan = %q, %v, want x", got.Content, err)
				}
				return
			}
			var fault *EndpointError
			if !errors.As(err, &fault) || fault.Status != tt.status || !strings.Contains(fault.Reason, tt.want) {
				t.Fatalf("Plan = %v, want status %d and %q", err, tt.status, tt.want)
			}
			if strings.Contains(err.Error(), testKey) || len(err.Error()) > 8*maxReasonBytes || got.Content != nil ||
				strings.ContainsAny(err.Error(), "\x00\n\x1b") {
				t.Errorf("Plan = %q, %v: it holds the key, or is not one bounded line", got.Content, err)
			}
		})
	}
	if n := len(elsewhere.requests()); n != 0 {
		t.Errorf("the target of the redirects got %d requests", n)
	}
}

func TestModel_NobodyListens(t *testing.T) {
	e := serve(t, always(200, ""))
	m := e.model(t, testKey)
	e.Close()
	got, err := m.Plan(t.Context(), "x", nil)
	var fault *EndpointError
	if !errors.As(err, &fault) || fault.Status != 0 || len(got.Exchanges) != 1 || got.Exchanges[0].Status != 0 {
		t.Errorf("Plan = %+v, %v, want an error without a status", got, err)
	}
}

// TestModel_SwitchingProtocols: a body that no context ends must not be read.
func TestModel_SwitchingProtocols(t *testing.T) {
	release := make(chan struct{})
	e := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		<-release
	})
	t.Cleanup(func() { close(release) })
	_, err := e.model(t, testKey).Plan(t.Context(), "x", nil)
	var fault *EndpointError
	if !errors.As(err, &fault) || fault.Status != 101 {
		t.Errorf("Plan = %v, want status 101", err)
	}
}

// roundTripper is a transport in one function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// waiting is a body that never comes.
type waiting struct{ ctx context.Context }

func (w waiting) Read([]byte) (int, error) { <-w.ctx.Done(); return 0, w.ctx.Err() }
func (w waiting) Close() error             { return nil }

// TestModel_Hangs: whose time was over is in the error, and the exchanges so far are in the completion. Time is a fake.
func TestModel_Hangs(t *testing.T) {
	hangs := func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() }
	for _, tt := range []struct {
		name      string
		transport func(r *http.Request, n int) (*http.Response, error)
		exchanges int
	}{
		{"before-the-response", func(r *http.Request, _ int) (*http.Response, error) { return hangs(r) }, 1},
		{"in-the-body", func(r *http.Request, _ int) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: waiting{r.Context()}}, nil
		}, 1},
		{"in-the-repetition", func(r *http.Request, n int) (*http.Response, error) {
			if n == 1 {
				return &http.Response{StatusCode: http.StatusBadRequest, Body: http.NoBody}, nil
			}
			return hangs(r)
		}, 2},
	} {
		for _, over := range []struct {
			name          string
			caller, model time.Duration
			want, not     error
		}{
			{"model-time-is-over", time.Hour, time.Minute, ErrTimeout, context.DeadlineExceeded},
			{"caller-time-is-over", time.Minute, time.Hour, context.DeadlineExceeded, ErrTimeout},
		} {
			t.Run(tt.name+"/"+over.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := 0
					m := &Model{secrets: secret.New(nil), where: "http://models.test", timeout: over.model, transport: roundTripper(func(r *http.Request) (*http.Response, error) {
						n++
						return tt.transport(r, n)
					})}
					ctx, cancel := context.WithTimeout(t.Context(), over.caller)
					defer cancel()
					got, err := m.Plan(ctx, "x", nil)
					if !errors.Is(err, over.want) || errors.Is(err, over.not) {
						t.Errorf("Plan = %v, want %v alone", err, over.want)
					}
					if len(got.Exchanges) != tt.exchanges || n != tt.exchanges || got.Content != nil {
						t.Errorf("%d exchanges, %d requests, content %q; want %d and none", len(got.Exchanges), n, got.Content, tt.exchanges)
					}
				})
			})
		}
	}
}

// TestModel_CallerCancels: a caller who goes away while the endpoint works ends the request.
func TestModel_CallerCancels(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	e := serve(t, func(_ http.ResponseWriter, r *http.Request, _ int) {
		cancel()
		<-r.Context().Done()
	})
	got, err := e.model(t, testKey).Summarize(ctx, "x", []byte(`{}`))
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrTimeout) || len(got.Exchanges) != 1 || got.Content != nil {
		t.Errorf("Summarize = %+v, %v, want one exchange that was cancelled", got, err)
	}
}

func TestEnded(t *testing.T) {
	late, cancelLate := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancelLate()
	gone, cancel := context.WithTimeout(t.Context(), longEnough)
	cancel()
	for _, tt := range []struct {
		name string
		ctx  context.Context
		want error
	}{
		{"going-on", t.Context(), nil},
		{"deadline-passed", late, context.DeadlineExceeded},
		{"cancelled-before-its-deadline", gone, context.Canceled},
		{"deadline-passed-before-the-context-noticed", unaware{t.Context()}, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := contextError(tt.ctx); got != tt.want {
				t.Errorf("ended = %v, want %v", got, tt.want)
			}
		})
	}
}

// unaware is a context whose deadline has passed without its noticing.
type unaware struct{ context.Context }

func (unaware) Deadline() (time.Time, bool) { return time.Unix(0, 0), true }

// TestDialRefusesElsewhere uses a Unix socket as a place that is no loopback address.
func TestDialRefusesElsewhere(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	check.NoError(t, err)
	defer listener.Close()
	for _, tt := range []struct {
		name, base string
		secret     bool
		ok         bool
	}{
		{"key-over-http", "http://localhost", true, false},
		{"no-key-over-http", "http://localhost", false, true},
		{"key-over-https", "https://localhost", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base, err := url.Parse(tt.base)
			check.NoError(t, err)
			conn, err := newTransport(base, tt.secret).DialContext(t.Context(), "unix", socket)
			if (err == nil) != tt.ok {
				t.Errorf("dial = %v, want ok %t", err, tt.ok)
			}
			if conn != nil {
				conn.Close()
			}
		})
	}
}

func TestProxy(t *testing.T) {
	for _, tt := range []struct {
		url  string
		want bool
	}{
		{"http://models.test/", false}, {"http://127.0.0.1/", false}, {"https://localhost/", false},
		{"https://127.0.0.1/", false}, {"https://models.test/", true},
	} {
		req, err := http.NewRequest(http.MethodPost, tt.url, nil)
		check.NoError(t, err)
		if got, err := newTransport(req.URL, false).Proxy(req); err != nil || (got != nil) != tt.want {
			t.Errorf("proxy(%s) = %v, %v, want one: %t", tt.url, got, err, tt.want)
		}
	}
}
