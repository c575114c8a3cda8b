package e2e

//lint:file-ignore SA1019 what the SDK calls deprecated is what these tests are about

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/internal/test/cli"
	"pgfsm/traces/ledger"
)

// Servers ask clients in the way of their revision: here both are the SDK's.

const (
	withSessions = "2025-11-25"
	withoutThem  = "2026-07-28"
)

// A questioner is a server of the SDK that wants to know three things of its client before it answers.
type questioner struct {
	*httptest.Server
	came notes // the requests that may ask, each with the revision that it came in
}

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

// taken are the notes so far.
func (n *notes) taken() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// The questions of a questioner.
var (
	whichColour = &sdk.ElicitParams{Mode: "form", Message: "Which colour?", RequestedSchema: map[string]any{
		"type": "object", "properties": map[string]any{"colour": map[string]any{"type": "string"}}, "required": []string{"colour"},
	}}
	whichWord = &sdk.CreateMessageParams{MaxTokens: 10, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "Which word?"}}}}
)

// newQuestioner starts one. It asks in its results if it is stateless, and by requests of its own otherwise.
func newQuestioner(t *testing.T, stateless bool) *questioner {
	t.Helper()
	s := new(questioner)
	server := sdk.NewServer(&sdk.Implementation{Name: "questioner", Version: "1"}, nil)
	server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if method == "tools/call" {
				s.came.note(method + " " + r.GetSession().(*sdk.ServerSession).InitializeParams().ProtocolVersion)
			}
			return next(ctx, method, r)
		}
	})
	ask := asksInTheMiddle
	if stateless {
		ask = asksInItsResult
	}
	server.AddTool(&sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}, ask)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: stateless})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The SDK has no server of the latest revision alone, and a gateway whose client has a session asks for an older one first.
		if stateless && r.Header.Get("MCP-Protocol-Version") != withoutThem {
			http.NotFound(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// asksInTheMiddle is a tool whose answer holds what became of three requests to the client.
func asksInTheMiddle(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	roots, err := r.Session.ListRoots(ctx, nil)
	return tells(colourOf(r.Session.Elicit(ctx, whichColour)), wordOf(r.Session.CreateMessage(ctx, whichWord)), foldersOf(roots, err)), nil
}

// asksInItsResult is a tool that answers only who answers it.
func asksInItsResult(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	given := r.Params.InputResponses
	if given == nil {
		return &sdk.CallToolResult{RequestState: "three", InputRequests: sdk.InputRequestMap{
			"colour": whichColour, "word": whichWord, "folders": &sdk.ListRootsParams{},
		}}, nil
	}
	if r.Params.RequestState != "three" {
		return nil, fmt.Errorf("the state is %q", r.Params.RequestState)
	}
	said, _ := given["colour"].(*sdk.ElicitResult)
	thought, _ := given["word"].(*sdk.CreateMessageWithToolsResult)
	roots, _ := given["folders"].(*sdk.ListRootsResult)
	if said == nil || thought == nil || roots == nil {
		return nil, fmt.Errorf("the answers are %#v", given)
	}
	return tells(colourOf(said, nil), wordOf(&sdk.CreateMessageResult{Content: thought.Content[0]}, nil), foldersOf(roots, nil)), nil
}

func tells(said ...string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Join(said, ", ")}}}
}

func colourOf(r *sdk.ElicitResult, err error) string {
	if err != nil {
		return "refused"
	}
	return fmt.Sprint(r.Action, " ", r.Content["colour"])
}

func wordOf(r *sdk.CreateMessageResult, err error) string {
	if err != nil {
		return "refused"
	}
	return r.Content.(*sdk.TextContent).Text
}

func foldersOf(r *sdk.ListRootsResult, err error) string {
	if err != nil || len(r.Roots) != 1 {
		return "refused"
	}
	return r.Roots[0].URI
}

// allTold is what the tool answers who answers everything.
const allTold = "accept green, bright, file:///work"

// A respondent is a client of the SDK that answers for its user and its model, and notes what it was asked.
type respondent struct {
	*sdk.ClientSession
	asked notes
}

