package hook_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/clientfile"
	"pgfsm/internal/hook"
)

// realClientTime is how long a client may take for one question.
const realClientTime = time.Minute

// A realClient is a client that is installed, with a scripted model: it makes one call of its shell
// tool, and ends when it sees the result.
type realClient struct {
	name, client string
	// variable names the variable with the path of the program.
	variable string
	tool     string // the client's name of its shell
	model    func(w http.ResponseWriter, r *http.Request, command string) (calls bool)
	// arguments and environment make the client ask the model at an address.
	arguments   func(home, model string) []string
	environment func(model string) []string
	prepare     func(t *testing.T, home, model string)
	settings    string // other members of the file with the hooks
	without     string // what is taken out of the entries of the hook
	rewrites    string // what another hook prints to rewrite the command
	runs        string // the situations in which the call runs although nobody allowed it
	events      []string
}

// TestInteropRealClients runs clients that are installed, with a scripted model and no network. The variables PGFSM_CLAUDE,
// PGFSM_CODEX and PGFSM_GEMINI name their programs.
func TestInteropRealClients(t *testing.T) {
	for _, c := range realClients {
		program := os.Getenv(c.variable)
		t.Run(c.name, func(t *testing.T) {
			if program == "" {
				t.Skipf("%s does not name the program of %s", c.variable, c.client)
			}
			for _, situation := range []string{"allowed", "denied", "gateway-down", "hook-killed", "hook-too-slow", "hook-not-installed"} {
				t.Run(situation, func(t *testing.T) {
					ran, called, events, out := c.ask(t, program, situation)
					want := situation == "allowed" || strings.Contains(" "+c.runs+" ", " "+situation+" ")
					if ran != want {
						t.Errorf("the call ran: %t, want %t; the client printed\n%s", ran, want, out)
					}
					if promptStops := c.client == "gemini" && situation == "hook-not-installed"; !called && !promptStops {
						t.Errorf("the model was not asked, so no call was denied; the client printed\n%s", out)
					}
					if situation == "allowed" && !slices.Equal(kindsOf(events), c.events) {
						t.Errorf("the gateway got %q, want %q; the client printed\n%s", kindsOf(events), c.events, out)
					}
					for _, e := range events {
						if e.Session == "" || e.Kind == hook.KindCall && e.Tool != c.tool {
							t.Errorf("the gateway got %+v, want a session, and calls of %s", e, c.tool)
						}
					}
				})
			}
		})
	}
}

// TestInteropRewriting: a client reports the input that ran, so the gateway sees that another hook rewrote the call.
func TestInteropRewriting(t *testing.T) {
	for _, c := range realClients {
		program := os.Getenv(c.variable)
		if program == "" || c.without != "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			ran, _, events, out := c.ask(t, program, "rewritten")
			inputs := map[string]string{}
			for _, e := range events {
				inputs[e.Kind] += string(e.Arguments)
			}
			if !ran || strings.Contains(inputs[hook.KindCall], "; true") || !strings.Contains(inputs[hook.KindResult], "; true") {
				t.Errorf("the call ran: %t, judged with %s, reported with %s; want it reported as rewritten; the client printed\n%s",
					ran, inputs[hook.KindCall], inputs[hook.KindResult], out)
			}
		})
	}
}

