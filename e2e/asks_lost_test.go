package e2e

//lint:file-ignore SA1019 what the SDK calls deprecated is what these tests are about

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/internal/test/cli"
	"pgfsm/traces/ledger"
)

// What docs/operate/failures.md says of questions that nobody answers, under "When something is down", is shown here: a server has asked
// its client something in a call, and then one of the three goes away.

// An inquirer is a server of the SDK that asks its client something in every call, and notes what it receives.
type inquirer struct {
	*httptest.Server
	mcp      *sdk.Server
	came     notes // the calls
	received notes // what its questions came to
	end      func()
}

// newInquirer starts one. It asks in its result if it is stateless, and by a request of its own otherwise.
func newInquirer(t *testing.T, stateless bool) *inquirer {
	t.Helper()
	alive, end := context.WithCancel(context.Background())
	u := &inquirer{end: end, mcp: sdk.NewServer(&sdk.Implementation{Name: "inquirer", Version: "1"}, nil)}
	tool := &sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}
	u.mcp.AddTool(tool, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		u.came.note("tools/call")
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(alive, cancel)()
		if !stateless {
			said, err := r.Session.Elicit(ctx, whichColour)
			u.received.note(outcomeOf(ctx, said, err))
			return tells(colourOf(said, err)), nil
		}
		if r.Params.InputResponses == nil {
			return &sdk.CallToolResult{RequestState: "one", InputRequests: sdk.InputRequestMap{"colour": whichColour}}, nil
		}
		said, _ := r.Params.InputResponses["colour"].(*sdk.ElicitResult)
		u.received.note(outcomeOf(ctx, said, nil))
		return tells(colourOf(said, nil)), nil
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return u.mcp }, &sdk.StreamableHTTPOptions{Stateless: stateless})
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stateless && r.Header.Get("MCP-Protocol-Version") != withoutThem { // see newSurveyor
			http.NotFound(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { u.dies(); u.Close() })
	return u
}

// dies ends the server with all connections, as the end of its process would.
func (u *inquirer) dies() {
	_ = u.Config.Close() // it may have died before
	u.end()
}

// outcomeOf is what a question came to: an answer, or that nobody waits for one any more.
func outcomeOf(ctx context.Context, said *sdk.ElicitResult, err error) string {
	switch {
	case err == nil:
		return colourOf(said, nil)
	case errors.Is(err, context.Canceled) || ctx.Err() != nil:
		return "call over"
	}
	return err.Error()
}

// asking is how many sessions the server has in which it may ask something.
func (u *inquirer) asking() (n int) {
	for s := range u.mcp.Sessions() {
		if p := s.InitializeParams(); p != nil && p.Capabilities != nil && p.Capabilities.Elicitation != nil {
			n++
		}
	}
	return n
}

// left waits until a server has received what its question came to, and has nothing left of those who were asked.
func (u *inquirer) left(t *testing.T, want ...string) {
	t.Helper()
	soon(t, "the server has received what its question came to", func() bool { return len(u.received.taken()) >= len(want) })
	same(t, "what its questions came to", want, u.received.taken())
	soon(t, "the session of who was asked has ended", func() bool { return u.asking() == 0 })
}

// inquiry is the configuration of a gateway in front of an inquirer, and says how long a call may take in total.
func inquiry(t *testing.T, u *inquirer, total string) string {
	t.Helper()
	return cli.Folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nservers: {questionnaire: {type: http, url: %q, timeout: %[2]s, timeout_total: %[2]s, connect_timeout: 2m, sessions: session, expose: [%s]}}\n"+
		"allowlist: allowlist.json\nledger: \"sqlite:pgfsm.db\"\n", u.URL, total, "tools, cancellation, input_required, elicitation"),
		"allowlist.json", `{"questionnaire": ["ask"]}`)
}

// A holdout is a client of the SDK whose user thinks until the test lets them answer.
type holdout struct {
	*sdk.ClientSession
	asked  chan struct{} // has a token for each question
	answer chan struct{} // closed: they answer
	lets   func()        // lets them
}

