package hookcheck_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/clientfile"
	"pgfsm/internal/hook"
	"pgfsm/internal/hookcheck"
	"pgfsm/internal/test/check"
)

// asHook makes this test's binary the program that clients start as their hook, and asClient a client.
const (
	asHook   = "PGFSM_TEST_AS_HOOK"
	asClient = "PGFSM_TEST_AS_CLIENT"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(asClient); name != "" {
		fakeClient(name)
		return
	}
	if os.Getenv(asHook) != "" {
		os.Exit(hook.Run(context.Background(), os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// realClientTime is how long a client may take for one question.
const realClientTime = time.Minute

// A realClient is a client that is installed.
type realClient struct {
	name, client string
	variable     string   // names the variable with the path of the program
	arguments    []string // so that it runs commands without asking
	settings     string   // other members of the file with the hooks
	rewrites     string   // what another hook prints to rewrite the command
	without      string   // what is taken out of the entries of the hook
	runs         string   // the situations in which the call runs although nobody allowed it
}

// nestedRewrite rewrites a call in the form of Claude Code and Codex.
const nestedRewrite = `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"%s"}}}`

var realClients = []realClient{
	{name: "claude", client: "claude", variable: "PGFSM_CLAUDE", rewrites: nestedRewrite},
	{name: "claude-that-continues", client: "claude", variable: "PGFSM_CLAUDE", without: `,"onFailure":"block"`,
		runs: "hook-killed hook-too-slow hook-not-installed"},
	{name: "codex", client: "codex", variable: "PGFSM_CODEX", rewrites: nestedRewrite,
		arguments: []string{"--dangerously-bypass-approvals-and-sandbox", "--dangerously-bypass-hook-trust"},
		runs:      "hook-killed hook-too-slow hook-not-installed"},
	{name: "gemini", client: "gemini", variable: "PGFSM_GEMINI",
		arguments: []string{"--approval-mode", "yolo"},
		rewrites:  `{"decision":"allow","hookSpecificOutput":{"hookEventName":"BeforeTool","tool_input":{"command":"%s"}}}`,
		settings:  `,"security":{"auth":{"selectedType":"gemini-api-key"}}`,
		runs:      "hook-killed hook-too-slow"},
}

// wholeSession are the kinds of events of one question with one call.
var wholeSession = []string{hook.KindPrompt, hook.KindCall, hook.KindResult, hook.KindEnd}

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
					ran, outcome, events := c.ask(t, program, situation)
					want := situation == "allowed" || strings.Contains(" "+c.runs+" ", " "+situation+" ")
					if ran != want {
						t.Errorf("the call ran: %t, want %t; the client printed\n%s", ran, want, outcome.Output)
					}
					if promptStops := c.client == "gemini" && situation == "hook-not-installed"; !outcome.Called && !promptStops {
						t.Errorf("the model was not asked, so no call was denied; the client printed\n%s", outcome.Output)
					}
					if situation == "allowed" && !slices.Equal(kindsOf(events), wholeSession) {
						t.Errorf("the gateway got %q, want %q; the client printed\n%s", kindsOf(events), wholeSession, outcome.Output)
					}
					if told := strings.Contains(outcome.Result, "pgfsm denied this call: the test says no"); told != (situation == "denied") {
						t.Errorf("the model was told the gateway's reason: %t; it was told %s", told, outcome.Result)
					}
					for _, e := range events {
						if e.Session == "" || e.Kind == hook.KindCall && e.Tool != hookcheck.Find(c.client).Tool {
							t.Errorf("the gateway got %+v, want a session, and calls of its shell", e)
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
			ran, outcome, events := c.ask(t, program, "rewritten")
			inputs := map[string]string{}
			for _, e := range events {
				inputs[e.Kind] += string(e.Arguments)
			}
			if !ran || strings.Contains(inputs[hook.KindCall], "; true") || !strings.Contains(inputs[hook.KindResult], "; true") {
				t.Errorf("the call ran: %t, judged with %s, reported with %s; want it reported as rewritten; the client printed\n%s",
					ran, inputs[hook.KindCall], inputs[hook.KindResult], outcome.Output)
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

// ask lets a client answer one question and reports whether it made the call.
func (c *realClient) ask(t *testing.T, program, situation string) (ran bool, outcome hookcheck.Outcome, events []hook.Event) {
	t.Helper()
	home := t.TempDir()
	marker := filepath.Join(home, "ran")

	var mu sync.Mutex
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	}))
	t.Cleanup(gateway.Close)

	c.writeSettings(t, home, situation, gateway.URL, "touch "+marker+"; true")
	ctx, cancel := context.WithTimeout(t.Context(), realClientTime)
	defer cancel()
	outcome, err := hookcheck.Find(c.client).Run(ctx, hookcheck.Options{
		Program:     program,
		Folder:      home,
		Environment: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=dumb"},
		Arguments:   c.arguments,
		Command:     "touch " + marker,
	})
	check.NoError(t, err)

	_, err = os.Stat(marker)
	mu.Lock()
	defer mu.Unlock()
	return err == nil, outcome, slices.Clone(events)
}

// writeSettings writes the client's settings into its home folder.
func (c *realClient) writeSettings(t *testing.T, home, situation, gateway, rewritten string) {
	t.Helper()
	hooks, err := clientfile.FindHooks(c.client)
	check.NoError(t, err)
	self, err := os.Executable()
	check.NoError(t, err)
	if situation == "gateway-down" {
		gateway = "http://127.0.0.1:1" // no service has this port
	}
	token := filepath.Join(home, "hook.token")
	command := fmt.Sprintf("%s=1 %s %s --gateway %s --token-file %s --timeout 1m", asHook, self, c.client, gateway, token)
	switch situation {
	case "hook-killed":
		command = "kill -9 $$"
	case "hook-not-installed":
		command = filepath.Join(home, "no", "pgfsm-hook")
	}

	settings := strings.ReplaceAll(string(hooks.Value(command)), c.without, "")
	switch situation {
	case "hook-too-slow":
		settings = strings.NewReplacer(`"timeout":10000`, `"timeout":1000`, `"timeout":10`, `"timeout":1`).Replace(settings)
	case "rewritten":
		command, err := json.Marshal("echo '" + fmt.Sprintf(c.rewrites, rewritten) + "'")
		check.NoError(t, err)
		settings = strings.Replace(settings, `:[{"hooks"`, `:[{"hooks":[{"type":"command","command":`+string(command)+`}]},{"hooks"`, 1)
	}
	for name, text := range map[string]string{
		token:                           "test",
		filepath.Join(home, hooks.File): `{"hooks":` + settings + c.settings + `}`,
	} {
		check.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		check.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
}
