package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// How the messages of the fixture's server arrive at its link.
const (
	onOneStream = "one-stream" // as over stdio and SSE
	onItsStream = "its-stream" // over HTTP, with the response to the call
	onNews      = "news"       // over HTTP, on the standalone stream
)

// callTime is what the calls of a staged link may take.
const callTime = 10 * time.Second

// A linkFixture is a link whose server is the test, so that both work in a bubble of time.
type linkFixture struct {
	kind     string
	meta     jsontext.Value // of the calls
	link     *Link
	duplex   *duplex     // nil: over HTTP
	deaf     bool        // the server takes no answers and no notifications
	noted    chan spoken // notifications that have come
	begun    chan begun
	news     chan *io.PipeWriter
	incoming *io.PipeWriter // what news gave
}

// A begun request has come to the server.
type begun struct {
	id  int64
	end *io.PipeWriter // over HTTP: of the response
}

// A stagedPipe is a duplex whose stream is the test.
type stagedPipe struct{ duplex }

func (*stagedPipe) close(bool) {}

// newLinkFixture makes a link of a revision. The peer can be asked, and is.
func newLinkFixture(t *testing.T, kind, protocol string, tell func(wire.Message)) *linkFixture {
	t.Helper()
	server := Server{Name: "s", Type: TypeHTTP, URL: "http://127.0.0.1:1/mcp"}
	if kind == onOneStream {
		server = Server{Name: "s", Type: TypeStdio, Command: "none"}
	}
	u := upstreams(t, Limits{}, withTimeout(callTime, server))
	l := newLink(u, u.byName["s"], Peer{Protocol: protocol, OnMessage: tell, Capabilities: []byte(`{"elicitation":{}}`)})
	s := &linkFixture{kind: kind, link: l, begun: make(chan begun, 10), noted: make(chan spoken, 10), news: make(chan *io.PipeWriter, 10)}
	if kind == onOneStream {
		pipe := &stagedPipe{newDuplex(l)}
		pipe.send = s.takeFrame
		l.conn, s.duplex = pipe, &pipe.duplex
	} else {
		h := newHTTPConn(l)
		h.transport = s
		l.conn = h
	}
	l.storeHandshake(serverHello{protocol: protocol}, protocol >= statelessProtocol)
	l.streamOpen.Store(kind != onNews)
	l.markStreamAnswered()
	if kind == onNews {
		l.openStream()
		s.incoming = <-s.news
	}
	context.AfterFunc(l.ctx, l.finish)
	t.Cleanup(l.Close)
	return s
}

// takeFrame takes a message of the link where all is on one stream.
func (s *linkFixture) takeFrame(ctx context.Context, frame []byte, p *permit) *fault {
	if f := s.link.authorizeSend(frame, p); f != nil {
		return f
	}
	if p != nil {
		p.touched.Store(true)
	}
	if s.receiveFrame(ctx, frame, nil) != nil {
		return &fault{code: contextCode(ctx), reason: "nobody reads"}
	}
	return nil
}

// receiveFrame is what the server does with a message.
func (s *linkFixture) receiveFrame(ctx context.Context, frame []byte, end *io.PipeWriter) error {
	w := readWire(frame)
	switch {
	case w.id == "" && s.deaf, w.method == "" && s.deaf:
		<-ctx.Done()
		return ctx.Err()
	case w.id == "":
		s.noted <- w
	case w.method != "" && w.id != "":
		id, err := strconv.ParseInt(w.id, 10, 64)
		s.begun <- begun{id, end}
		return err
	}
	return nil
}

// RoundTrip takes a message of the link over HTTP.
func (s *linkFixture) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	var frame []byte
	if r.Body != nil {
		var err error
		if frame, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	body, end := io.Pipe()
	resp := &http.Response{StatusCode: http.StatusOK, Body: body, Header: http.Header{"Content-Type": {"text/event-stream"}}}
	context.AfterFunc(ctx, func() { end.CloseWithError(ctx.Err()) })
	switch {
	case r.Method == http.MethodGet:
		s.news <- end
	case wire.Member(frame, "method") == nil || wire.Member(frame, "id") == nil:
		resp.StatusCode, resp.Body = http.StatusAccepted, http.NoBody
		fallthrough
	default:
		if err := s.receiveFrame(ctx, frame, end); err != nil {
			return nil, err
		}
	}
	return resp, nil
}

