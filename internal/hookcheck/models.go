package hookcheck

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

// maxRequest is the longest request to the model in bytes.
const maxRequest = 16 << 20

// prompt is harmless, because settings may make a client ask its real model in spite of all.
const prompt = "This is a check of the hooks. Answer with the word done, and do nothing else."

var clients = []Client{
	{
		Name:    "claude",
		Program: "claude",
		Tool:    "Bash",
		arguments: func(string) []string {
			return []string{"-p", prompt, "--allowedTools", "Bash", "--strict-mcp-config", "--model", "claude-sonnet-4-5"}
		},
		environment: func(model string) []string {
			return []string{"ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=none", "ANTHROPIC_AUTH_TOKEN=",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"}
		},
		path:   "/messages",
		answer: answerClaude,
	},
	{
		Name:    "codex",
		Program: "codex",
		Tool:    "Bash",
		arguments: func(model string) []string {
			provider := `{name="pgfsm",base_url=` + quote(model+"/v1") + `,wire_api="responses",request_max_retries=0,stream_max_retries=0}`
			return []string{"exec", "--skip-git-repo-check", "-c", `model="gpt-5"`, "-c", `model_provider="pgfsm"`,
				"-c", "model_providers.pgfsm=" + provider, prompt}
		},
		environment: func(string) []string { return nil },
		path:        "/responses",
		answer:      answerCodex,
	},
}

// serve answers one request of the client.
func (c *Client) serve(w http.ResponseWriter, r *http.Request, command string) reply {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil || !strings.HasSuffix(strings.ToLower(r.URL.Path), strings.ToLower(c.path)) {
		http.NotFound(w, r)
		return reply{}
	}
	answered := c.answer(body, command)
	if !answered.stream && !strings.Contains(r.URL.Path, "stream") {
		_, _ = io.WriteString(w, answered.text)
		return answered
	}

	w.Header().Set("Content-Type", "text/event-stream")
	for event := range strings.Lines(answered.text) {
		var named struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(event), &named) // not every model names its events
		if named.Type != "" {
			fmt.Fprintf(w, "event: %s\n", named.Type)
		}
		fmt.Fprintf(w, "data: %s\n\n", strings.TrimSpace(event))
	}
	return answered
}

// answerClaude follows the Messages API of Anthropic.
func answerClaude(request []byte, command string) reply {
	block, delta, stop := `{"type":"text","text":""}`, `{"type":"text_delta","text":"done"}`, "end_turn"
	answered := reply{stream: true, result: resultIn(request, `"tool_result"`)}
	if bytes.Contains(request, []byte(`"name":"Bash"`)) && answered.result == "" {
		answered.calls = true
		arguments := `{"command":` + quote(command) + `,"description":"a check of the hooks"}`
		block = `{"type":"tool_use","id":"toolu_pgfsm","name":"Bash","input":{}}`
		delta = `{"type":"input_json_delta","partial_json":` + quote(arguments) + `}`
		stop = "tool_use"
	}
	answered.text = strings.Join([]string{
		`{"type":"message_start","message":{"id":"msg_pgfsm","type":"message","role":"assistant","model":"claude-sonnet-4-5",` +
			`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":` + block + `}`,
		`{"type":"content_block_delta","index":0,"delta":` + delta + `}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"` + stop + `","stop_sequence":null},"usage":{"output_tokens":2}}`,
		`{"type":"message_stop"}`,
	}, "\n")
	return answered
}

// answerCodex follows the Responses API of OpenAI.
func answerCodex(request []byte, command string) reply {
	item := `{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"done"}]}`
	answered := reply{stream: true, result: resultIn(request, `"function_call_output"`)}
	if answered.result == "" {
		answered.calls = true
		// The name of the tool depends on the model and the version.
		name, arguments := "shell_command", `{"command":`+quote(command)+`}`
		switch {
		case bytes.Contains(request, []byte(`"name":"exec_command"`)):
			name, arguments = "exec_command", `{"cmd":`+quote(command)+`}`
		case bytes.Contains(request, []byte(`"name":"shell"`)):
			name, arguments = "shell", `{"command":["sh","-c",`+quote(command)+`]}`
		}
		item = `{"type":"function_call","id":"f1","call_id":"call_pgfsm","name":"` + name + `","arguments":` + quote(arguments) + `}`
	}
	answered.text = strings.Join([]string{
		`{"type":"response.created","response":{"id":"r1"}}`,
		`{"type":"response.output_item.done","output_index":0,"item":` + item + `}`,
		`{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":1,"input_tokens_details":null,` +
			`"output_tokens":1,"output_tokens_details":null,"total_tokens":2}}}`,
	}, "\n")
	return answered
}

// resultIn returns the request from the first mark of a result on; empty if there is none.
func resultIn(request []byte, mark string) string {
	at := bytes.Index(request, []byte(mark))
	if at < 0 {
		return ""
	}
	return string(request[at:])
}