func kindsOf(events []hook.Event) (kinds []string) {
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// ask lets a client answer one question, and reports whether it made the call and whether the model wanted it.
func (c *realClient) ask(t *testing.T, program, situation string) (ran, called bool, events []hook.Event, out string) {
	t.Helper()
	home := t.TempDir()
	marker := filepath.Join(home, "ran")
	var mu sync.Mutex
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls := c.model(w, r, "touch "+marker)
		mu.Lock()
		called = called || calls
		mu.Unlock()
	}))
	t.Cleanup(model.Close)

	url := gateway(t, func(w http.ResponseWriter, r *http.Request) {
		var e hook.Event
		if err := json.UnmarshalRead(r.Body, &e); err != nil {
			t.Error(err)
		}
		mu.Lock()
		events = append(events, e)
		mu.Unlock()
		if situation == "hook-too-slow" && e.Kind == hook.KindCall {
			<-r.Context().Done()
		}
		fmt.Fprintf(w, `{"allowed":%t,"code":"test_denied","reason":"the test says no"}`, situation != "denied")
	})
	if situation == "gateway-down" {
		url = "http://127.0.0.1:1"
	}

	hooks, err := clientfile.FindHooks(c.client)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	token := filepath.Join(home, "hook.token")
	command := fmt.Sprintf("%s=1 %s %s --gateway %s --token-file %s --timeout 1m", asHook, self, c.client, url, token)
	switch situation {
	case "hook-killed":
		command = "kill -9 $$"
	case "hook-not-installed":
		command = filepath.Join(home, "no", "pgfsm-hook")
	}
	settings := strings.ReplaceAll(string(hooks.Value(command)), c.without, "")
	if situation == "rewritten" {
		other := `{"hooks":[{"type":"command","command":` + quote(fmt.Sprintf("echo '%s'", fmt.Sprintf(c.rewrites, quote("touch "+marker+"; true")))) + `}]}`
		settings = strings.Replace(settings, `:[{"hooks"`, `:[`+other+`,{"hooks"`, 1)
	}
	if situation == "hook-too-slow" {
		settings = strings.NewReplacer(`"timeout":10000`, `"timeout":1000`, `"timeout":10`, `"timeout":1`).Replace(settings)
	}
	path := filepath.Join(home, hooks.File)
	for name, text := range map[string]string{token: testToken, path: `{"hooks":` + settings + c.settings + `}`} { // in any order
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c.prepare != nil {
		c.prepare(t, home, model.URL)
	}

	ctx, cancel := context.WithTimeout(t.Context(), realClientTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, c.arguments(home, model.URL)...)
	cmd.Dir = home
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=dumb"}, c.environment(model.URL)...)
	text, err := cmd.CombinedOutput()
	out = fmt.Sprintf("%s(%v)", text, err)
	_, err = os.Stat(marker)
	mu.Lock()
	defer mu.Unlock()
	return err == nil, called, slices.Clone(events), out
}

// sendEvents answers with server-sent events. Each has its type as its name.
func sendEvents(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		var named struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(e), &named) // Gemini's have none
		if named.Type != "" {
			fmt.Fprintf(w, "event: %s\n", named.Type)
		}
		fmt.Fprintf(w, "data: %s\n\n", e)
	}
}