// respondent connects one. What it does when it is shown a URL may be nil.
func (s *served) respondent(t *testing.T, via sdk.Transport, revision string, can *sdk.ClientCapabilities, opens func(url string)) *respondent {
	t.Helper()
	r, o := new(respondent), &sdk.ClientOptions{Capabilities: can}
	if can.Elicitation != nil {
		o.ElicitationHandler = func(_ context.Context, q *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			r.asked.note(q.Params.Message)
			if q.Params.Mode == "url" {
				opens(q.Params.URL)
				return &sdk.ElicitResult{Action: "accept"}, nil
			}
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"colour": "green"}}, nil
		}
	}
	if can.Sampling != nil {
		o.CreateMessageHandler = func(_ context.Context, q *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
			r.asked.note(q.Params.Messages[0].Content.(*sdk.TextContent).Text)
			return &sdk.CreateMessageResult{Model: "m", Role: "assistant", Content: &sdk.TextContent{Text: "bright"}}, nil
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "respondent", Version: "1"}, o)
	client.AddRoots(&sdk.Root{URI: "file:///work"})
	session, err := client.Connect(cli.Patient(t), via, &sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatalf("%v\n%s", err, s.stderr)
	}
	t.Cleanup(func() { session.Close() }) // before the gateway ends
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("the client and the gateway have come to %s, want %s", got, revision)
	}
	r.ClientSession = session
	return r
}

// Clients of the first revision have one stream on which they receive everything, also what they are asked: in requests, whatever the
// server's way is. They can be asked for words of their model and for folders; elicitation came with a later revision.
const firstRevision = "2024-11-05"

// onSSE is a client's transport of the first revision to an endpoint of the gateway.
func onSSE(base, path string) sdk.Transport {
	return &sdk.SSEClientTransport{Endpoint: base + path}
}

// canFirst is what a client of the first revision can declare.
func canFirst() *sdk.ClientCapabilities {
	return &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{}, Sampling: &sdk.SamplingCapabilities{}}
}

// canAll is what a client declares that can be asked everything.
func canAll() *sdk.ClientCapabilities {
	return &sdk.ClientCapabilities{
		RootsV2: &sdk.RootCapabilities{}, Sampling: &sdk.SamplingCapabilities{},
		Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}},
	}
}

// calls is the text of a tool's answer, or the code of a refusal.
func (r *respondent) calls(t *testing.T, tool string, args map[string]any) string {
	t.Helper()
	got, err := r.CallTool(cli.Patient(t), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return err.Error()
	}
	if refused, ok := got.Meta["io.pgfsm/decision"].(map[string]any); ok {
		return fmt.Sprint(refused["code"])
	}
	return got.Content[0].(*sdk.TextContent).Text
}

// questionnaireFolder is the configuration of a gateway in front of a questioner.
func questionnaireFolder(t *testing.T, s *questioner, expose string) string {
	t.Helper()
	return cli.Folder(t, "pgfsm.yaml", fmt.Sprintf("version: 1\nservers: {questionnaire: {type: http, url: %q, timeout: 50s, connect_timeout: 50s, sessions: session, expose: [%s]}}\n"+
		"allowlist: allowlist.json\nledger: \"sqlite:pgfsm.db\"\n", s.URL, expose), "allowlist.json", `{"questionnaire": ["ask"]}`)
}

// over is a client's transport to an endpoint of the gateway.
func (s *served) over(path string) sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: s.base + path}
}

// onStdio is a gateway of its own behind standard input and output.
func onStdio(t *testing.T, dir string) sdk.Transport {
	t.Helper()
	config := filepath.Join(dir, "pgfsm.yaml")
	cmd, _, _ := child(context.Background(), "pgfsm", nil, "serve", "--stdio", "-c", config)
	return &sdk.CommandTransport{Command: &exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: dir}}
}

