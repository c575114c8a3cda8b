package upstream

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// serveSSE serves a script over the HTTP with server-sent events of MCP 2024-11-05: one stream that everything comes
// on, and POSTs that are only accepted.
func serveSSE(t *testing.T, s script) Server {
	t.Helper()
	var (
		asked    = make(chan spoken, 100)
		answered = make(chan spoken, 100)
		hold     = make(chan struct{})
	)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /messages", func(rw http.ResponseWriter, r *http.Request) {
		w := readWire([]byte(readAll(r)))
		if w.method == "" {
			answered <- w
		} else {
			asked <- w
		}
		rw.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("GET /sse", func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, "event: endpoint\ndata: /messages\n\n")
		for {
			http.NewResponseController(rw).Flush()
			var w spoken
			select {
			case w = <-asked:
			case <-r.Context().Done():
				return
			case <-hold:
				return
			}
			for _, line := range s(w) {
				if line == untilAnswered || line == untilRefused {
					http.NewResponseController(rw).Flush()
					select {
					case a := <-answered:
						a.check(line)
					case <-r.Context().Done():
						return
					}
					continue
				}
				io.WriteString(rw, "event: message\ndata: ")
				emit(rw, line)
				io.WriteString(rw, "\n\n")
			}
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(hold) })
	return Server{Name: "sse", Type: TypeSSE, URL: srv.URL + "/sse"}
}

// overEach plays a role over every transport on which a server can say more than its answer.
func overEach(t *testing.T, role string, test func(t *testing.T, s Server)) {
	t.Helper()
	transports := []struct {
		name  string
		serve func(t *testing.T) Server
	}{
		{"stdio", func(t *testing.T) Server { return childServer(t, role) }},
		{"sse", func(t *testing.T) Server { return serveSSE(t, roles[role]()) }},
		{"http-stream", func(t *testing.T) Server { return serveScript(t, roles[role](), true).server() }},
	}
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			noLeak(t)
			test(t, tr.serve(t))
		})
	}
}
