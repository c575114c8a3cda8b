package e2e

//lint:file-ignore SA1019 what the SDK calls deprecated is what these tests are about

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/internal/test/clitest"
	"pgfsm/traces/ledger"
)

// A server asks its client something in a call, and then the gateway or the server ends. What passes between them is tested in mcp/gateway.

const (
	withSessions = "2025-11-25"
	withoutThem  = "2026-07-28"

	elicitation, sampling, rootsList = "elicitation/create", "sampling/createMessage", "roots/list"
)

// Notes are taken by handlers while a test waits for what they are part of.
type notes struct {
	mu  sync.Mutex
	all []string
}

func (n *notes) note(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, what)
}

// taken returns the notes so far.
func (n *notes) taken() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// An inquirer is a server of the SDK with a tool that asks its client for a colour before it answers.
type inquirer struct {
	*httptest.Server
	calls notes
	end   func()
}

func newInquirer(t *testing.T) *inquirer {
	t.Helper()
	question := &sdk.ElicitParams{Mode: "form", Message: "Which colour?", RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"colour": map[string]any{"type": "string"}},
	}}
	alive, end := context.WithCancel(context.Background())
	u := &inquirer{end: end}
	ask := func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		u.calls.note("tools/call")
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(alive, cancel)()
		said, err := r.Session.Elicit(ctx, question)
		if err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(said.Action, " ", said.Content["colour"])}}}, nil
	}

	server := sdk.NewServer(&sdk.Implementation{Name: "inquirer", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, ask)
	u.Server = httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() { u.dies(); u.Close() })
	return u
}

// dies ends the server with all connections, as the end of its process would.
func (u *inquirer) dies() {
	_ = u.Config.Close() // it may have died before
	u.end()
}

// inquiry is the configuration of a gateway in front of an inquirer. A call may take so long in total.
func inquiry(t *testing.T, u *inquirer, total string) string {
	t.Helper()
	return clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nservers: {questionnaire: {type: http, url: %q, timeout: %[2]s, timeout_total: %[2]s, "+
		"connect_timeout: 2m, sessions: session, expose: [tools, cancellation, input_required, elicitation]}}\n"+
		"allowlist: allowlist.json\nledger: \"sqlite:pgfsm.db\"\n", u.URL, total),
		"allowlist.json", `{"questionnaire": ["ask"]}`)
}

// A holdout is a client of the SDK whose user thinks until the test lets them answer.
type holdout struct {
	*sdk.ClientSession
	answer chan struct{} // closed when the user may answer
	said   chan string   // the text of a result, a refusal with its effect and what can be done, or an error
}

// asked connects a holdout and makes a call. It returns when the user is asked. The client takes a lost stream up again, unless it is rash.
func (s *served) asked(t *testing.T, rash bool) *holdout {
	t.Helper()
	h := &holdout{answer: make(chan struct{}), said: make(chan string, 1)}
	asked := make(chan struct{}, 100)
	client := sdk.NewClient(&sdk.Implementation{Name: "holdout", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}},
		ElicitationHandler: func(ctx context.Context, _ *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			asked <- struct{}{}
			select {
			case <-h.answer:
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"colour": "green"}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	})
	via := &sdk.StreamableClientTransport{Endpoint: s.base + "/mcp"}
	if rash {
		via.MaxRetries = -1
	}
	session, err := client.Connect(clitest.Patient(t), via, &sdk.ClientSessionOptions{ProtocolVersion: withSessions})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.stderr)
	}
	h.ClientSession = session
	t.Cleanup(func() { session.Close() }) // before the gateway ends

	go func() { h.said <- h.call(context.Background()) }()
	select {
	case <-asked:
	case <-clitest.Patient(t).Done():
		t.Fatal("nobody was asked")
	}
	return h
}

func (h *holdout) call(ctx context.Context) string {
	got, err := h.CallTool(ctx, &sdk.CallToolParams{Name: "questionnaire__ask", Arguments: map[string]any{}})
	if err != nil {
		return err.Error()
	}
	if r, ok := got.Meta["io.pgfsm/decision"].(map[string]any); ok {
		return fmt.Sprint(r["code"], " ", r["effect"], " ", r["retry"])
	}
	return got.Content[0].(*sdk.TextContent).Text
}

