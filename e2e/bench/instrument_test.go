package bench

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEveryPlaceAnswersRight holds the callers to the servers that they measure with.
func TestEveryPlaceAnswersRight(t *testing.T) {
	upstream, json := self(t, upstreamRole), self(t, jsonRole)
	bare, floor := self(t, bareRole, proxyTo+"="+upstream.host), self(t, floorRole)
	for _, tc := range []struct {
		name string
		open func(door) (client, error)
		of   *process
		kind kind
	}{
		{"events", plain, upstream, echo}, {"large-events", plain, upstream, blob(1 << 20)}, {"clients-of-the-sdk", sdkClient, upstream, echo},
		{"json", plain, json, echo}, {"large-json", plain, json, blob(64 << 10)},
		{"bare", plain, bare, echo}, {"large-through-bare", plain, bare, blob(1 << 20)}, {"clients-of-the-sdk-through-bare", sdkClient, bare, echo},
		{"nobody", plain, floor, echo}, {"clients-of-the-sdk-and-nobody", sdkClient, floor, echo},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := variant{name: tc.name, place: tc.of.place("/mcp"), kind: tc.kind}
			b := block{title: tc.name, callers: 3, open: tc.open, variants: []variant{v, v}, turn: 50 * time.Millisecond, rounds: 2}
			s, err := b.run(time.Now()) // there is no time, and one round all the same
			if err != nil {
				t.Fatal(err)
			}
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

// scripted answers the handshake as it should be, and calls as it is told.
func scripted(t *testing.T, answer http.HandlerFunc) (*httptest.Server, door) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), `"tools/call"`) {
			answer(w, r)
			return
		}
		w.Header().Set("Mcp-Session-Id", "1")
		if !strings.Contains(string(body), `"initialize"`) {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":%q}}`, firstID+1, protocol)
	}))
	t.Cleanup(s.Close)
	return s, door{host: strings.TrimPrefix(s.URL, "http://"), path: "/mcp"}
}

