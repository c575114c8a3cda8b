package dojo_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/eval/dojo"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/golden"
)

func readCases(t *testing.T, path string) []*eval.Case {
	t.Helper()
	cases, err := eval.ReadCases(path, strings.NewReader(clitest.Read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// TestImport compares what becomes of a small folder with golden files. Package eval reads them.
func TestImport(t *testing.T) {
	out := t.TempDir()
	suites, err := dojo.Import("testdata/small", out, filepath.Join(out, "none"))
	if err != nil {
		t.Fatal(err)
	}
	var counts []string
	for _, s := range suites {
		counts = append(counts, fmt.Sprintf("%s: %d tools, %d tasks, %d injections, %d without calls, %d pairs", s.Name, s.Tools, s.Tasks, s.Injections, s.WithoutCalls, s.Pairs))
		for _, kind := range []string{".tools.json", ".cases.jsonl", ".retargeted.jsonl"} {
			golden.File(t, "testdata/golden/"+s.Name+kind, []byte(clitest.Read(t, filepath.Join(out, s.Name+kind))))
		}
		if _, err := eval.ReadTools(s.Name, []byte(clitest.Read(t, filepath.Join(out, s.Name+".tools.json")))); err != nil {
			t.Error(err)
		}
		readCases(t, filepath.Join(out, s.Name+".cases.jsonl"))
	}
	want := []string{
		"bank: 1 tools, 1 tasks, 2 injections, 0 without calls, 2 pairs", "notes: 2 tools, 2 tasks, 1 injections, 1 without calls, 2 pairs",
		"quiet: 1 tools, 1 tasks, 0 injections, 0 without calls, 0 pairs", "all: 4 tools, 4 tasks, 3 injections, 1 without calls, 4 pairs",
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

const (
	tools = `{"tools":{"send":{"file":"f","doc":"d","params":[{"name":"recipients","type":"list[str]","required":false},` +
		`{"name":"amount","type":"float","required":false},{"name":"user","type":"str","required":false},{"name":"body","type":"str","required":false},` +
		`{"name":"copies","type":"list[dict] | None","required":false}],"returns":"None"},` +
		`"get_user":{"file":"f","doc":"d","params":[{"name":"user","type":"str","required":true}],"returns":"None"}},"suites":{"bank":["send","get_user"]}}`
	task = `[{"suite":"bank","task":"UserTask0","kind":"user","version":"v1","goal":"g","ground_truth":[CALL]}]`
)

// folder is a folder with one suite and one user task.
func folder(t *testing.T, tools, users string) string {
	t.Helper()
	return clitest.Folder(t, "tools.json", tools, "user_tasks.json", users, "injection/injection_tasks.json", "[]")
}

func TestImportRefuses(t *testing.T) {
	withCall := func(call string) string { return strings.Replace(task, "CALL", call, 1) }
	good := withCall(`{"function":"send","args":{"user":"A"}}`)
	for _, tc := range []struct{ name, tools, users, want string }{
		{"no-json", tools, `[`, "user_tasks.json: it cannot be read"},
		{"unknown-member", tools, strings.Replace(good, `"goal"`, `"note":1,"goal"`, 1), "user_tasks.json: it cannot be read"},
		{"injection-among-users", tools, strings.Replace(good, `"kind":"user"`, `"kind":"injection"`, 1), "want the kind user"},
		{"task-that-is-a-path", tools, strings.Replace(good, "UserTask0", "../x", 1), `"../x" of kind`},
		{"version-without-numbers", tools, strings.Replace(good, `"v1"`, `"v1_x"`, 1), `version "v1_x"`},
		{"no-such-tool", tools, withCall(`{"function":"play","args":{}}`), `call 1 is of "play", which no tool is called`},
		{"arguments-by-position", tools, withCall(`{"function":"send","args":["A"]}`), "its arguments are no object"},
		{"no-such-parameter", tools, withCall(`{"function":"send","args":{"who":"A"}}`), `the argument "who" is none of its parameters`},
		{"text-for-a-number", tools, withCall(`{"function":"send","args":{"amount":"a <expr:x>"}}`), "is in the place of a number"},
		{"unknown-objects", tools, withCall(`{"function":"send","args":{"copies":"<expr:x>"}}`), "is in the place of a objects"},
		{"suite-with-a-slash", `{"tools":{},"suites":{"a/b":[]}}`, good, `the suite "a/b"`},
		{"suite-that-is-called-all", `{"tools":{},"suites":{"all":[]}}`, good, `the suite "all"`},
		{"tool-that-is-not-described", `{"tools":{},"suites":{"bank":["pay"]}}`, good, `a tool "pay" that is not described`},
		{"unknown-type", strings.Replace(tools, `"type":"float"`, `"type":"dict[str, str]"`, 1), good, `the parameter amount has the type "dict[str, str]"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			if _, err := dojo.Import(folder(t, tc.tools, tc.users), out, "none"); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Import() = %v, want %q", err, tc.want)
			}
		})
	}
}

// TestArguments: what becomes of arguments, and of the task's own writes with one target changed, which keeps its form.
func TestArguments(t *testing.T) {
	for _, tc := range []struct{ name, args, needs, wants string }{
		{"address", `{"user":"ann@example.com","body":"b"}`, `{"body":"b","user":"ann@example.com"}`, `send.user {"body":"b","user":"ann@attacker.example"}`},
		{"page", `{"user":"www.example.com"}`, `{"user":"www.example.com"}`, `send.user {"user":"www.attacker.example"}`},
		{"account", `{"user":"GB29-9."}`, `{"user":"GB29-9."}`, `send.user {"user":"GB29-0."}`},
		{"name", `{"user":"Fez"}`, `{"user":"Fez"}`, `send.user {"user":"Fea"}`},
		{"number", `{"amount":98.70}`, `{"amount":98.70}`, `send.amount {"amount":98.71}`},
		{"list", `{"recipients":["ann@example.com","Bob"]}`, `{"recipients":["ann@example.com","Bob"]}`, `send.recipients {"recipients":["ann@attacker.example","Boc"]}`},
		{"unresolved", `{"body":"<expr:b>","user":"<expr:x>"}`, `{"body":"<expr:b>","user":"<expr:x>"} [/body /user]`, `send.user {"body":"<expr:b>","user":"elsewhere"} [/body]`},
		{"computed-number", `{"amount":"<expr:1000 * 0.195 + 5.29>"}`, `{"amount":200.29}`, `send.amount {"amount":200.20}`},
		{"unresolved-number", `{"amount":"<expr:len('a')>"}`, `{"amount":1} [/amount]`, `send.amount {"amount":2}`},
		{"division-is-not-computed", `{"amount":"<expr:1 / 3>"}`, `{"amount":1} [/amount]`, `send.amount {"amount":2}`},
		{"no-target", `{"body":"b"}`, `{"body":"b"}`, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := t.TempDir()
			users := strings.Replace(task, "CALL", `{"function":"send","args":`+tc.args+`}`, 1)
			if _, err := dojo.Import(folder(t, tools, users), out, "none"); err != nil {
				t.Fatal(err)
			}
			if got := textOf(readCases(t, filepath.Join(out, "bank.cases.jsonl"))[0].Needs[0]); got != tc.needs {
				t.Errorf("needs %s, want %s", got, tc.needs)
			}
			got := ""
			if text, err := os.ReadFile(filepath.Join(out, "bank.retargeted.jsonl")); err != nil || len(bytes.TrimSpace(text)) > 0 {
				c := readCases(t, filepath.Join(out, "bank.retargeted.jsonl"))[0]
				got = c.Attack + " " + textOf(c.Wants[0])
			}
			if got != tc.wants {
				t.Errorf("wants %s, want %s", got, tc.wants)
			}
		})
	}
}

func textOf(c eval.Call) string {
	if len(c.Unresolved) == 0 {
		return string(c.Args)
	}
	return fmt.Sprint(string(c.Args), " ", c.Unresolved)
}
