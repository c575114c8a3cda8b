package upstream

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgfsm/internal/test/cputime"
)

// answering serves a session that answers every call with a text of size bytes, as an event or as a body.
func answering(b *testing.B, size int, stream bool) *httptest.Server {
	b.Helper()
	text := strings.Repeat("x", size)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			rw.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w := readWire(body)
		var answer string
		switch {
		case w.id == "":
			rw.WriteHeader(http.StatusAccepted)
			return
		case w.method == methodCall:
			answer = result(w.id, `{"content":[{"type":"text","text":"`+text+`"}]}`)
		default:
			answer = honest(w)[0]
		}
		if stream {
			rw.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(rw, "event: message\ndata: "+answer+"\n\n")
			http.NewResponseController(rw).Flush()
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		io.WriteString(rw, answer)
	}))
	b.Cleanup(srv.Close)
	return srv
}

// BenchmarkLinkCall is a call over a link beside a bare POST of the same bytes: the price of everything that is checked.
func BenchmarkLinkCall(b *testing.B) {
	for _, size := range []int{32, 64 << 10, 1 << 20} {
		for _, stream := range []bool{false, true} {
			args := []byte(fmt.Sprintf(`{"text":"%s"}`, strings.Repeat("x", size)))
			name := fmt.Sprintf("%d-stream-%t", size, stream)
			b.Run("link-"+name, func(b *testing.B) {
				srv := answering(b, size, stream)
				u, err := New([]Server{{Name: "s", Type: TypeHTTP, URL: srv.URL}}, Limits{}, Info{}, nil)
				if err != nil {
					b.Fatal(err)
				}
				defer u.Close()
				l := linked(b, u, "s", Peer{Protocol: older})
				number := heldBy(b, l).Number
				b.ReportAllocs()
				measured := cputime.Measure(b)
				for b.Loop() {
					r := l.Call(b.Context(), Call{Server: "s", Tool: "echo", Arguments: args, RunID: newRun(), Listing: number}, nil)
					if r.Effect != EffectDone {
						b.Fatal(r)
					}
				}
				measured()
			})
			b.Run("bare-"+name, func(b *testing.B) {
				srv := answering(b, size, stream)
				frame := (&Call{Tool: "echo", Arguments: args}).message(1, []byte(`{}`))
				transport := &http.Transport{DisableCompression: true}
				defer transport.CloseIdleConnections()
				b.ReportAllocs()
				measured := cputime.Measure(b)
				for b.Loop() {
					req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, srv.URL, io.NopCloser(bytes.NewReader(frame)))
					if err != nil {
						b.Fatal(err)
					}
					req.ContentLength = int64(len(frame))
					req.Header.Set("Content-Type", "application/json")
					resp, err := transport.RoundTrip(req)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := io.ReadAll(resp.Body); err != nil {
						b.Fatal(err)
					}
					resp.Body.Close()
				}
				measured()
			})
		}
	}
}