// passages are the messages besides calls that passed the gateway, in the ledger of a folder.
func passages(t *testing.T, dir string) (all []string) {
	t.Helper()
	inLedger(t, dir, func(r ledger.Reader) error {
		all = nil
		for e, err := range ledger.Events(r, 0) {
			if err != nil {
				return err
			}
			if e.Type != ledger.MCPPassed {
				continue
			}
			direction, _ := cli.At(e.Payload, "/direction")
			method, _ := cli.At(e.Payload, "/method")
			all = append(all, strings.Trim(string(direction), `"`)+" "+strings.Trim(string(method), `"`))
		}
		return nil
	})
	return all
}

// bothWays are the events of questions that a client was asked one after the other, each answered before the next.
func bothWays(methods ...string) (events []string) {
	for _, m := range methods {
		events = append(events, "to_client "+m, "to_server "+m)
	}
	return events
}

const elicitation, sampling, rootsList = "elicitation/create", "sampling/createMessage", "roots/list"

// TestServeAsks: a server with sessions asks in the middle of its answer, and the client is asked by requests. It stays one run and one call. A
// stateless client is not asked.
func TestServeAsks(t *testing.T) {
	t.Parallel()
	const kinds = "tools, sampling, elicitation, roots"
	for _, tt := range []struct {
		name, expose, path, tool, revision string // no path: over standard input and output
		can                                *sdk.ClientCapabilities
		want                               string
		asked, passed                      []string
	}{
		{"one-server", kinds, "/servers/questionnaire/mcp", "ask", withSessions, canAll(), allTold,
			[]string{"Which colour?", "Which word?"}, bothWays(rootsList, elicitation, sampling)},
		{"stdio", kinds, "", "questionnaire__ask", withSessions, canAll(), allTold,
			[]string{"Which colour?", "Which word?"}, bothWays(rootsList, elicitation, sampling)},
		{"one-kind-exposed", "tools, sampling", "/mcp", "questionnaire__ask", withSessions, canAll(), "refused, bright, refused",
			[]string{"Which word?"}, bothWays(sampling)},
		{"stateless-client", kinds, "/mcp", "questionnaire__ask", withoutThem, canAll(), "refused, refused, refused", nil, nil},
		{"first-revision", kinds, "/sse", "questionnaire__ask", firstRevision, canFirst(), "refused, bright, file:///work",
			[]string{"Which word?"}, bothWays(rootsList, sampling)},
		{"first-revision-not-exposed", "tools, input_required", "/sse", "questionnaire__ask", firstRevision, canFirst(), "refused, refused, refused", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newQuestioner(t, false)
			dir := questionnaireFolder(t, u, tt.expose)
			s, came := new(served), withSessions
			var via sdk.Transport
			switch {
			case tt.path == "":
				via = onStdio(t, dir)
			case strings.HasSuffix(tt.path, "/sse"):
				s, came = serve(t, dir), firstRevision
				via = onSSE(s.base, tt.path)
			default:
				s = serve(t, dir)
				via = s.over(tt.path)
			}
			r := s.respondent(t, via, tt.revision, tt.can, nil)
			if got := r.calls(t, tt.tool, map[string]any{}); got != tt.want {
				t.Errorf("the answer is %s, want %s\n%s", got, tt.want, s.stderr)
			}
			same(t, "what the client was asked", tt.asked, r.asked.taken())
			same(t, "what came to the server", []string{"tools/call " + came}, u.came.taken())
			same(t, "what passed, as the ledger says", tt.passed, passages(t, dir))
			stands(t, dir, ledger.Executed, "")
			verifies(t, dir)
		})
	}
}