// A fixtureCall is one call that is under way.
type fixtureCall struct {
	begun
	stage *linkFixture
	over  chan struct{}
	came  Returned
	since time.Time
	took  time.Duration
}

// call makes a call, which has arrived when it returns.
func (s *linkFixture) call(ctx context.Context, on func(wire.Message)) *fixtureCall {
	c := &fixtureCall{stage: s, over: make(chan struct{}), since: time.Now()}
	number := s.link.u.moments.Add(1)
	go func() {
		defer close(c.over)
		c.came = s.link.Call(ctx, Call{Server: "s", Tool: "echo", Arguments: object(`{}`), RunID: newRun(), Listing: number, Meta: s.meta}, on)
		c.took = time.Since(c.since)
	}()
	c.begun = <-s.begun
	return c
}

// askClient has the server ask something, all at once, during the call and as the kind of stage has it.
func (c *fixtureCall) askClient(ids ...string) {
	var lines []string
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"elicitation/create","params":{"message":"?"}}`, id))
	}
	c.sendLines(lines...)
}

func (c *fixtureCall) withdrawRequest(id string) {
	c.sendLines(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)
}

func (c *fixtureCall) sendLines(lines ...string) {
	end := c.end
	if c.stage.kind == onNews {
		end = c.stage.incoming
	}
	c.stage.sendLines(end, lines...)
}

// sendLines sends messages, over HTTP in one go. Who has gone does not hear them.
func (s *linkFixture) sendLines(end io.Writer, lines ...string) {
	var events strings.Builder
	for _, line := range lines {
		if s.duplex != nil {
			s.duplex.receiveMessage([]byte(line))
		}
		events.WriteString(event(line))
	}
	if s.duplex == nil {
		io.WriteString(end, events.String())
	}
}

// answerCall has the server answer the call.
func (c *fixtureCall) answerCall() {
	c.stage.sendLines(c.end, result(strconv.FormatInt(c.id, 10), oneResult))
	if c.end != nil {
		c.end.Close()
	}
}

// checkEnd waits for the call's end and checks when that was, and what it came to; done is without a code.
func (c *fixtureCall) checkEnd(t *testing.T, after time.Duration, code string) {
	t.Helper()
	<-c.over
	effect := EffectUnknown
	if code == "" {
		effect = EffectDone
	}
	if c.took != after || c.came.Code != code || c.came.Effect != effect {
		t.Errorf("after %s: Call() = %+v, want %s, %q after %s", c.took, c.came, effect, code, after)
	}
}

// checkNothingWaits checks that nothing is left of questions and clocks.
func (s *linkFixture) checkNothingWaits(t *testing.T) {
	t.Helper()
	s.link.requests.mu.Lock()
	defer s.link.requests.mu.Unlock()
	if open, clocks := len(s.link.requests.open), len(s.link.requests.clocks); open+clocks > 0 {
		t.Errorf("%d questions wait and %d clocks run, want none", open, clocks)
	}
}

// waitUntil waits until a moment of the call, and until all that was said before has been incoming.
func (c *fixtureCall) waitUntil(moment time.Duration) {
	synctest.Wait()
	time.Sleep(moment - time.Since(c.since))
	synctest.Wait()
}

// answerRequest has a person answer a question.
func (s *linkFixture) answerRequest(t *testing.T, id string) {
	t.Helper()
	synctest.Wait()
	if err := s.link.Answer(t.Context(), jsontext.Value(id), []byte(`{"action":"accept"}`), nil); err != nil && !s.deaf {
		t.Errorf("Answer(%s) = %v", id, err)
	}
}
