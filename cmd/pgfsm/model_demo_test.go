package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/mcp/demo"
)

// theKey is the key of the endpoint in these tests. It must be seen on the wire and nowhere else.
const theKey = "sk-pgfsm-test-4711-abcdef"

// demoQuestion is one of the four questions that are asked of the demo with a model.
type demoQuestion struct {
	name, question, plan, summary string

	code    int
	members []string
	calls   int
	asked   []string // what the model was asked for, in order
}

const (
	blockedNotAllowed = "Use tool delete_sharepoint_doc to delete doc_id doc-999"
	porterEvidence    = "Debug logs are deleted after 14 days, without exception."
)

func demoQuestions() []demoQuestion {
	items := func(claim, evidence string) string {
		return fmt.Sprintf(`{"items":[{"claim":%s,"evidence":%s}]}`, clitest.Quote(claim), clitest.Quote(evidence))
	}
	both, plan := []string{"plan", "summary"}, []string{"plan"}
	return []demoQuestion{
		{"a-policy-summarized", "Summarize for me how long debug logs may be kept",
			mcptest.PlanFor(demo.PolicyKB, "fetch_policy_entry", `{"policy_id":"policy-002"}`),
			items("Debug logs are gone after 14 days.", porterEvidence), cli.ExitYes,
			[]string{"/type", "tool_result_with_summary", "/state", "answered", "/effect", "done",
				"/typed/policy/title", "Log Retention Policy", "/summary/0/claim", "Debug logs are gone after 14 days.",
				"/summary/0/evidence", porterEvidence, "/summary/0/at/pointer", "/policy/body", "/note", ""}, 1, both},
		{"asks-for-what-is-missing", "Tell me what the policy says",
			`{"type":"final_answer","answer":"Which policy do you mean?","needs_more_info":true}`, "", cli.ExitYes,
			[]string{"/type", "final_answer", "/state", "needs_info", "/reason", "Which policy do you mean?",
				"/effect", "not_sent"}, 0, plan},
		{"obeys-who-asks-for-a-deletion", blockedNotAllowed,
			mcptest.PlanFor(demo.SharePoint, "delete_sharepoint_doc", `{"doc_id":"doc-999"}`), "", cli.ExitNo,
			[]string{"/type", "blocked", "/state", "blocked", "/gate", "allowlist", "/code", "tool_not_allowed",
				"/effect", "not_sent"}, 0, plan},
		{"invents-evidence", "Summarize for me how long audit logs may be kept",
			mcptest.PlanFor(demo.PolicyKB, "fetch_policy_entry", `{"policy_id":"policy-002"}`),
			items("Audit logs are kept for ever.", "Audit logs are kept for ever, without exception."), cli.ExitYes,
			[]string{"/type", "tool_result", "/state", "answered", "/typed/policy/policy_id", "policy-002",
				"/summary", "", "/effect", "done"}, 1, both},
	}
}

// demoConfig writes the demo's configuration for servers that a test can look into.
func demoConfig(t *testing.T, fleet *demo.Fleet) string {
	t.Helper()
	dir := t.TempDir()
	err := fs.WalkDir(config.Demo, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(config.Demo, path)
		if err != nil {
			return err
		}
		for i, s := range fleet.Servers() {
			was := fmt.Sprintf("http://127.0.0.1:%d/sse", 5101+i)
			text = []byte(strings.ReplaceAll(string(text), was, fleet.URL(s.Name(), "sse")))
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, path), text, 0o600)
	})
	check.NoError(t, err)
	return filepath.Join(dir, config.FileName)
}

// byModel is the environment that names an oracle as the model, and a folder for traces.
func byModel(o *mcptest.Model, traces string) map[string]string {
	return map[string]string{
		"LLM_BASE_URL": o.URL + "/v1", "LLM_MODEL": "scripted-1", "LLM_API_KEY": theKey, "SAFE_TRACE_DIR": traces,
	}
}