// same holds a list to what is wanted.
func same(t *testing.T, what string, want, got []string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// TestServeAsksInResults: a stateless server asks in its result. A stateless client repeats its call with the answers, which is a run of its own;
// a client with a session does not get the result.
func TestServeAsksInResults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, expose, revision, want string
		asked                        []string
		runs                         int
	}{
		{"stateless-client", "tools, input_required, sampling, elicitation, roots", withoutThem, allTold, []string{"Which colour?", "Which word?"}, 2},
		{"input-required-not-exposed", "tools, sampling, elicitation, roots", withoutThem, "input_refused", nil, 1},
		{"client-with-a-session", "tools, input_required, sampling, elicitation, roots", withSessions, "input_refused", nil, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newQuestioner(t, true)
			dir := questionnaireFolder(t, u, tt.expose)
			s := serve(t, dir)
			r := s.respondent(t, s.over("/mcp"), tt.revision, canAll(), nil)
			if got := r.calls(t, "questionnaire__ask", map[string]any{}); got != tt.want {
				t.Errorf("the answer is %s, want %s\n%s", got, tt.want, s.stderr)
			}
			asked := r.asked.taken()
			slices.Sort(asked)
			same(t, "what the client was asked, sorted", tt.asked, asked)
			same(t, "what came to the server", slices.Repeat([]string{"tools/call " + withoutThem}, tt.runs), u.came.taken())
			runs := recorded(t, dir)
			if len(runs) != tt.runs {
				t.Fatalf("%d runs, want %d", len(runs), tt.runs)
			}
			for i, q := range runs {
				trace := command(t.Context(), nil, "ledger", "trace", "-c", s.config, q.RunID)
				if brings := strings.Contains(trace.Stdout, "inputResponses"); q.Status != ledger.Executed || brings != (i == 1) {
					t.Errorf("run %d is %s, and brings answers: %t", i, q.Status, brings)
				}
			}
			verifies(t, dir)
		})
	}
}

// A bearer is an agent that brings its token.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// TestServeShowsStatelessClientsWhereToDecide: a client without a session is shown the URL in a result, once for each call that is
// held, and its repetition is answered as any other: what its user did with the URL decides nothing.
func TestServeShowsStatelessClientsWhereToDecide(t *testing.T) {
	t.Parallel()
	const (
		decide = "serve: {decide_url: \"https://approvals.example.com/runs/{run_id}\"}\n"
		hold   = "approvals: {hold: 1m}\n"
	)
	shows := &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}}
	for _, tt := range []struct {
		name, more string
		verb       string // what people do about it when they are shown the URL
		want       string // what the call is answered
		shown      int
		later      string // what the same call is answered once people have agreed
	}{
		{"shown", decide, "", "approval_required", 1, "hi"},
		{"approved-while-it-is-shown", decide + hold, "approve", "hi", 1, ""},
		{"denied-while-it-is-shown", decide + hold, "deny", "approval_denied", 1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, holdLook, tt.more)
			opens := func(url string) {
				run := recorded(t, o.dir)[0].RunID
				if want := "https://approvals.example.com/runs/" + run; url != want {
					t.Errorf("shown is %s, want %s", url, want)
				}
				if tt.verb != "" {
					o.decide(t, tt.verb, run, o.bob)
				}
			}
			via := &sdk.StreamableClientTransport{Endpoint: o.mcp, HTTPClient: &http.Client{Transport: bearer{o.ci}}}
			r := o.respondent(t, via, withoutThem, shows, opens)
			args := map[string]any{"n": 1}
			if got := r.calls(t, "echo__look", args); got != tt.want {
				t.Errorf("the answer is %s, want %s\n%s", got, tt.want, o.stderr)
			}
			if tt.later != "" {
				if got := r.calls(t, "echo__look", args); got != tt.want {
					t.Errorf("the second answer is %s, want %s\n%s", got, tt.want, o.stderr)
				}
				o.u.Reached(t, 0)
				run := recorded(t, o.dir)[0].RunID
				o.decide(t, "approve", run, o.bob)
				o.ended(t, run, ledger.Executed, "")
				if got := r.calls(t, "echo__look", args); got != tt.later {
					t.Errorf("the outcome is %s, want %s\n%s", got, tt.later, o.stderr)
				}
			}
			if shown := r.asked.taken(); len(shown) != tt.shown {
				t.Errorf("it was shown %q, want %d", shown, tt.shown)
			}
			if n := len(recorded(t, o.dir)); n != 1 {
				t.Errorf("%d runs, want one", n)
			}
			verifies(t, o.dir)
		})
	}
}
