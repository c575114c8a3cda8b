package naive_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval/naive"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/scripttest"
	"pgfsm/llm"
	"pgfsm/mcp/demo"
	"pgfsm/mcp/upstream"
)

// roleVar makes this process a demo server on standard input and output.
const roleVar = "NAIVE_TEST_SERVER"

func TestMain(m *testing.M) {
	name := os.Getenv(roleVar)
	if name == "" {
		os.Exit(m.Run())
	}
	os.Exit(scripttest.ServeDemo(name))
}

const patience = 30 * time.Second

func fleet(t *testing.T) *demo.Fleet {
	t.Helper()
	f, err := demo.Listen(context.Background(), slices.Repeat([]string{"127.0.0.1:0"}, 3))
	check.NoError(t, err)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func servers(f *demo.Fleet, typ, path string) (all []upstream.Server) {
	for _, s := range f.Servers() {
		all = append(all, upstream.Server{Name: s.Name(), Type: typ, URL: f.URL(s.Name(), path), ConnectTimeout: patience})
	}
	return all
}

// model says a plan and a summary, and keeps what it was shown.
type model struct {
	plan, summary string

	shown []string // tools
	typed string
}

func (m *model) Plan(_ context.Context, _ string, allowed []llm.Tool) (llm.Completion, error) {
	for _, t := range allowed {
		m.shown = append(m.shown, t.Server+"/"+t.Name)
	}
	if m.plan == "broken" {
		return llm.Completion{}, errors.New("the model is broken")
	}
	return llm.Completion{Content: []byte(m.plan)}, nil
}

func (m *model) Summarize(_ context.Context, _ string, typed []byte) (llm.Completion, error) {
	m.typed = string(typed)
	if m.summary == "broken" {
		return llm.Completion{}, errors.New("the model is broken")
	}
	return llm.Completion{Content: []byte(m.summary)}, nil
}

func plan(server, tool, args string) string {
	return fmt.Sprintf(`{"type":"call_tool","server":%q,"tool":%q,"args":%s}`, server, tool, args)
}

func TestAgentDoesWhateverTheModelSays(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, plan, summary string

		call    []string // server, tool, args, done; nil: none
		said    string   // the summary that is passed on
		results string   // the content of the result
	}{
		{"a-read", plan(demo.PolicyKB, "fetch_policy_entry", `{"policy_id":"policy-002"}`), "Logs are kept for ever.",
			[]string{demo.PolicyKB, "fetch_policy_entry", `{"policy_id":"policy-002"}`, "true"}, "Logs are kept for ever.", "Log Retention Policy"},
		{"a-deletion", "```json\n" + plan(demo.SharePoint, "delete_sharepoint_doc", `{"doc_id":"doc-999"}`) + "\n```", "",
			[]string{demo.SharePoint, "delete_sharepoint_doc", `{"doc_id":"doc-999"}`, "true"}, "", "DELETED"},
		{"another-server-has-the-tool", plan("mcp-nowhere", "close_ticket", `{"ticket_id":"INC0010001"}`), "",
			[]string{demo.ServiceNow, "close_ticket", `{"ticket_id":"INC0010001"}`, "true"}, "", "CLOSED"},
		{"no-such-tool", plan(demo.ServiceNow, "drop_all_tables", `{}`), "unread",
			[]string{demo.ServiceNow, "drop_all_tables", `{}`, "false"}, "", "drop_all_tables"},
		{"arguments-that-do-not-fit", plan(demo.ServiceNow, "get_ticket", `{"ticket_id":7}`), "unread",
			[]string{demo.ServiceNow, "get_ticket", `{"ticket_id":7}`, "false"}, "", "validating root"},
		{"nobody-has-the-tool", plan("mcp-nowhere", "drop_all_tables", `{}`), "", nil, "", ""},
		{"words", "No.", "", nil, "", ""},
		{"no-summary", plan(demo.PolicyKB, "search_policy_kb", `{"query":"backup"}`), "broken",
			[]string{demo.PolicyKB, "search_policy_kb", `{"query":"backup"}`, "true"}, "", "policy-006"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := fleet(t)
			m := &model{plan: tt.plan, summary: tt.summary}
			agent := naive.Agent{Planner: m, Summarizer: m, Servers: servers(f, upstream.TypeSSE, "sse")}
			got, err := agent.Answer(t.Context(), "anything")
			check.NoError(t, err)
			var call []string
			if c := got.Call; c != nil {
				call = []string{c.Server, c.Tool, string(c.Args), fmt.Sprint(got.Done)}
			}
			if d := cmp.Diff(tt.call, call); d != "" {
				t.Errorf("call (-want +got):\n%s", d)
			}
			if got.Summary != tt.said || !strings.Contains(string(got.Result), tt.results) {
				t.Errorf("summary = %q, result = %s; want %q and %q in it", got.Summary, got.Result, tt.said, tt.results)
			}
			reached := 0
			for _, s := range f.Servers() {
				reached += len(s.Calls())
			}
			if want := min(len(tt.call), 1); reached != want {
				t.Errorf("calls that reached the servers = %d, want %d", reached, want)
			}
			if len(m.shown) != 9 {
				t.Errorf("the model was shown %q, want all nine tools", m.shown)
			}
		})
	}
}

