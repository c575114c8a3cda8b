package hook_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/hook"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
)

const testToken = "pgfsm_hook_test"

// gateway returns the URL of a server that takes events at the endpoint and nothing else.
func gateway(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks/event", answer)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// answering answers every event with a text.
func answering(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// result is what a run of the program printed and returned.
type result struct {
	code           int
	stdout, stderr string
}

func (r result) String() string {
	return fmt.Sprintf("exit %d\nstdout: %sstderr: %s", r.code, r.stdout, r.stderr)
}

// runHook runs the program in this process.
func runHook(input io.Reader, args ...string) result {
	var stdout, stderr bytes.Buffer
	getenv := func(name string) (string, bool) {
		if name == hook.TokenVariable {
			return testToken, true
		}
		return "", false
	}
	code := hook.Run(context.Background(), args, getenv, input, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// callOf is a client's input that asks for a call.
func callOf(t *testing.T, client string) []byte {
	t.Helper()
	for _, name := range []string{"PreToolUse", "BeforeTool", "preToolUse"} {
		if text, err := os.ReadFile(filepath.Join("testdata", client, name+".json")); err == nil {
			return text
		}
	}
	t.Fatalf("%s has no input that asks for a call", client)
	return nil
}

// TestRunAnswers records what each client gets for each of its events.
func TestRunAnswers(t *testing.T) {
	answers := []struct{ situation, text string }{
		{"allowed", `{"allowed":true}`},
		{"denied", `{"allowed":false,"code":"policy_denied","reason":"no policy allows it","run":"0199c2b0-7"}`},
		{"denied without a reason", `{"allowed":false,"reason":" \n\t"}`},
		{"held", `{"allowed":false,"code":"approval_required","reason":"an approver has to decide about run 0199c2b0-8","run":"0199c2b0-8","decide":"http://127.0.0.1:8788/runs/0199c2b0-8"}`},
	}

	for _, client := range hook.Clients() {
		t.Run(client, func(t *testing.T) {
			inputs := contracts(t, client)
			var names []string
			for name := range inputs { // sorted below
				if !strings.Contains(name, "-") {
					names = append(names, name)
				}
			}
			slices.Sort(names)

			var made strings.Builder
			for _, name := range names {
				for _, answer := range answers {
					url := gateway(t, answering(answer.text))
					got := runHook(bytes.NewReader(inputs[name]), client, "--gateway", url)
					fmt.Fprintf(&made, "== %s: %s\n%s\n", name, answer.situation, got)

					observed := runHook(bytes.NewReader(inputs[name]), client, "--gateway", url, "--observe")
					allowed := runHook(bytes.NewReader(inputs[name]), client, "--gateway", gateway(t, answering(answers[0].text)))
					if observed != allowed {
						t.Errorf("%s, %s: an observer prints\n%s\nwant what an allowed call gets\n%s", name, answer.situation, observed, allowed)
					}
				}
			}
			golden.File(t, filepath.Join("testdata", client, "answers.txt"), made.String())
		})
	}
}

// TestRunFailures: whatever fails, a call is denied, and an event that is no question is not.
func TestRunFailures(t *testing.T) {
	hanging := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices only then that the client is gone
		<-r.Context().Done()
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"allowed":true}`, code) }
	}
	redirecting := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.NoError(t, err)
	closed := "http://" + listener.Addr().String()
	listener.Close()

	tests := map[string]struct {
		url  string
		args []string
		want string
	}{
		"gateway-down":         {closed, nil, "; start it with pgfsm serve -c pgfsm.yaml"},
		"no-such-socket":       {"unix:" + filepath.Join(t.TempDir(), "no"), nil, "the gateway cannot be asked: "},
		"gateway-hangs":        {gateway(t, hanging), []string{"--timeout", "50ms"}, "the gateway did not answer within 50ms"},
		"token-refused":        {gateway(t, status(401)), nil, "does not accept the token (status 401): it is unknown, expired, revoked or of another role; make one with pgfsm token create"},
		"role-refused":         {gateway(t, status(403)), nil, "the gateway does not accept the token (status 403)"},
		"no-such-endpoint":     {gateway(t, status(404)), nil, "the gateway answered with status 404"},
		"gateway-fails":        {gateway(t, status(500)), nil, "the gateway answered with status 500"},
		"created":              {gateway(t, status(201)), nil, "the gateway answered with status 201"},
		"redirect":             {gateway(t, redirecting), nil, "the gateway answered with status 307"},
		"answer-is-no-json":    {gateway(t, answering(`yes`)), nil, "the gateway's answer is not one of this version"},
		"answer-is-empty":      {gateway(t, answering(``)), nil, "the gateway's answer is not one of this version"},
		"answer-without-allow": {gateway(t, answering(`{}`)), nil, "the gateway's answer is not one of this version"},
		"allowed-is-a-text":    {gateway(t, answering(`{"allowed":"true"}`)), nil, "the gateway's answer is not one of this version"},
		"allowed-twice":        {gateway(t, answering(`{"allowed":false,"allowed":true}`)), nil, "the gateway's answer is not one of this version"},
		"answer-too-long":      {gateway(t, answering(`{"allowed":true,"reason":"`+strings.Repeat("x", 70000)+`"}`)), nil, "the gateway's answer is longer than 65536 bytes"},
		"no-url":               {"gateway", nil, "--gateway is not a URL"},
		"another-scheme":       {"ftp://127.0.0.1", nil, "--gateway begins with none of unix:, https:// and http://"},
		"plain-to-elsewhere":   {"http://gateway.example.com", nil, "--gateway must begin with https://, because"},
		"no-gateway":           {"", nil, "--gateway is missing"},
		"unknown-flag":         {closed, []string{"--fast"}, "flag provided but not defined: -fast"},
		"no-time":              {closed, []string{"--timeout", "0s"}, "--timeout 0s is no time"},
		"more-arguments":       {closed, []string{"claude"}, `unexpected argument "claude"`},
		"no-token-file":        {closed, []string{"--token-file", filepath.Join(t.TempDir(), "no")}, "the token cannot be read: "},
		"empty-token-file":     {closed, []string{"--token-file", os.DevNull}, "holds no token; make one with pgfsm token create --role hook"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, client := range hook.Clients() {
				args := append([]string{client, "--gateway", tt.url}, tt.args...)
				got := runHook(bytes.NewReader(callOf(t, client)), args...)
				checkDenied(t, client, got, tt.want)

				told := runHook(strings.NewReader(endOf(client)), args...)
				if told.code != 1 || strings.Contains(told.stdout, "deny") || !strings.Contains(told.stderr, tt.want) {
					t.Errorf("%s: the end of a session ends with\n%s\nwant exit 1, no denial, and %q", client, told, tt.want)
				}

				if name == "unknown-flag" || name == "more-arguments" { // it is not known whether --observe was meant
					continue
				}
				observed := runHook(bytes.NewReader(callOf(t, client)), append(slices.Clone(args), "--observe")...)
				if observed.code != 0 || strings.Contains(observed.stdout, "deny") || !strings.Contains(observed.stderr, tt.want) {
					t.Errorf("%s: an observer ends with\n%s\nwant exit 0, no denial, and %q", client, observed, tt.want)
				}
			}
		})
	}
}

// checkDenied wants a denial in a client's form, exit code 2, and a line on standard error.
func checkDenied(t *testing.T, client string, got result, want string) {
	t.Helper()
	form := `"permissionDecision":"deny"`
	switch client {
	case "gemini":
		form = `"decision":"deny"`
	case "cursor":
		form = `"permission":"deny"`
	}
	if got.code != 2 || !strings.Contains(got.stdout, form) {
		t.Errorf("%s: got\n%s\nwant exit 2 and %s", client, got, form)
	}
	if !strings.HasPrefix(got.stderr, "pgfsm-hook: ") || strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, want) {
		t.Errorf("%s: standard error is %q, want one line with %q", client, got.stderr, want)
	}
}

// endOf is a client's input at the end of a session.
func endOf(client string) string {
	if client == "cursor" {
		return `{"hook_event_name":"sessionEnd","conversation_id":"c"}`
	}
	return `{"hook_event_name":"SessionEnd","session_id":"s"}`
}

func TestRunInputs(t *testing.T) {
	url := gateway(t, answering(`{"allowed":true}`))
	huge := `{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Write","tool_input":{"content":"` + strings.Repeat("x", hook.MaxBytes) + `"}}`
	tests := map[string]struct {
		input io.Reader
		args  []string
		want  string
	}{
		"no-json":          {strings.NewReader("hello"), nil, "the input is not one JSON object"},
		"unknown-event":    {strings.NewReader(`{"hook_event_name":"Stop"}`), nil, "that this version knows"},
		"too-long":         {strings.NewReader(huge), nil, "the event is longer than 1048576 bytes"},
		"far-too-long":     {strings.NewReader(strings.Repeat(" ", 17<<20)), nil, "the input is longer than 16777216 bytes"},
		"input-stays-open": {openInput{}, []string{"--timeout", "20ms"}, "the client did not end its input in time"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			checkDenied(t, "claude", runHook(tt.input, append([]string{"claude", "--gateway", url}, tt.args...)...), tt.want)
		})
	}
}

// openInput never ends.
type openInput struct{}

func (openInput) Read([]byte) (int, error) { select {} }

// TestRunPosts shows the request: the token of the file, and the event; a result that makes it too long is left out.
func TestRunPosts(t *testing.T) {
	var got hook.Event
	var authorization string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		if err := json.UnmarshalRead(r.Body, &got); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, `{"allowed":true,"later":1}`)
	})
	folder := t.TempDir()
	socket := filepath.Join(folder, "s")
	listener, err := net.Listen("unix", socket)
	check.NoError(t, err)
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })

	token := filepath.Join(folder, "token")
	check.NoError(t, os.WriteFile(token, []byte("from-a-file\n"), 0o600))
	input := `{"hook_event_name":"PostToolUse","session_id":"s","tool_name":"Read","tool_input":{"file_path":"/big"},"tool_response":"` +
		strings.Repeat("x", hook.MaxBytes) + `"}`
	ran := runHook(strings.NewReader(input), "claude", "--gateway", "unix:"+socket, "--token-file", token, "--observe")
	if ran != (result{0, "{}\n", ""}) {
		t.Errorf("got\n%s\nwant exit 0 and {}", ran)
	}
	if authorization != "Bearer from-a-file" {
		t.Errorf("the request has the authorization %q, want the token of the file", authorization)
	}
	if got.Kind != hook.KindResult || got.Tool != "Read" || got.Result != nil || !got.Observe {
		t.Errorf("the gateway got %+v, want the result of Read without its text, observed", got)
	}
}

func TestRunUsage(t *testing.T) {
	if got := runHook(strings.NewReader("")); got.code != 2 || !strings.Contains(got.stderr, "usage: pgfsm-hook CLIENT") {
		t.Errorf("without arguments: got\n%s\nwant exit 2 and the usage", got)
	}
	if got := runHook(strings.NewReader(""), "emacs"); got.code != 2 || !strings.Contains(got.stderr, `"emacs" is no client`) {
		t.Errorf("with an unknown client: got\n%s\nwant exit 2 and the clients", got)
	}
}
