package main

//lint:file-ignore SA1019 what the SDK calls deprecated is what these tests are about

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"pgfsm/traces/ledger"
)

// Clients of the first revision have one stream on which they hear everything, also what they are asked: in requests, whatever the
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

// TestServeAsksFirstClients: a server with sessions asks in the middle of its answer, and so is a client of the first revision asked.
func TestServeAsksFirstClients(t *testing.T) {
	t.Parallel()
	const kinds = "tools, sampling, elicitation, roots"
	for _, tt := range []struct {
		name, expose, path, tool string
		can                      *sdk.ClientCapabilities
		want                     string
		asked, passed            []string
	}{
		{"one-server", kinds, "/servers/questionnaire/sse", "ask", canFirst(), "refused, bright, file:///work",
			[]string{"Which word?"}, bothWays(rootsList, sampling)},
		{"all-servers", kinds, "/sse", "questionnaire__ask", canFirst(), "refused, bright, file:///work",
			[]string{"Which word?"}, bothWays(rootsList, sampling)},
		{"more-declared-than-the-revision-has", kinds, "/sse", "questionnaire__ask", canAll(), allTold,
			[]string{"Which colour?", "Which word?"}, bothWays(rootsList, elicitation, sampling)},
		{"one-kind-exposed", "tools, sampling", "/sse", "questionnaire__ask", canFirst(), "refused, bright, refused",
			[]string{"Which word?"}, bothWays(sampling)},
		{"one-kind-declared", kinds, "/sse", "questionnaire__ask", &sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}},
			"refused, bright, refused", []string{"Which word?"}, bothWays(sampling)},
		{"not-exposed", "tools, input_required", "/sse", "questionnaire__ask", canFirst(), "refused, refused, refused", nil, nil},
		{"not-declared", kinds, "/sse", "questionnaire__ask", &sdk.ClientCapabilities{}, "refused, refused, refused", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newQuestioner(t, false)
			dir := questionnaireFolder(t, u, tt.expose)
			s := serve(t, dir)
			r := s.respondent(t, onSSE(s.base, tt.path), firstRevision, tt.can, nil)
			if got := r.calls(t, tt.tool, map[string]any{}); got != tt.want {
				t.Errorf("the answer is %s, want %s\n%s", got, tt.want, s.stderr)
			}
			if d := cmp.Diff(tt.asked, r.asked.taken()); d != "" {
				t.Errorf("what the client was asked (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]string{"tools/call " + firstRevision}, u.came.taken()); d != "" {
				t.Errorf("what came to the server (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.passed, passages(t, dir)); d != "" {
				t.Errorf("what passed, as the ledger says (-want +got):\n%s", d)
			}
			stands(t, dir, ledger.Executed, "")
			verifies(t, dir)
		})
	}
}