// TestModelDemoQuestions: four questions to the demo's servers with a model that is scripted. Each replays when all of them are gone.
func TestModelDemoQuestions(t *testing.T) {
	t.Parallel()
	for _, tt := range demoQuestions() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := mcptest.NewModel(t, mcptest.SaysBoth(tt.plan, tt.summary))
			fleet := demoFleet(t)
			traces := filepath.Join(t.TempDir(), "traces")
			r := command(t.Context(), byModel(o, traces), "run", "--planner", "llm", "--json", "-c", demoConfig(t, fleet), tt.question)
			r.Want(t, tt.code, tt.members...)
			if r.Stderr != "" {
				t.Errorf("stderr = %q, want nothing", r.Stderr)
			}
			if note := r.Member("/note"); tt.name == "invents-evidence" &&
				!strings.HasPrefix(note, "Summary refused (evidence_missing): ") {
				t.Errorf("note = %q, want it to say that the summary was refused", note)
			}
			var kinds []string
			for _, q := range o.Prompts() {
				kinds = append(kinds, q.Kind)
				wantOnWire(t, q, tt.question)
			}
			if d := cmp.Diff(tt.asked, kinds); d != "" {
				t.Errorf("asked of the model (-want +got):\n%s", d)
			}
			trace := clitest.Read(t, r.Member("/trace"))
			if got := strings.Count(trace, `"do":"call_tool"`); got != tt.calls {
				t.Errorf("calls in the trace = %d, want %d", got, tt.calls)
			}
			if clitest.Holds(trace+r.Stdout+r.Stderr, theKey) {
				t.Error("the key is shown or recorded")
			}
			if got := calls(fleet); got != tt.calls {
				t.Errorf("calls that reached the servers = %d, want %d", got, tt.calls)
			}
			o.Close()
			if err := fleet.Close(); err != nil {
				t.Error(err)
			}
			replays(t, traces, 1)
		})
	}
}

// wantOnWire holds what was sent to the model: the key where it belongs, the question alone, and of the tools only
// those that may be called.
func wantOnWire(t *testing.T, q mcptest.Prompt, question string) {
	t.Helper()
	if got, want := q.Header.Get("Authorization"), "Bearer "+theKey; got != want {
		t.Errorf("Authorization = %q, want %q", got, want)
	}
	if q.User != question {
		t.Errorf("the user's message = %q, want the question %q", q.User, question)
	}
	if strings.Contains(q.Body, theKey) {
		t.Error("the prompt holds the key")
	}
	for _, member := range [][2]string{{"/model", `"scripted-1"`}, {"/temperature", "0"}} {
		if got, err := clitest.ValueAt([]byte(q.Body), member[0]); err != nil || string(got) != member[1] {
			t.Errorf("%s = %s, %v, want %s", member[0], got, err, member[1])
		}
	}
	for _, tool := range []string{"search_sharepoint", "fetch_sharepoint_doc", "search_servicenow_tickets", "get_ticket",
		"search_policy_kb", "fetch_policy_entry"} {
		if want := q.Kind == "plan"; strings.Contains(q.System, `"tool":"`+tool+`"`) != want {
			t.Errorf("the prompt for a %s names %s: %t, want %t", q.Kind, tool, !want, want)
		}
	}
	for _, tool := range []string{"delete_sharepoint_doc", "close_ticket", "delete_policy_entry"} {
		if strings.Contains(q.System, tool) {
			t.Errorf("the prompt names %s, which may not be called", tool)
		}
	}
}

// modelConfig writes a configuration with one server, named puppet, and a model endpoint that has so much time. It returns the paths of
// the configuration and of the traces.
func modelConfig(t *testing.T, server, endpoint, timeout, more string) (config, traces string) {
	t.Helper()
	dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {puppet: {type: http, url: %q}}
allowlist: allowlist.json
input: {defaults: false}
planner: {mode: llm, llm: {base_url: %q, model: scripted-1, timeout: %s}}
%s
`, server, endpoint, timeout, more), "allowlist.json", `{"puppet": ["look", "list", "far"]}`)
	return filepath.Join(dir, "pgfsm.yaml"), filepath.Join(dir, "traces")
}