// endsWith waits for the end of the holdout's call, and holds it to a text.
func (h *holdout) endsWith(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-h.said:
		if !strings.Contains(got, want) {
			t.Errorf("the call comes to %s, want %s", got, want)
		}
	case <-clitest.Patient(t).Done():
		t.Fatal("the call has no end")
	}
}

// endedOnce waits until the one run of a folder has ended, and holds it to how, to what is known of its call, and to one end.
func endedOnce(t *testing.T, dir string, status ledger.Status, code, effect string) {
	t.Helper()
	stands(t, dir, status, code)
	trace := command(t.Context(), nil, "ledger", "trace", "--ledger", ledgerOf(dir), recorded(t, dir)[0].RunID)
	if got := trace.Member("/outcome/effect"); got != effect {
		t.Errorf("its effect is %q, want %q: %s", got, effect, trace.Stderr)
	}
	ends := 0
	for _, e := range events(t, dir, ledger.RunEnded) {
		if e.RunID != "" {
			ends++
		}
	}
	if ends != 1 {
		t.Errorf("the run has ended %d times", ends)
	}
	verifies(t, dir)
}

// askedOnly holds the record to one call with one question that nobody answered.
func (u *inquirer) askedOnly(t *testing.T, dir string) {
	t.Helper()
	same(t, "what reached the server", []string{"tools/call"}, u.calls.taken())
	var passed []string
	for _, e := range events(t, dir, ledger.MCPPassed) {
		direction, _ := clitest.ValueAt(e.Payload, "/direction")
		method, _ := clitest.ValueAt(e.Payload, "/method")
		passed = append(passed, string(direction)+" "+string(method))
	}
	same(t, "what passed, as the ledger says", []string{`"to_client" "` + elicitation + `"`}, passed)
}

// TestServeAsksAndIsKilled: the gateway is killed while a question is open. The run ends as indeterminate, once.
func TestServeAsksAndIsKilled(t *testing.T) {
	t.Parallel()
	u := newInquirer(t)
	dir := inquiry(t, u, "2m")
	s := serve(t, dir)
	s.asked(t, true)
	s.kill()

	for range 2 { // what the first start has ended, the second leaves as it is
		s = serve(t, dir)
		endedOnce(t, dir, ledger.Indeterminate, "indeterminate", "unknown")
		s.stop(t, exitYes)
	}
	u.askedOnly(t, dir)
}

// TestServeAsksAndIsStopped: the gateway is asked to end while a question is open. It takes the answer, and does not wait for one for ever.
func TestServeAsksAndIsStopped(t *testing.T) {
	t.Parallel()
	t.Run("never-answered", func(t *testing.T) {
		t.Parallel()
		u := newInquirer(t)
		dir := inquiry(t, u, "5s")
		s := serve(t, dir)
		h := s.asked(t, false)
		s.stop(t, exitYes)
		h.endsWith(t, "server_timeout unknown look")
		endedOnce(t, dir, ledger.Failed, "server_timeout", "unknown")
		u.askedOnly(t, dir)
	})
	t.Run("answered", func(t *testing.T) {
		t.Parallel()
		dir := inquiry(t, newInquirer(t), "2m")
		s := serve(t, dir)
		h := s.asked(t, false)
		s.interrupt(t)
		soon(t, "it takes no requests", func() bool {
			resp, err := http.Post(s.mcp, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`))
			if err != nil {
				return false
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			return err == nil && strings.Contains(string(body), "draining")
		})
		close(h.answer)
		h.endsWith(t, "accept green")
		s.ends(t, exitYes)
		endedOnce(t, dir, ledger.Executed, "", "done")
	})
}

// TestServeAsksAndTheServerDies: a server dies while its question is open. The client is told so, and its session stays open.
func TestServeAsksAndTheServerDies(t *testing.T) {
	t.Parallel()
	u := newInquirer(t)
	dir := inquiry(t, u, "2m")
	s := serve(t, dir)
	h := s.asked(t, true)
	u.dies()
	h.endsWith(t, "server_unreachable unknown look")
	endedOnce(t, dir, ledger.Failed, "server_unreachable", "unknown")
	if err := h.Ping(clitest.Patient(t), nil); err != nil {
		t.Errorf("the client's session: %v", err)
	}
	s.stop(t, exitYes)
}