// newRounder starts a server of the latest revision whose tool asks one thing after the other, each in a result of its own, and notes what
// its client brings.
func newRounder(t *testing.T) *questioner {
	t.Helper()
	s := new(questioner)
	server := sdk.NewServer(&sdk.Implementation{Name: "rounder", Version: "1"}, nil)
	tool := &sdk.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}}
	server.AddTool(tool, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.came.note(r.Params.RequestState)
		given := r.Params.InputResponses
		state, word, _ := strings.Cut(r.Params.RequestState, " ")
		switch state {
		case "":
			return &sdk.CallToolResult{RequestState: "word", InputRequests: sdk.InputRequestMap{"word": whichWord}}, nil
		case "word":
			thought, _ := given["word"].(*sdk.CreateMessageWithToolsResult)
			if thought == nil {
				return nil, fmt.Errorf("the answers are %#v", given)
			}
			word = wordOf(&sdk.CreateMessageResult{Content: thought.Content[0]}, nil)
			return &sdk.CallToolResult{RequestState: "folders " + word, InputRequests: sdk.InputRequestMap{"folders": &sdk.ListRootsParams{}}}, nil
		case "folders":
			roots, _ := given["folders"].(*sdk.ListRootsResult)
			if roots == nil {
				return nil, fmt.Errorf("the answers are %#v", given)
			}
			return tells(word, foldersOf(roots, nil)), nil
		}
		return nil, fmt.Errorf("the state is %q", r.Params.RequestState)
	})
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("MCP-Protocol-Version") != withoutThem { // see newQuestioner
			http.NotFound(w, r)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// TestServeAsksFirstClientsInRounds: a server without sessions asks in its results, and a client of the first revision is asked by
// requests. Each round is a run of its own, and the server gets back the state that it gave.
func TestServeAsksFirstClientsInRounds(t *testing.T) {
	t.Parallel()
	const refused = "input_refused"
	first, second := []string{""}, []string{"", "word"}
	for _, tt := range []struct {
		name, expose, path, tool string
		can                      *sdk.ClientCapabilities
		want                     string
		asked, came, passed      []string
	}{
		{"one-server", "tools, input_required, sampling, roots", "/servers/questionnaire/sse", "ask", canFirst(), "bright, file:///work",
			[]string{"Which word?"}, []string{"", "word", "folders bright"}, bothWays(sampling, rootsList)},
		{"all-servers", "tools, input_required, sampling, roots", "/sse", "questionnaire__ask", canFirst(), "bright, file:///work",
			[]string{"Which word?"}, []string{"", "word", "folders bright"}, bothWays(sampling, rootsList)},
		{"input-required-not-exposed", "tools, sampling, roots", "/sse", "questionnaire__ask", canFirst(), refused, nil, first, nil},
		{"nothing-else-exposed", "tools, input_required", "/sse", "questionnaire__ask", canFirst(), refused, nil, first, nil},
		{"second-round-not-exposed", "tools, input_required, sampling", "/sse", "questionnaire__ask", canFirst(), refused,
			[]string{"Which word?"}, second, bothWays(sampling)},
		{"second-round-not-declared", "tools, input_required, sampling, roots", "/sse", "questionnaire__ask",
			&sdk.ClientCapabilities{Sampling: &sdk.SamplingCapabilities{}}, refused, []string{"Which word?"}, second, bothWays(sampling)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newRounder(t)
			dir := questionnaireFolder(t, u, tt.expose)
			s := serve(t, dir)
			r := s.respondent(t, onSSE(s.base, tt.path), firstRevision, tt.can, nil)
			if got := r.calls(t, tt.tool, map[string]any{}); got != tt.want {
				t.Errorf("the answer is %s, want %s\n%s", got, tt.want, s.stderr)
			}
			if d := cmp.Diff(tt.asked, r.asked.taken()); d != "" {
				t.Errorf("what the client was asked (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.came, u.came.taken()); d != "" {
				t.Errorf("the states that came to the server (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.passed, passages(t, dir)); d != "" {
				t.Errorf("what passed, as the ledger says (-want +got):\n%s", d)
			}
			var runs []ledger.Status
			for _, q := range recorded(t, dir) {
				runs = append(runs, q.Status)
			}
			if d := cmp.Diff(slices.Repeat([]ledger.Status{ledger.Executed}, len(tt.came)), runs); d != "" {
				t.Errorf("the runs (-want +got):\n%s", d)
			}
			verifies(t, dir)
		})
	}
}

// TestServeAsksFirstClientsForWhatTheyDoNotHave: a server without sessions elicits, which the first revision does not have.
func TestServeAsksFirstClientsForWhatTheyDoNotHave(t *testing.T) {
	t.Parallel()
	u := newInquirer(t, true)
	dir := inquiry(t, u, "2m")
	s := serve(t, dir)
	r := s.respondent(t, onSSE(s.base, "/sse"), firstRevision, canFirst(), nil)
	if got := r.calls(t, "questionnaire__ask", map[string]any{}); got != "input_refused" {
		t.Errorf("the answer is %s\n%s", got, s.stderr)
	}
	if d := cmp.Diff([]string(nil), passages(t, dir)); d != "" {
		t.Errorf("what passed, as the ledger says (-want +got):\n%s", d)
	}
	endedOnce(t, dir, ledger.Executed, "", "done")
}

// TestServeAsksFirstClientsThatVanish: the one connection of a client is lost while it is asked. Its session ends, and the call with it.
func TestServeAsksFirstClientsThatVanish(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		stateless    bool // the server asks in its result
		status       ledger.Status
		code, effect string
	}{
		{"connection-lost", false, ledger.Failed, "cancelled", "unknown"},
		{"connection-lost-stateless-server", true, ledger.Executed, "", "done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newInquirer(t, tt.stateless)
			dir := inquiry(t, u, "2m")
			s := serve(t, dir)
			d := s.door(t)
			h := s.holdout(t, onSSE(d.URL, "/sse"), firstRevision)
			said := h.calls(t.Context(), t, "questionnaire__ask")
			d.shut()
			comes(t, said) // that there is no connection
			if tt.code == "cancelled" {
				tt.code = cutOff(t, dir)
			}
			endedOnce(t, dir, tt.status, tt.code, tt.effect)
			s.stop(t, exitYes)
			if !tt.stateless {
				u.left(t, "call over")
			}
			u.askedOnly(t, dir)
			verifies(t, dir)
		})
	}
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
