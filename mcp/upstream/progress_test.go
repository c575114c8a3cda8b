package upstream

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// A worker is a server that reports progress for a while, and then answers, or hangs.
type worker struct {
	name    string
	every   time.Duration // between two reports
	reports int
	answers bool
	after   time.Duration // of the call's end
	code    string
}

var workers = []worker{
	{"progress-past-the-timeout", 9 * time.Second, 5, true, 45 * time.Second, ""},
	{"progress-stops", 9 * time.Second, 5, false, 45*time.Second + callTime, CodeTimeout},
	{"no-progress", time.Second, 0, false, callTime, CodeTimeout},
	{"progress-comes-too-late", callTime + time.Second, 5, true, callTime, CodeTimeout},
	{"progress-until-the-total", 9 * time.Second, 100, true, DefaultTimeoutTotal, CodeTimeout},
}

// reportProgress has a server report progress under a token.
func (c *fixtureCall) reportProgress(token string) {
	c.sendLines(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":` + token + `}}`)
}

// tellProgress collects what a caller is told of progress.
func tellProgress(told *[]string) func(wire.Message) {
	return func(m wire.Message) { *told = append(*told, string(wire.Member(m.Params, tokenMember))) }
}

// Progress extends the time of a link's call, whether the caller asked for any or not. A caller who did not is told of none.
func TestProgressExtendsTheTimeOfACall(t *testing.T) {
	for _, tt := range workers {
		for _, kind := range []string{onOneStream, onItsStream} {
			for _, protocol := range []string{older, newer} {
				for _, meta := range []string{``, `{"progressToken":"caller"}`} {
					t.Run(fmt.Sprintf("%s-%s-%s-asked-%t", tt.name, kind, protocol, meta != ""), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							var told []string
							s := newLinkFixture(t, kind, protocol, ignoreMessage)
							s.meta = jsontext.Value(meta)
							c := s.call(t.Context(), tellProgress(&told))
							for range tt.reports {
								time.Sleep(tt.every)
								c.reportProgress(fmt.Sprint(c.id))
							}
							if tt.answers {
								c.answerCall()
							}
							c.checkEnd(t, tt.after, tt.code)
							want := 0
							if meta != "" {
								want = min(tt.reports, int(tt.after/tt.every))
							}
							if len(told) != want || want > 0 && told[0] != `"caller"` {
								t.Errorf("the caller was told of %q, want %d under its own token", told, want)
							}
						})
					})
				}
			}
		}
	}
}

// A notification that does not say how far the work is, or has another token than the call, gains nothing and is not relayed.
func TestProgressThatDoesNotCount(t *testing.T) {
	for _, progress := range []string{
		`"progressToken":ID`, `"progress":"x","progressToken":ID`, `"progress":null,"progressToken":ID`, `"progress":{},"progressToken":ID`,
		`"progress":1,"progressToken":"1"`, `"progress":1,"progressToken":1.0`, `"progress":1,"progressToken":99`,
		`"progress":1,"progressToken":"caller"`, `"progress":1,"progressToken":null`,
	} {
		for _, kind := range []string{onOneStream, onItsStream} {
			t.Run(progress+"-"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var told []string
					s := newLinkFixture(t, kind, older, ignoreMessage)
					s.meta = jsontext.Value(`{"progressToken":"caller"}`)
					c := s.call(t.Context(), tellProgress(&told))
					c.waitUntil(callTime / 2)
					c.sendLines(`{"jsonrpc":"2.0","method":"notifications/progress","params":{` + strings.Replace(progress, "ID", fmt.Sprint(c.id), 1) + `}}`)
					c.checkEnd(t, callTime, CodeTimeout)
					if told != nil {
						t.Errorf("the caller was told of %q, want nothing", told)
					}
				})
			})
		}
	}
}

// The time that people are waited for does not count against the timeout, and it counts against the total.
func TestProgressAndQuestionsInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLinkFixture(t, onOneStream, older, ignoreMessage)
		c := s.call(t.Context(), ignoreMessage)
		c.waitUntil(9 * time.Second)
		c.reportProgress(fmt.Sprint(c.id))
		c.askClient("7")
		c.waitUntil(5 * time.Minute)
		s.answerRequest(t, "7")
		for n := range 100 {
			c.waitUntil(5*time.Minute + time.Duration(n)*9*time.Second)
			c.reportProgress(fmt.Sprint(c.id))
		}
		c.checkEnd(t, DefaultTimeoutTotal, CodeTimeout)
	})
}
