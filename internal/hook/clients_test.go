package hook_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/hook"
	"pgfsm/internal/test/check"
)

// asHook makes this test's binary the program.
const asHook = "PGFSM_TEST_AS_HOOK"

func TestMain(m *testing.M) {
	if os.Getenv(asHook) != "" {
		os.Exit(hook.Run(context.Background(), os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// An ending is what a client sees of its hook.
type ending struct {
	late           bool // the client's time was over
	code           int  // -1: a signal ended it
	stdout, stderr string
}

// A fakeClient decides as its client does whether a call runs.
type fakeClient struct {
	client string
	runs   func(ending) bool
}

// fakeClients are the clients, with the settings that change what a failure does. Each says where
// its rules come from.
var fakeClients = map[string]fakeClient{
	// The hooks reference of Claude Code, and the types of claude-agent-sdk 0.3.332 (onFailure).
	"claude":                {"claude", claudeRuns(false)},
	"claude-that-continues": {"claude", claudeRuns(true)},
	// codex-rs/hooks/src/events/pre_tool_use.rs and engine/output_parser.rs.
	"codex": {"codex", codexRuns},
	// The program of Gemini CLI 0.61. Its documents say that other codes than 2 let the call run.
	"gemini": {"gemini", geminiRuns},
	// Cursor's hooks reference (failClosed, exit codes), and what was observed of version 3.9.
	"cursor":                  {"cursor", cursorRuns(true)},
	"cursor-that-fails-open":  {"cursor", cursorRuns(false)},
	"vscode":                  {"vscode", vscodeRuns},  // the hooks reference of VS Code
	"vscode-with-the-copilot": {"vscode", copilotRuns}, // GitHub's hooks reference
}

// permissionOf returns the decision inside hookSpecificOutput, its reason, and whether the text is
// an object.
func permissionOf(stdout string) (decision, reason string, isObject bool) {
	var output struct {
		Specific struct {
			Decision string `json:"permissionDecision"`
			Reason   string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	err := json.Unmarshal([]byte(stdout), &output)
	return output.Specific.Decision, output.Specific.Reason, err == nil
}

func claudeRuns(onFailureContinue bool) func(ending) bool {
	return func(e ending) bool {
		if e.late {
			return onFailureContinue
		}
		switch e.code {
		case 0:
			decision, _, isObject := permissionOf(e.stdout)
			if !isObject && strings.HasPrefix(strings.TrimSpace(e.stdout), "{") {
				return onFailureContinue
			}
			return decision != "deny"
		case 2:
			return false
		}
		return onFailureContinue
	}
}

func codexRuns(e ending) bool {
	if e.late {
		return true
	}
	switch e.code {
	case 0:
		var strict struct {
			Specific struct {
				Event    string `json:"hookEventName"`
				Decision string `json:"permissionDecision"`
				Reason   string `json:"permissionDecisionReason"`
			} `json:"hookSpecificOutput"`
		}
		err := json.Unmarshal([]byte(e.stdout), &strict, json.RejectUnknownMembers(true))
		s := strict.Specific
		return err != nil || s.Event != "PreToolUse" || s.Decision != "deny" || strings.TrimSpace(s.Reason) == ""
	case 2:
		return strings.TrimSpace(e.stderr) == ""
	}
	return true
}

func geminiRuns(e ending) bool {
	if e.late {
		return true
	}
	var output struct {
		Decision string `json:"decision"`
	}
	text := strings.TrimSpace(e.stdout)
	if text == "" {
		text = strings.TrimSpace(e.stderr)
	}
	if err := json.Unmarshal([]byte(text), &output); err == nil {
		return output.Decision != "deny" && output.Decision != "block"
	}
	return text == "" || e.code < 2 // a signal leaves no code
}

func cursorRuns(failClosed bool) func(ending) bool {
	return func(e ending) bool {
		if e.late {
			return !failClosed
		}
		switch e.code {
		case 0:
			var output struct {
				Permission string `json:"permission"`
			}
			if err := json.Unmarshal([]byte(e.stdout), &output); err != nil || output.Permission == "" {
				return !failClosed
			}
			return output.Permission == "allow"
		case 2:
			return false
		}
		return !failClosed
	}
}

func vscodeRuns(e ending) bool {
	if e.late {
		return true // not documented: the worse is assumed
	}
	switch e.code {
	case 0:
		decision, _, _ := permissionOf(e.stdout)
		return decision != "deny"
	case 2:
		return false
	}
	return true
}

func copilotRuns(e ending) bool {
	switch {
	case e.late:
		return true
	case e.code != 0:
		return false
	}
	var output struct {
		Decision string `json:"permissionDecision"`
		Reason   string `json:"permissionDecisionReason"`
	}
	_ = json.Unmarshal([]byte(e.stdout), &output) // what is no JSON is no answer
	return output.Decision != "deny" || output.Reason == ""
}

// A situation is what a client's hook meets.
type situation struct {
	answer    http.HandlerFunc // nil: the gateway is down
	input     string           // empty: a call
	missing   bool             // there is no program
	interrupt bool             // the program is killed while the gateway thinks
	late      bool             // the client's time is over while the gateway thinks
}

// TestClientsFailAsTheyAreSaidTo: does the call run? The table is that of docs/guide/hooks.md.
func TestClientsFailAsTheyAreSaidTo(t *testing.T) {
	situations := map[string]situation{
		"allowed":                    {answer: answering(`{"allowed":true}`)},
		"denied":                     {answer: answering(`{"allowed":false,"code":"policy_denied","reason":"no"}`)},
		"denied-without-reason":      {answer: answering(`{"allowed":false}`)},
		"gateway-down":               {},
		"gateway-answers-nonsense":   {answer: answering(`<html>`)},
		"gateway-refuses-the-token":  {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }},
		"client-sends-nonsense":      {answer: answering(`{"allowed":true}`), input: "nonsense"},
		"client-has-another-version": {answer: answering(`{"allowed":true}`), input: `{"hook_event_name":"BeforeEverything","session_id":"s"}`},
		"hook-killed":                {interrupt: true},
		"hook-too-slow":              {late: true},
		"hook-not-installed":         {missing: true},
	}
	// runs are the clients that let the call run although nobody allowed it.
	runs := map[string]string{
		"hook-killed":        "claude-that-continues codex gemini cursor-that-fails-open vscode",
		"hook-too-slow":      "claude-that-continues codex gemini cursor-that-fails-open vscode vscode-with-the-copilot",
		"hook-not-installed": "claude-that-continues codex cursor-that-fails-open vscode",
	}

	for name, s := range situations {
		for label, c := range fakeClients {
			t.Run(name+"/"+label, func(t *testing.T) {
				t.Parallel()
				e := startHook(t, c.client, s)
				want := name == "allowed" || strings.Contains(" "+runs[name]+" ", " "+label+" ")
				if got := c.runs(e); got != want {
					t.Errorf("the call runs: %t, want %t; the hook ended with %+v", got, want, e)
				}
			})
		}
	}
}

// startHook starts the program as a client does.
func startHook(t *testing.T, client string, s situation) ending {
	t.Helper()
	program, err := os.Executable()
	check.NoError(t, err)
	if s.missing { // a client starts the command with a shell
		return ending{false, 127, "", "sh: 1: pgfsm-hook: not found\n"}
	}

	asked := make(chan struct{}, 1)
	url := "http://127.0.0.1:1" // no service has this port
	switch {
	case s.interrupt || s.late:
		url = gateway(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices only then that the client is gone
			asked <- struct{}{}
			<-r.Context().Done()
		})
	case s.answer != nil:
		url = gateway(t, s.answer)
	}
	input := []byte(s.input)
	if s.input == "" {
		input = callOf(t, client)
	}

	var stdout, stderr bytes.Buffer
	cmd := exec.Command(program, client, "--gateway", url, "--timeout", "1m")
	cmd.Env = append(os.Environ(), asHook+"=1", hook.TokenVariable+"="+testToken)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	check.NoError(t, cmd.Start())
	if s.interrupt || s.late {
		<-asked
		check.NoError(t, cmd.Process.Kill())
	}
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return ending{s.late, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}
