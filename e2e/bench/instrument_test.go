package bench

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
)

// TestEveryPlaceAnswersRight holds the callers to the servers that they measure with.
func TestEveryPlaceAnswersRight(t *testing.T) {
	upstream := self(t, upstreamRole)
	bare := self(t, bareRole, proxyTo+"="+upstream.host)
	for _, tc := range []struct {
		name string
		open func(door) (client, error)
		of   *process
		kind kind
	}{
		{"direct", openPlain, upstream, echo},
		{"clients-of-the-sdk", openSDK, upstream, echo},
		{"large-through-the-proxy", openPlain, bare, blob(1 << 20)},
		{"clients-of-the-sdk-through-the-proxy", openSDK, bare, echo},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := variant{name: tc.name, place: tc.of.place("/mcp"), kind: tc.kind}
			b := block{title: tc.name, callers: 3, open: tc.open, variants: []variant{v, v}, turn: 50 * time.Millisecond, rounds: 2}
			s, err := b.run(time.Now()) // there is no time, and one round all the same
			check.NoError(t, err)
			if len(s) != 2 || len(s[0]) != 1 || len(s[1]) != 1 || len(s[0][0].took) < 3 {
				t.Errorf("turns: %v", s)
			}
			var out strings.Builder
			if b.print(&out, s); !strings.Contains(out.String(), "3 sessions, 1 round of 50ms") {
				t.Error(out.String())
			}
		})
	}
}

func TestAnswersAreJudged(t *testing.T) {
	const refusal = `{"isError":true,"_meta":{"io.pgfsm/decision":{"code":"policy_denied"}}}`
	for _, tc := range []struct {
		name   string
		kind   kind
		answer string
		want   string // empty: it is right
	}{
		{"right", echo, `{"content":[{"type":"text","text":"asked"}]}`, ""},
		{"other-text", echo, `{"content":[{"type":"text","text":"other"}]}`, "does not have the text"},
		{"text-with-an-end", echo, `{"content":[{"type":"text","text":"asked."}]}`, "does not have the text"},
		{"error-with-the-text", echo, `{"isError":true,"content":[{"type":"text","text":"asked"}]}`, "is an error"},
		{"refused", refused, refusal, ""},
		{"not-refused", refused, `{"content":[]}`, "is no refusal"},
		{"refused-and-called", refused, refusal + `"text":"asked"`, "the server was asked"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.kind.judge([]byte(tc.answer), []byte("asked")); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("judge() = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAWrongAnswerEndsTheRun has calls answered with the answer of another one, with another status, and with half of one.
func TestAWrongAnswerEndsTheRun(t *testing.T) {
	upstream := self(t, upstreamRole)
	for name, tc := range map[string]struct { // each stands alone
		answer func(http.ResponseWriter)
		want   string
	}{
		"other-id": {func(w http.ResponseWriter) { fmt.Fprint(w, `{"jsonrpc":"2.0","id":0,"result":{}}`) }, "no message has"},
		"busy":     {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, "status 429"},
		"cut-off": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, "{")
		}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			var handler http.HandlerFunc = func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "":
					w.Header().Set("Mcp-Session-Id", "1")
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":%q}}`, protocol)
				case r.ContentLength < 100:
					w.WriteHeader(http.StatusAccepted)
				default:
					tc.answer(w)
				}
			}
			server := httptest.NewServer(handler)
			t.Cleanup(server.Close)
			here := &place{door: door{host: strings.TrimPrefix(server.URL, "http://"), path: "/mcp"}, process: upstream}
			b := block{title: name, callers: 2, open: openPlain, variants: []variant{{name: "v", place: here, kind: echo}}, turn: time.Millisecond, rounds: 1}
			if _, err := b.run(time.Now()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("run() = %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestFigures(t *testing.T) {
	ms := func(figures ...int) (took []time.Duration) {
		for _, f := range figures {
			took = append(took, time.Duration(f)*time.Millisecond)
		}
		return took
	}
	s := series{
		{{took: ms(3, 1, 2), whole: time.Second, cpu: 30 * time.Millisecond}, {took: ms(4, 4), whole: time.Second}},
		{{took: ms(6, 2, 4, 4, 4, 4), whole: time.Second}, {took: ms(12), whole: time.Second}},
	}
	got := s.figures()
	want := []figures{
		{calls: 5, rate: 2.5, p50: 3 * time.Millisecond, p99: 4 * time.Millisecond, top: 4 * time.Millisecond, rounds: ms(2, 4), cpu: 6 * time.Millisecond,
			rates: []float64{3, 2}, ratio: span{1, 1, 1}, share: span{1, 1, 1}},
		{calls: 7, rate: 3.5, p50: 4 * time.Millisecond, p99: 12 * time.Millisecond, top: 12 * time.Millisecond, rounds: ms(4, 12),
			rates: []float64{6, 1}, ratio: span{2.5, 2, 3}, share: span{1.25, 0.5, 2}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(figures{}, span{})); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		name string
		bar  bar
		want string
	}{
		{"ratio-at-the-limit", bar{what: ratioBar, limit: 2.5, than: "a"}, `p50 2.50 of "a", bar ≤ 2.5 met`},
		{"ratio-past-it", bar{what: ratioBar, limit: 2.4, than: "a"}, `p50 2.50 of "a", bar ≤ 2.4 MISSED`},
		{"share-at-the-limit", bar{what: shareBar, limit: 1.25, than: "a"}, `calls/s 125 % of "a", bar ≥ 125 % met`},
		{"share-below-it", bar{what: shareBar, limit: 1.26, than: "a"}, `calls/s 125 % of "a", bar ≥ 126 % MISSED`},
		{"than-what-is-not-there", bar{what: shareBar, limit: 3, than: "c"}, "c was not measured"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if said := tc.bar.says(got, 1, []string{"a", "b"}); said != tc.want {
				t.Errorf("says() = %s, want %s", said, tc.want)
			}
		})
	}
}