// holdout connects one.
func (s *served) holdout(t *testing.T, via sdk.Transport, revision string) *holdout {
	t.Helper()
	h := &holdout{asked: make(chan struct{}, 100), answer: make(chan struct{})}
	h.lets = sync.OnceFunc(func() { close(h.answer) })
	thinks := func(ctx context.Context, _ *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		h.asked <- struct{}{}
		select {
		case <-h.answer:
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"colour": "green"}}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "holdout", Version: "1"}, &sdk.ClientOptions{
		Capabilities:       &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}},
		ElicitationHandler: thinks,
	})
	session, err := client.Connect(cli.Patient(t), via, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.stderr)
	}
	t.Cleanup(func() { h.lets(); session.Close() }) // before the gateway ends
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("the client and the gateway have come to %s, want %s", got, revision)
	}
	h.ClientSession = session
	return h
}

// calls makes a call and returns when its user is asked something.
func (h *holdout) calls(ctx context.Context, t *testing.T, tool string) <-chan string {
	t.Helper()
	said := h.begins(ctx, tool)
	select {
	case <-h.asked:
	case got := <-said:
		t.Fatalf("nobody was asked: %s", got)
	case <-cli.Patient(t).Done():
		t.Fatal("nobody was asked")
	}
	return said
}

// begins makes a call. What that comes to is told later: a text, a refusal with its effect and what can be done, or an error.
func (h *holdout) begins(ctx context.Context, tool string) <-chan string {
	said := make(chan string, 1)
	go func() {
		got, err := h.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: map[string]any{}})
		if err != nil {
			said <- err.Error()
			return
		}
		if r, ok := got.Meta["io.pgfsm/decision"].(map[string]any); ok {
			said <- fmt.Sprint(r["code"], " ", r["effect"], " ", r["retry"])
			return
		}
		said <- got.Content[0].(*sdk.TextContent).Text
	}()
	return said
}

// comes waits for what a call comes to.
func comes(t *testing.T, said <-chan string) string {
	t.Helper()
	select {
	case got := <-said:
		return got
	case <-cli.Patient(t).Done():
		t.Fatal("the call never came to anything")
		return ""
	}
}

// endedOnce waits until the one run of a folder has ended, and holds it to how, to what is known of its call, and to that it ended once.
func endedOnce(t *testing.T, dir string, status ledger.Status, code, effect string) {
	t.Helper()
	stands(t, dir, status, code)
	at := "sqlite:" + filepath.Join(dir, "pgfsm.db")
	trace := command(t.Context(), nil, "ledger", "trace", "--ledger", at, recorded(t, dir)[0].RunID)
	if got := trace.Member("/outcome/effect"); got != effect {
		t.Errorf("its effect is %q, want %q: %s", got, effect, trace.Stderr)
	}
	ends := 0
	inLedger(t, dir, func(r ledger.Reader) error {
		for e, err := range ledger.Events(r, 0) {
			if err != nil {
				return err
			}
			if e.Type == ledger.RunEnded {
				ends++
			}
		}
		return nil
	})
	if ends != 1 {
		t.Errorf("the run has ended %d times", ends)
	}
	verifies(t, dir)
}

// askedOnly holds what came to a server and what passed the gateway to one call with one question that nobody answered.
func (u *inquirer) askedOnly(t *testing.T, dir string) {
	t.Helper()
	same(t, "what came to the server", []string{"tools/call"}, u.came.taken())
	same(t, "what passed, as the ledger says", []string{"to_client " + elicitation}, passages(t, dir))
}

// A door is where clients go to a gateway that may be another process the next time.
type door struct {
	*httptest.Server
	to   atomic.Pointer[url.URL]
	wait sync.RWMutex // locked while who comes has to wait
}

func (s *served) door(t *testing.T) *door {
	t.Helper()
	d := new(door)
	d.leads(t, s)
	through := &httputil.ReverseProxy{
		FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(d.to.Load()) },
		ErrorLog: log.New(io.Discard, "", 0), // what breaks off here is to break off
	}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.passes()
		through.ServeHTTP(w, r)
	}))
	t.Cleanup(d.shut)
	return d
}

// passes waits until somebody may come in. Who has does not keep the door from being locked.
func (d *door) passes() {
	d.wait.RLock()
	defer d.wait.RUnlock()
}