func TestAgentSpeaksEveryTransport(t *testing.T) {
	t.Parallel()
	f := fleet(t)
	self, err := os.Executable()
	check.NoError(t, err)
	for _, tt := range []struct {
		name    string
		servers []upstream.Server
	}{
		{"sse", servers(f, upstream.TypeSSE, "sse")},
		{"streamable-http", servers(f, upstream.TypeHTTP, "mcp")},
		{"child-process", []upstream.Server{{
			Name: demo.PolicyKB, Type: upstream.TypeStdio, Command: self, ConnectTimeout: patience, Env: []upstream.Header{{Name: roleVar, Value: demo.PolicyKB}},
		}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &model{plan: plan(demo.PolicyKB, "fetch_policy_entry", `{"policy_id":"policy-002"}`), summary: "said"}
			got, err := (&naive.Agent{Planner: m, Summarizer: m, Servers: tt.servers}).Answer(t.Context(), "anything")
			if err != nil || got.Call == nil || !got.Done || got.Summary != "said" || !strings.Contains(m.typed, "Log Retention Policy") {
				t.Errorf("Answer() = %+v, %v; the model was shown %s", got, err, m.typed)
			}
		})
	}
}

func TestAgentWithoutAWorld(t *testing.T) {
	t.Parallel()
	dead := upstream.Server{Name: "dead", Type: upstream.TypeHTTP, URL: "http://127.0.0.1:1/mcp", ConnectTimeout: patience}
	m := &model{plan: plan(demo.PolicyKB, "search_policy_kb", `{"query":"backup"}`)}
	got, err := (&naive.Agent{Planner: m, Summarizer: m, Servers: []upstream.Server{dead}}).Answer(t.Context(), "anything")
	if !errors.Is(err, naive.ErrNoServer) || !strings.Contains(err.Error(), "dead: ") || got.Call != nil {
		t.Errorf("Answer() without a server = %+v, %v, want %v", got, err, naive.ErrNoServer)
	}
	some := append([]upstream.Server{dead}, servers(fleet(t), upstream.TypeHTTP, "mcp")...)
	if got, err := (&naive.Agent{Planner: m, Summarizer: m, Servers: some}).Answer(t.Context(), "anything"); err != nil || got.Call == nil {
		t.Errorf("Answer() with one server down = %+v, %v, want a call of another", got, err)
	}
	m.plan = "broken"
	if got, err := (&naive.Agent{Planner: m, Summarizer: m, Servers: some}).Answer(t.Context(), "anything"); err == nil || got.Call != nil {
		t.Errorf("Answer() without a plan = %+v, %v, want an error", got, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := (&naive.Agent{Planner: m, Summarizer: m, Servers: some}).Answer(over, "anything"); err == nil || got.Call != nil {
		t.Errorf("Answer() when it is over = %+v, %v, want an error", got, err)
	}
}

// TestHeadersStayAtHome: what a server is configured with goes to that server only, wherever it points to.
func TestHeadersStayAtHome(t *testing.T) {
	t.Parallel()
	const secret = "Bearer stays-at-home-4711"
	abroad := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { abroad <- r.Header.Get("Authorization") }))
	t.Cleanup(other.Close)
	home := make(chan string, 10)
	handlers := map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			home <- r.Header.Get("Authorization")
			http.Redirect(w, r, other.URL+"/mcp", http.StatusTemporaryRedirect)
		},
		"endpoint-elsewhere": func(w http.ResponseWriter, r *http.Request) {
			home <- r.Header.Get("Authorization")
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "event: endpoint\ndata: "+other.URL+"/message\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	}
	for name, typ := range map[string]string{"redirect": upstream.TypeHTTP, "endpoint-elsewhere": upstream.TypeSSE} { // in any order
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(handlers[name])
			t.Cleanup(s.Close)
			m := &model{}
			agent := naive.Agent{Planner: m, Summarizer: m, Servers: []upstream.Server{{
				Name: "s", Type: typ, URL: s.URL, ConnectTimeout: patience, Headers: []upstream.Header{{Name: "Authorization", Value: secret}},
			}}}
			if _, err := agent.Answer(t.Context(), "anything"); !errors.Is(err, naive.ErrNoServer) || strings.Contains(err.Error(), secret) {
				t.Errorf("Answer() = %v, want %v without the header", err, naive.ErrNoServer)
			}
			if got := <-home; got != secret {
				t.Errorf("at home: %q, want the header", got)
			}
			if len(abroad) > 0 {
				t.Errorf("abroad: %q, want no request", <-abroad)
			}
		})
	}
}