func TestCallersNoticeWhatIsWrong(t *testing.T) {
	right := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"TEXT"}]}}`, firstID+2)
	const refusal = `"isError":true,"_meta":{"io.pgfsm/decision":{"code":"policy_denied"}}`
	for _, tc := range []struct {
		name   string
		kind   kind
		answer string
		status int
		stream bool
		want   string // what the error says; empty: none
	}{
		{"right", echo, right, 200, false, ""},
		{"right-as-event", echo, ": hello\n\nevent: message\ndata: " + right + "\n\n", 200, true, ""},
		{"another-event-first", echo, "data: {\"method\":\"x\"}\n\ndata: " + right + "\n\n", 200, true, ""},
		{"other-text", echo, strings.Replace(right, "TEXT", "text", 1), 200, false, "does not have the text"},
		{"text-with-an-end", echo, strings.Replace(right, "TEXT", "TEXT.", 1), 200, false, "does not have the text"},
		{"short-blob", blob(100), right, 200, false, "does not have the text"},
		{"error-with-the-text", echo, strings.Replace(right, `"content"`, `"isError":true,"content"`, 1), 200, false, "is an error"},
		{"other-id", echo, strings.Replace(right, fmt.Sprint(firstID+2), fmt.Sprint(firstID+3), 1), 200, false, `no message has "id"`},
		{"event-without-end", echo, "data: " + right + "\n", 200, true, `no message has "id"`},
		{"busy", echo, right, 429, false, "status 429"},
		{"refused", refused, strings.Replace(right, `"content":[{"type":"text","text":"TEXT"}]`, refusal, 1), 200, false, ""},
		{"not-refused", refused, right, 200, false, "is no refusal"},
		{"refused-and-called", refused, strings.Replace(right, `"content"`, refusal+`,"content"`, 1), 200, false, "the server was asked"},
		{"held", held, strings.Replace(right, `TEXT`, `waits"}],"_meta":[{"code":"approval_required","run_id":"1`, 1), 200, false, ""},
		{"held-as-no-run", held, strings.Replace(right, `TEXT`, `waits"}],"_meta":[{"code":"approval_required","run_id":"`, 1), 200, false, "does not say"},
		{"not-held", held, right, 200, false, "does not say that the call is held"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, at := scripted(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var asked []byte
				for _, name := range []string{`"message":"`, `"seed":"`} {
					if rest := behind(body, name); rest != nil {
						asked = rest[:tokenBytes]
					}
				}
				if tc.stream {
					w.Header().Set("Content-Type", "text/event-stream")
				}
				w.WriteHeader(tc.status)
				fmt.Fprint(w, strings.ReplaceAll(tc.answer, "TEXT", string(asked)))
			})
			c, err := open(at)
			if err != nil {
				t.Fatal(err)
			}
			defer c.hangUp()
			c.prepare(tc.kind)
			_, err = c.call()
			if got := fmt.Sprint(err); (err == nil) != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("call = %v, want %q", err, tc.want)
			}
		})
	}
}

// TestAWrongAnswerEndsTheRun shows that a block fails with its first fault, and that what is cut off is one.
func TestAWrongAnswerEndsTheRun(t *testing.T) {
	_, at := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, "{")
	})
	here := &place{door: at, process: self(t, floorRole)}
	b := block{title: "cut off", callers: 2, open: plain, variants: []variant{{name: "v", place: here, kind: echo}}, turn: time.Millisecond, rounds: 1}
	if _, err := b.run(time.Now()); err == nil || !strings.Contains(err.Error(), "body of the response after") {
		t.Errorf("run = %v", err)
	}
}

func TestACallerConnectsAnewBetweenTurns(t *testing.T) {
	for _, says := range []string{"close", "keep-alive"} {
		t.Run(says, func(t *testing.T) {
			s, at := scripted(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Connection", says)
				w.WriteHeader(http.StatusTeapot)
			})
			c, err := open(at)
			if err != nil {
				t.Fatal(err)
			}
			defer c.hangUp()
			c.prepare(echo)
			for range 3 {
				if _, err := c.call(); err == nil || !strings.Contains(err.Error(), "status 418") {
					t.Fatal(err)
				}
				s.CloseClientConnections()
				if err := c.revive(); err != nil {
					t.Fatal(err)
				}
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
		{"not-cheaper", bar{what: cheaperBar, limit: 1, than: "a"}, `p50 2.50, CPU 0.00 of "a", bar < 1 MISSED`},
		{"cheaper", bar{what: cheaperBar, limit: 3, than: "a"}, `p50 2.50, CPU 0.00 of "a", bar < 3 met`},
		{"than-what-is-not-there", bar{what: cheaperBar, limit: 3, than: "c"}, "c was not measured"},
	} {
		if said := tc.bar.says(got, 1, []string{"a", "b"}); said != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, said, tc.want)
		}
	}
	for _, tc := range []struct {
		q    float64
		want int
	}{{0, 1}, {0.5, 2}, {0.75, 3}, {0.76, 4}, {1, 4}} {
		if got := quantile(ms(1, 2, 3, 4), tc.q); got != ms(tc.want)[0] {
			t.Errorf("quantile %v = %v, want %d ms", tc.q, got, tc.want)
		}
	}
	if got := quantile(nil, 0.5); got != 0 {
		t.Errorf("quantile of nothing = %v", got)
	}
}

func TestProcessorTimeOfAProcess(t *testing.T) {
	const line = "42 (a (b) c) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 7 8 20 0 5 0 123 456 789"
	for _, tc := range []struct {
		name, stat string
		want       time.Duration
	}{
		{"name-with-parentheses", line, 3 * time.Second}, {"empty", "", 0}, {"too-short", "42 (a) S 1 2", 0},
		{"no-number", strings.Replace(line, "250", "x", 1), 0},
	} {
		got, err := cpuOf([]byte(tc.stat))
		if got != tc.want || (err == nil) != (tc.want > 0) {
			t.Errorf("%s: %v, %v; want %v", tc.name, got, err, tc.want)
		}
	}
}

func TestPoliciesOfASetup(t *testing.T) {
	for _, tc := range []struct{ n, others int }{{1, 0}, {3, 0}, {4, 1}, {1000, 997}} {
		got := policies(tc.n)
		if n := strings.Count(got, "- id: "); n != tc.n || strings.Count(got, "- id: other") != tc.others || !strings.HasSuffix(got, "effect: allow\n") {
			t.Errorf("policies(%d) has %d: %.300s", tc.n, n, got)
		}
	}
}