// leads has clients come to a gateway from now on.
func (d *door) leads(t *testing.T, s *served) {
	t.Helper()
	to, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	d.to.Store(to)
}

// shut cuts all connections, and takes no others.
func (d *door) shut() {
	d.CloseClientConnections()
	d.Close()
}

func (d *door) over(path string) sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: d.URL + path}
}

// TestServeAsksWhoVanishes: a client with a session goes away while it is asked.
func TestServeAsksWhoVanishes(t *testing.T) {
	t.Parallel()
	removes := func(s *served, d *door, h *holdout, _ func()) {
		(&agent{s: s, url: d.URL + "/mcp", session: h.ID()}).remove()
	}
	for _, tt := range []struct {
		name, runs   string // runs: the time that a call has
		goes         func(s *served, d *door, h *holdout, cancel func())
		status       ledger.Status
		code, effect string
		says         string   // what the call comes to; empty: it is not received
		received     []string // by the server, if it is told
	}{
		{"session-deleted", "2m", removes, ledger.Failed, "cancelled", "unknown", " unknown look", []string{"call over"}},
		{"connection-lost", "5s", func(_ *served, d *door, h *holdout, _ func()) { d.shut() },
			ledger.Failed, "server_timeout", "unknown", "", []string{"call over"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newInquirer(t, false)
			dir := inquiry(t, u, tt.runs)
			s := serve(t, dir)
			d := s.door(t)
			h := s.holdout(t, d.over("/mcp"), withSessions)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			said := h.calls(ctx, t, "questionnaire__ask")
			tt.goes(s, d, h, cancel)
			if tt.code == "cancelled" {
				tt.code = cutOff(t, dir)
			}
			if tt.says != "" {
				if got := comes(t, said); !strings.HasSuffix(got, tt.says) {
					t.Errorf("the call comes to %s, want %s\n%s", got, tt.says, s.stderr)
				}
			}
			endedOnce(t, dir, tt.status, tt.code, tt.effect)
			d.shut()
			s.stop(t, exitYes)
			if tt.received != nil {
				u.left(t, tt.received...)
			}
			u.askedOnly(t, dir)
			verifies(t, dir)
		})
	}
	t.Run("connection-lost-and-back", func(t *testing.T) {
		t.Parallel()
		u := newInquirer(t, false)
		dir := inquiry(t, u, "2m")
		s := serve(t, dir)
		d := s.door(t)
		h := s.holdout(t, d.over("/mcp"), withSessions)
		said := h.calls(t.Context(), t, "questionnaire__ask")
		d.CloseClientConnections()
		h.lets()
		if got := comes(t, said); got != "accept green" {
			t.Errorf("the answer is %s\n%s", got, s.stderr)
		}
		endedOnce(t, dir, ledger.Executed, "", "done")
	})
}

// TestServeAsksFirstClientsThatVanish: the one connection of a client is lost while it is asked. Its session ends, and the call with it.
func TestServeAsksFirstClientsThatVanish(t *testing.T) {
	t.Parallel()
	t.Run("connection-lost", func(t *testing.T) {
		t.Parallel()
		u := newInquirer(t, false)
		dir := inquiry(t, u, "2m")
		s := serve(t, dir)
		d := s.door(t)
		h := s.holdout(t, onSSE(d.URL, "/sse"), firstRevision)
		said := h.calls(t.Context(), t, "questionnaire__ask")
		d.shut()
		comes(t, said) // that there is no connection
		endedOnce(t, dir, ledger.Failed, cutOff(t, dir), "unknown")
		s.stop(t, exitYes)
		u.left(t, "call over")
		u.askedOnly(t, dir)
	})
}

// cutOff waits until the one run of a folder has ended whose client has ended its session, and returns its code: whether the call ends first
// or the link that it is made over is left to chance.
func cutOff(t *testing.T, dir string) string {
	t.Helper()
	soon(t, "the run has ended", func() bool { return recorded(t, dir)[0].Ended != "" })
	if code := recorded(t, dir)[0].Code; code == "closed" {
		return code
	}
	return "cancelled"
}
