package gateway

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
)

// A crowd is an asker all of whose lines are in use, and that is told how calls get theirs.
type crowd struct {
	*asker
	held []*link
	errs []error // of the attempts
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{asker: newAsker(t, 0, nil)}
	c.ann.ask("tools/list", `{}`) // what the server is, is known now
	q := c.ann.readRequest()
	for range maxDedicated {
		l, err := c.linkTo(t.Context(), q, c.active.Load().endpoints["docs"].server)
		if err != nil {
			t.Fatal(err)
		}
		c.held = append(c.held, l)
	}
	c.judge.decide = func(ctx context.Context, call *Ask) Answer {
		if _, err := call.Link(ctx); err != nil {
			_, again := call.Link(ctx)
			c.errs = append(c.errs, err, again)
			return Answer{Result: jsontext.Value(`{"refused":true}`)}
		}
		return Answer{Native: true, Result: jsontext.Value(`{"content":[]}`)}
	}
	return c
}

// TestRequestsThatMayBeAskedWaitForALink: on a line that is shared nobody is asked, and the server may go on without an answer.
func TestRequestsThatMayBeAskedWaitForALink(t *testing.T) {
	for _, tc := range []struct {
		name  string
		after time.Duration // one line is given back
		made  bool
	}{
		{"at-once", 0, true},
		{"in-time", dedicatedWait - dedicatedRetry, true},
		{"too-late", dedicatedWait + dedicatedRetry, false},
	} {
		for _, method := range []string{byTool, byPrompt} {
			t.Run(tc.name+"-"+strings.ReplaceAll(method, "/", "-"), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newCrowd(t)
					timer := time.AfterFunc(tc.after, c.held[0].release)
					defer timer.Stop()
					begun, links := time.Now(), len(c.docs.links)
					got := c.ann.ask(method, first1)
					took, made := time.Since(begun), !strings.Contains(got, `"refused":true`) && !strings.Contains(got, `"code":"too_many_sessions"`)
					if made != tc.made || took > dedicatedWait || len(c.docs.links) != links {
						t.Errorf("after %s, with %d links more: %s", took, len(c.docs.links)-links, got)
					}
					if n := len(c.docs.received(byPrompt)); method == byPrompt && (n == 1) != tc.made {
						t.Errorf("the server got %d requests", n)
					}
					for _, err := range c.errs {
						var no *upstream.LinkError
						if !errors.As(err, &no) || no.Code != upstream.CodeLinks || !strings.Contains(no.Reason, "ask again later") {
							t.Errorf("it was refused with %v", err)
						}
					}
				})
			})
		}
	}
}

// TestWhoseServerTakesNoMoreSessions: it is said as the server's connection says it.
func TestWhoseServerTakesNoMoreSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		for _, l := range c.held {
			l.Close()
			l.release()
		}
		join := c.connect
		var full atomic.Bool
		full.Store(true)
		c.connect = func(ctx context.Context, server *server, p upstream.Peer) (upstreamSession, error) {
			if full.Load() {
				return nil, &upstream.LinkError{Code: upstream.CodeLinks, Reason: "there are 64 sessions"}
			}
			return join(ctx, server, p)
		}
		c.ann.ask(byTool, first1)
		if len(c.errs) != 2 || !strings.Contains(c.errs[0].Error(), "64 sessions") {
			t.Errorf("%v", c.errs)
		}
		time.AfterFunc(dedicatedWait/2, func() { full.Store(false) })
		if got := c.ann.ask(byTool, first1); !strings.Contains(got, `"content":[]`) {
			t.Error(got)
		}
	})
}

// TestWhatNeedsNoLinkDoesNotWait: listings, and clients that come back.
func TestWhatNeedsNoLinkDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.held[0].release()
		c.asksOnce(func(_ context.Context, _ *Ask, answer <-chan string) jsontext.Value {
			<-answer
			return jsontext.Value(`{"content":[]}`)
		})
		all := c.modern("", c.ann.can) // to whom the tool has to be found first
		all.protocol = c.ann.protocol
		call := func(more string) string {
			return all.ask(byTool, `{"name":"docs__echo","arguments":{"n":1},"_meta":`+all.meta("")+more+`}`)
		}
		state, _ := asked(t, call(""))
		begun := time.Now()
		if got := c.ann.ask("tools/list", `{}`); !strings.Contains(got, `"echo"`) {
			t.Error(got)
		}
		if got := call(`,"requestState":` + state + `,"inputResponses":{"q1":{}}`); !strings.Contains(got, `"content":[]`) {
			t.Error(got)
		}
		if took := time.Since(begun); took > 0 {
			t.Errorf("it took %s", took)
		}
	})
}

// TestClientsThatGoWhileTheyWaitForALink: nobody waits for them.
func TestClientsThatGoWhileTheyWaitForALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		over := make(chan string, 1)
		go func() {
			over <- string(c.dispatch(ctx, c.ann.request(`8`, byTool, `{"name":"echo","_meta":`+c.ann.meta("")+`}`)))
		}()
		synctest.Wait()
		cancel()
		<-over
		if took := time.Since(begun); took > 0 || !errors.Is(c.errs[0], context.Canceled) {
			t.Errorf("after %s: %v", took, c.errs)
		}
	})
}
