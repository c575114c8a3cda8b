package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/mcp/demo"
)

// theKey is the key of the endpoint in these tests. It must be seen on the wire and nowhere else.
const theKey = "sk-pgfsm-test-4711-abcdef"

// byModel is the environment that names an oracle as the model, and a folder for traces.
func byModel(o *mcptest.Model, traces string) map[string]string {
	return map[string]string{
		"LLM_BASE_URL": o.URL + "/v1", "LLM_MODEL": "scripted-1", "LLM_API_KEY": theKey, "SAFE_TRACE_DIR": traces,
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

// TestModelModes: who plans. A question that a route matches does not reach the model in mode auto; one that none
// matches does. The router never asks, the model always is.
func TestModelModes(t *testing.T) {
	t.Parallel()
	const routed, unrouted = "show me policy-002", "how long may debug logs be kept?"
	ticket := mcptest.PlanFor(demo.ServiceNow, "get_ticket", `{"ticket_id":"INC0010001"}`)
	byRoute := []string{"/type", "tool_result", "/typed/policy/policy_id", "policy-002"}
	byOracle := []string{"/type", "tool_result", "/typed/ticket/ticket_id", "INC0010001"}
	question := []string{"/type", "final_answer", "/state", "needs_info"}
	for _, tt := range []struct {
		name     string
		flags    []string
		question string
		asked    int
		members  []string
	}{
		{"default-with-a-route", nil, routed, 0, byRoute},
		{"default-without-a-route", nil, unrouted, 1, byOracle},
		{"auto-with-a-route", []string{"--planner", "auto"}, routed, 0, byRoute},
		{"auto-without-a-route", []string{"--planner", "auto"}, unrouted, 1, byOracle},
		{"router-with-a-route", []string{"--planner", "router"}, routed, 0, byRoute},
		{"router-without-a-route", []string{"--planner", "router"}, unrouted, 0, question},
		{"llm-with-a-route", []string{"--planner", "llm"}, routed, 1, byOracle},
		{"llm-without-a-route", []string{"--planner", "llm"}, unrouted, 1, byOracle},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := mcptest.NewModel(t, mcptest.SaysBoth(ticket, ""))
			traces := filepath.Join(t.TempDir(), "traces")
			r := command(t.Context(), byModel(o, traces), append(append([]string{"run", "--json"}, tt.flags...), tt.question)...)
			r.Want(t, cli.ExitYes, tt.members...)
			if got := len(o.Prompts()); got != tt.asked {
				t.Errorf("requests to the model = %d, want %d", got, tt.asked)
			}
			o.Close()
			replays(t, traces, 1)
		})
	}
	t.Run("router-does-not-let-the-model-summarize", func(t *testing.T) {
		o := mcptest.NewModel(t, mcptest.SaysBoth(ticket, `{"items":[{"claim":"No.","evidence":"no"}]}`))
		traces := filepath.Join(t.TempDir(), "traces")
		r := command(t.Context(), byModel(o, traces), "run", "--json", "--planner", "router", "Summarize policy policy-002")
		r.Want(t, cli.ExitYes, "/type", "tool_result_with_summary")
		if got := len(o.Prompts()); got != 0 {
			t.Errorf("requests to the model = %d, want 0", got)
		}
	})
}

// TestModelOfTheFileStands: where the configuration names a model, the environment's is not asked, and its key is sent
// to nobody.
func TestModelOfTheFileStands(t *testing.T) {
	t.Parallel()
	ours, others := mcptest.NewModel(t, mcptest.SaysBoth(lookPlan, "")), mcptest.NewModel(t, mcptest.SaysBoth(lookPlan, ""))
	server := typedPuppet(t)
	config, traces := modelConfig(t, server.URL, ours.URL+"/v1", "1m", "")
	command(t.Context(), byModel(others, traces), "run", "--json", "-c", config, "have a look").Want(t, cli.ExitYes,
		"/type", "tool_result")
	all, strayed := ours.Prompts(), others.Prompts()
	if len(all) != 1 || len(strayed) != 0 {
		t.Fatalf("requests = %d and %d, want 1 to the file's model and 0 to the environment's", len(all), len(strayed))
	}
	if clitest.Holds(fmt.Sprint(all[0].Header, all[0].Body), theKey) {
		t.Errorf("the environment's key went to the file's model: %v", all[0].Header)
	}
}

// TestModelKeyOfTheFile: however the configuration gives the key, it is sent to the model, and kept from all others.
func TestModelKeyOfTheFile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, key string }{
		{"literal", theKey},
		{"from-the-environment", "${env:KEY_OF_OURS}"},
		{"from-a-file", "${file:token}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := mcptest.NewModel(t, func(_ *mcptest.Model, w http.ResponseWriter, _ *http.Request, q mcptest.Prompt) {
				mcptest.SayJSON(w, http.StatusOK, mcptest.Spoken(strings.Replace(lookPlan, "{}", `{"id":"`+q.Header.Get("Authorization")+`"}`, 1)))
			})
			server := typedPuppet(t)
			dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers: {puppet: {type: http, url: %q}}
allowlist: allowlist.json
planner: {mode: llm, llm: {base_url: %q, model: scripted-1, api_key: %q}}
`, server.URL, o.URL+"/v1", tt.key), "allowlist.json", `{"puppet": ["look"]}`, "token", theKey)
			config, env := filepath.Join(dir, "pgfsm.yaml"), map[string]string{"KEY_OF_OURS": theKey}
			shown := ""
			for _, words := range [][]string{{"run", "--json"}, {"run"}, {"tools"}, {"config", "check"}} {
				args := append(words, "-c", config)
				if words[0] == "run" {
					args = append(args, "have a look")
				}
				r := command(t.Context(), env, args...)
				if shown += r.Stdout + r.Stderr; r.Code == cli.ExitFailed {
					t.Errorf("%q: exit code = 2: %s", words, r.Stderr)
				}
			}
			for _, path := range clitest.Traces(t, filepath.Join(dir, "traces")) {
				shown += clitest.Read(t, path)
			}
			if clitest.Holds(shown, theKey) {
				t.Errorf("the key is shown or recorded: %s", shown)
			}
			all := o.Prompts()
			if len(all) != 2 || all[0].Header.Get("Authorization") != "Bearer "+theKey {
				t.Errorf("requests = %d, want 2 with the key", len(all))
			}
			replays(t, filepath.Join(dir, "traces"), 2)
		})
	}
}