func quote(text string) string {
	b, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

var realClients = []realClient{
	realClaude("claude", "", ""),
	realClaude("claude-that-continues", `,"onFailure":"block"`, "hook-killed hook-too-slow hook-not-installed"),
	{
		name: "codex", client: "codex", variable: "PGFSM_CODEX", tool: "Bash", model: codexModel,
		prepare: func(t *testing.T, home, model string) {
			t.Helper()
			config := "model = \"gpt-5\"\nmodel_provider = \"test\"\n[model_providers.test]\nname = \"test\"\nbase_url = " + quote(model+"/v1") +
				"\nwire_api = \"responses\"\nenv_key = \"TEST_KEY\"\nrequest_max_retries = 0\nstream_max_retries = 0\n"
			if err := os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		arguments: func(string, string) []string {
			return []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust", "go"}
		},
		environment: func(string) []string { return []string{"TEST_KEY=none"} },
		rewrites:    `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":%s}}}`,
		runs:        "hook-killed hook-too-slow hook-not-installed",
		events:      []string{hook.KindPrompt, hook.KindCall, hook.KindResult, hook.KindEnd},
	},
	{
		name: "gemini", client: "gemini", variable: "PGFSM_GEMINI", tool: "run_shell_command", model: geminiModel,
		rewrites: `{"decision":"allow","hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{"command":%s}}}`,
		settings: `,"security":{"auth":{"selectedType":"gemini-api-key"}}`,
		arguments: func(string, string) []string {
			return []string{"-p", "go", "--approval-mode", "yolo", "-m", "gemini-2.5-flash"}
		},
		environment: func(model string) []string {
			return []string{"GOOGLE_GEMINI_BASE_URL=" + model, "GEMINI_API_KEY=none", "GEMINI_CLI_TRUST_WORKSPACE=true"}
		},
		runs:   "hook-killed hook-too-slow",
		events: []string{hook.KindPrompt, hook.KindCall, hook.KindResult, hook.KindEnd},
	},
}

func realClaude(name, without, runs string) realClient {
	return realClient{
		name: name, client: "claude", variable: "PGFSM_CLAUDE", tool: "Bash", model: claudeModel,
		arguments: func(string, string) []string {
			return []string{"-p", "go", "--allowedTools", "Bash", "--model", "claude-sonnet-4-5"}
		},
		environment: func(model string) []string {
			return []string{"ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"}
		},
		rewrites: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":%s}}}`,
		without:  without,
		runs:     runs,
		events:   []string{hook.KindPrompt, hook.KindCall, hook.KindResult, hook.KindEnd},
	}
}

func claudeModel(w http.ResponseWriter, r *http.Request, command string) (calls bool) {
	body, _ := io.ReadAll(r.Body)
	if !strings.HasSuffix(r.URL.Path, "/messages") {
		http.NotFound(w, r)
		return false
	}
	block := `{"type":"text","text":""}`
	delta := `{"type":"text_delta","text":"done"}`
	stop := "end_turn"
	if calls = bytes.Contains(body, []byte(`"name":"Bash"`)) && !bytes.Contains(body, []byte(`"tool_result"`)); calls {
		block = `{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}`
		delta = `{"type":"input_json_delta","partial_json":` + quote(`{"command":`+quote(command)+`,"description":"test"}`) + `}`
		stop = "tool_use"
	}
	sendEvents(w,
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":`+block+`}`,
		`{"type":"content_block_delta","index":0,"delta":`+delta+`}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":2}}`,
		`{"type":"message_stop"}`)
	return calls
}

func codexModel(w http.ResponseWriter, r *http.Request, command string) (calls bool) {
	body, _ := io.ReadAll(r.Body)
	if !strings.HasSuffix(r.URL.Path, "/responses") {
		http.NotFound(w, r)
		return false
	}
	item := `{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"done"}]}`
	if calls = !bytes.Contains(body, []byte(`"function_call_output"`)); calls {
		name, arguments := "shell_command", `{"command":`+quote(command)+`}`
		switch {
		case bytes.Contains(body, []byte(`"name":"exec_command"`)):
			name, arguments = "exec_command", `{"cmd":`+quote(command)+`}`
		case bytes.Contains(body, []byte(`"name":"shell"`)):
			name, arguments = "shell", `{"command":["sh","-c",`+quote(command)+`]}`
		}
		item = `{"type":"function_call","id":"f1","call_id":"call_1","name":"` + name + `","arguments":` + quote(arguments) + `}`
	}
	sendEvents(w,
		`{"type":"response.created","response":{"id":"r1"}}`,
		`{"type":"response.output_item.done","output_index":0,"item":`+item+`}`,
		`{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":1,"input_tokens_details":null,"output_tokens":1,"output_tokens_details":null,"total_tokens":2}}}`)
	return calls
}

func geminiModel(w http.ResponseWriter, r *http.Request, command string) (calls bool) {
	body, _ := io.ReadAll(r.Body)
	part := `{"text":"done"}`
	if calls = bytes.Contains(body, []byte(`"run_shell_command"`)) && !bytes.Contains(body, []byte(`"functionResponse"`)); calls {
		part = `{"functionCall":{"name":"run_shell_command","args":{"command":` + quote(command) + `,"description":"test"}}}`
	}
	answer := `{"candidates":[{"index":0,"content":{"role":"model","parts":[` + part + `]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`
	if strings.Contains(r.URL.Path, ":streamGenerateContent") {
		sendEvents(w, answer)
	} else {
		_, _ = io.WriteString(w, answer)
	}
	return calls
}
