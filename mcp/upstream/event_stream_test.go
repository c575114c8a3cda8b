package upstream

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A server of a revision with sessions may cut the stream of a call and be asked for the rest. The call is not sent again.
func TestTheRestOfAStreamIsAskedFor(t *testing.T) {
	for _, tt := range []struct {
		name    string
		parts   []string // of the stream: the response, and the answers to GETs
		session string
		code    string
		gets    []string // the ids that are asked with
	}{
		{"in-the-first-rest", []string{"id: a\nretry: 1\ndata:\n\n", "data: ANSWER\n\n"}, "one", "", []string{"a"}},
		{"in-the-third-rest", []string{
			"id: a\nretry: 1\ndata:\n\n", "id: b\ndata: NOTE\n\n", "data: NOTE\n\n", "id: c\ndata: ANSWER\n\n",
		}, "one", "", []string{"a", "b", "b"}},
		{"no-rest", []string{"id: a\nretry: 1\ndata:\n\n"}, "one", CodeUnreachable, []string{"a"}},
		{"no-ids", []string{"retry: 1\ndata: NOTE\n\n", "data: ANSWER\n\n"}, "one", CodeUnreachable, nil},
		{"no-session", []string{"id: a\nretry: 1\ndata: NOTE\n\n", "data: ANSWER\n\n"}, "", CodeUnreachable, nil},
		{"an-id-that-is-no-header", []string{"id: \x01\nretry: 1\ndata: NOTE\n\n", "data: ANSWER\n\n"}, "one", CodeUnreachable, nil},
		{"another-answer", []string{"id: a\nretry: 1\ndata:\n\n", "data: OTHER\n\n"}, "one", CodeProtocol, []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			var mu sync.Mutex
			var gets []string
			id := ""
			part := func(n int) string {
				text := strings.ReplaceAll(tt.parts[n], "ANSWER", result(id, oneResult))
				text = strings.ReplaceAll(text, "OTHER", result("77", oneResult))
				return strings.ReplaceAll(text, "NOTE", `{"jsonrpc":"2.0","method":"notifications/message","params":{}}`)
			}
			srv := serveScript(t, honest, false)
			srv.get = func(rw http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				gets = append(gets, r.Header.Get("Last-Event-Id"))
				if len(gets) >= len(tt.parts) || r.Header.Get(sessionHeader) != tt.session {
					rw.WriteHeader(http.StatusNotFound)
					return
				}
				rw.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(rw, part(len(gets)))
			}
			srv.intercept = func(rw http.ResponseWriter, _ *http.Request, w spoken) bool {
				if tt.session != "" {
					rw.Header().Set(sessionHeader, tt.session)
				}
				if w.method != methodCall {
					return false
				}
				mu.Lock()
				defer mu.Unlock()
				id = w.id
				rw.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(rw, part(0))
				return true
			}
			_, r := linkCall(t, upstreams(t, Limits{}, srv.server()), "web", `{}`)
			effect := map[bool]string{true: EffectDone, false: EffectUnknown}[tt.code == ""]
			mu.Lock()
			defer mu.Unlock()
			if r.Code != tt.code || r.Effect != effect || srv.count(methodCall) != 1 {
				t.Errorf("Call() = %+v after %d calls, want code %q, %s, and one call", r, srv.count(methodCall), tt.code, effect)
			}
			if diff := cmp.Diff(tt.gets, gets); diff != "" {
				t.Errorf("asked with the ids (-want +got):\n%s", diff)
			}
		})
	}
}
