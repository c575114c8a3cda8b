package hookcheck_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"pgfsm/internal/hookcheck"
	"pgfsm/internal/test/check"
)

// fakeRequests are how clients ask their model: where, for a command, and with its result.
var fakeRequests = map[string]struct{ path, ask, tell string }{
	"claude": {"/v1/messages?beta=true", `{"tools":[{"name":"Bash"}]}`, `{"tools":[{"name":"Bash"}],"messages":[{"type":"tool_result","content":"%s"}]}`},
	"codex":  {"/responses", `{"tools":[{"name":"exec_command"}]}`, `{"input":[{"type":"function_call_output","output":"%s"}]}`},
	"gemini": {"/v1beta/models/gemini:streamGenerateContent", `{"tools":["run_shell_command"]}`, `{"tools":["run_shell_command"],"contents":[{"functionResponse":{"output":"%s"}}]}`},
}

// fakeClient asks the model whose address is in its environment or arguments, and prints what it answers.
func fakeClient(name string) {
	model := regexp.MustCompile(`http://127\.0\.0\.1:\d+(/v1)?`).FindString(strings.Join(append(os.Environ(), os.Args...), "\n"))
	request := fakeRequests[name]
	for _, body := range []string{request.ask, fmt.Sprintf(request.tell, "not run")} {
		response, err := http.Post(model+request.path, "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_, _ = io.Copy(os.Stdout, response.Body)
	}
}

func TestRun(t *testing.T) {
	self, err := os.Executable()
	check.NoError(t, err)
	for name := range fakeRequests {
		t.Run(name, func(t *testing.T) {
			got, err := hookcheck.Find(name).Run(t.Context(), hookcheck.Options{
				Program:     self,
				Folder:      t.TempDir(),
				Environment: append(os.Environ(), asClient+"="+name),
				Command:     `touch "a b"`,
			})
			check.NoError(t, err)
			if !got.Called || !strings.Contains(got.Result, "not run") {
				t.Errorf("Run() = called: %t, result %q, want the command asked for, and its result", got.Called, got.Result)
			}
			if strings.Count(got.Output, `touch`) != 1 || !strings.Contains(got.Output, "done") {
				t.Errorf("the model answered %s, want the command once, and then done", got.Output)
			}
		})
	}
}

func TestRunOfAProgramThatIsMissing(t *testing.T) {
	got, err := hookcheck.Find("claude").Run(t.Context(), hookcheck.Options{Program: "/no/such/claude", Folder: t.TempDir()})
	if err != nil || got.Called || !strings.Contains(got.Output, "no such file") {
		t.Errorf("Run() = %+v, %v, want an output that says so", got, err)
	}
	if hookcheck.Find("cursor") != nil {
		t.Error("Find(cursor) found a client, want none")
	}
}
