package dojo

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/internal/test/golden"
)

// nowhere is where there are no bundles and no grants.
var nowhere = Places{Bundle: func(string) string { return "" }, Grant: func(string, string) string { return "" }}

// TestImport holds what is made of the made-up folder to golden files, and both to what package eval reads.
func TestImport(t *testing.T) {
	suites, err := Import(os.DirFS("testdata/small"), Places{
		Bundle: func(suite string) string { return "../b/" + suite + "/pgfsm.yaml" },
		Grant: func(suite, task string) string {
			if suite == "notes" {
				return "../b/notes/grants/" + task + ".yaml"
			}
			return ""
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var counts []string
	for _, s := range suites {
		counts = append(counts, fmt.Sprintf("%s: %d tools, %d tasks, %d injections, %d pairs, %d grants", s.Name, s.Offers, s.Tasks, s.Injections, s.Pairs, s.Grants))
		golden.File(t, "testdata/golden/"+s.Name+".tools.json", s.Tools)
		golden.File(t, "testdata/golden/"+s.Name+".cases.jsonl", s.Cases)
		golden.File(t, "testdata/golden/"+s.Name+".retargeted.jsonl", s.Retargeted)
		if _, err := eval.ReadTools(s.Name, s.Tools); err != nil {
			t.Error(err)
		}
		cases := readCases(t, s.Cases)
		if want := max(s.Pairs, s.Tasks); s.Name != All && len(cases) != want {
			t.Errorf("%s: %d cases, want %d", s.Name, len(cases), want)
		}
	}
	want := []string{
		"bank: 1 tools, 1 tasks, 2 injections, 2 pairs, 0 grants", "notes: 2 tools, 2 tasks, 1 injections, 2 pairs, 2 grants",
		"quiet: 1 tools, 1 tasks, 0 injections, 0 pairs, 0 grants", "all: 4 tools, 4 tasks, 3 injections, 4 pairs, 2 grants",
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	notes := Notes{OlderVersions: 2, WithoutCalls: 1, Constants: 1, TextsKept: 2, NumbersReplaced: 2, ListsReplaced: 1, EnumMembers: 1, NullsLeftOut: 1}
	if diff := cmp.Diff(notes, suites[3].Notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

func readCases(t *testing.T, text []byte) []*eval.Case {
	t.Helper()
	cases, err := eval.ReadCases("cases", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

// folder is a folder with one suite, one user task and one injection, some of which a case changes.
func folder(changes map[string]string) fs.FS {
	files := map[string]string{
		ToolsFile: `{"tools":{"pay":{"file":"f","doc":"d","params":[{"name":"to","type":"str","required":true},` +
			`{"name":"n","type":"int","required":false},{"name":"c","type":"list[dict] | None","required":false}],"returns":"None"}},"suites":{"bank":["pay"]}}`,
		UserFile:       userTask(`{"function":"pay","args":{"to":"A"}}`),
		InjectionsFile: `[]`,
	}
	dir := fstest.MapFS{}
	for name, text := range files { // each is a file of its own, in any order
		if changed, ok := changes[name]; ok {
			text = changed
		}
		dir[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return dir
}

func userTask(call string) string {
	return `[{"suite":"bank","task":"UserTask0","kind":"user","version":"v1","goal":"g","ground_truth":[` + call + `]}]`
}

func TestImportRefuses(t *testing.T) {
	many := "[" + strings.Repeat(`{"suite":"bank","task":"t","kind":"user","version":"v1","goal":"g","ground_truth":[]},`, MaxTasks) +
		`{"suite":"bank","task":"t","kind":"user","version":"v1","goal":"g","ground_truth":[]}]`
	task := userTask(`{"function":"pay","args":{"to":"A"}}`)
	for _, c := range []struct{ name, file, text, want string }{
		{"nothing-changed", "", "", ""},
		{"no-json", UserFile, `[`, "user_tasks.json: it is no strict JSON"},
		{"unknown-member", UserFile, strings.Replace(task, `"goal"`, `"note":1,"goal"`, 1), "user_tasks.json: it has another form"},
		{"too-large", UserFile, strings.Repeat(" ", MaxFileBytes) + "[]", "at most 1048576 are read"},
		{"at-the-limit", UserFile, strings.Repeat(" ", MaxFileBytes-2) + "[]", ""},
		{"one-task-too-many", UserFile, many, "at most 10000 are read"},
		{"too-deep", UserFile, strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), "too deep"},
		{"injection-among-users", UserFile, strings.Replace(task, `"kind":"user"`, `"kind":"injection"`, 1), `UserTask0: its kind is "injection"`},
		{"user-among-injections", InjectionsFile, task, `its kind is "user"`},
		{"no-such-suite", UserFile, strings.Replace(task, `"suite":"bank"`, `"suite":"none"`, 1), `there is no suite "none"`},
		{"task-that-is-a-path", UserFile, strings.Replace(task, "UserTask0", "../x", 1), `"../x" is no name of a task`},
		{"no-version", UserFile, strings.Replace(task, `"v1"`, `"1"`, 1), `its version is "1"`},
		{"version-without-numbers", UserFile, strings.Replace(task, `"v1"`, `"v1_x"`, 1), `its version is "v1_x"`},
		{"same-version-twice", UserFile, strings.TrimSuffix(task, "]") + "," + strings.TrimPrefix(task, "["), "is there twice in version v1"},
		{"no-such-tool", UserFile, userTask(`{"function":"play","args":{}}`), `bank UserTask0: call 1 is of "play", which no tool is called`},
		{"arguments-by-position", UserFile, userTask(`{"function":"pay","args":["A"]}`), "bank UserTask0: call 1, pay: its arguments are no object"},
		{"no-such-parameter", UserFile, userTask(`{"function":"pay","args":{"who":"A"}}`), `the argument "who" is none of its parameters`},
		{"text-for-a-number", UserFile, userTask(`{"function":"pay","args":{"n":"a <expr:x>"}}`), "is in the place of a integer"},
		{"objects-that-nobody-knows", UserFile, userTask(`{"function":"pay","args":{"c":"<expr:x>"}}`), "a list of objects, whose members are unknown"},
		{"in-an-injection", InjectionsFile, strings.Replace(strings.Replace(task, `"user"`, `"injection"`, 1), `"to"`, `"x"`, 1), "injection/injection_tasks.json: bank UserTask0"},
		{"no-suites", ToolsFile, `{"tools":{},"suites":{}}`, "it has 0 suites"},
		{"suite-with-a-slash", ToolsFile, `{"tools":{},"suites":{"a/b":[]}}`, `suite "a/b"`},
		{"suite-that-is-called-all", ToolsFile, `{"tools":{},"suites":{"all":[]}}`, "what all suites together are called"},
		{"tool-that-is-not-described", ToolsFile, `{"tools":{},"suites":{"bank":["pay"]}}`, `a tool "pay" that is not described`},
		{"type-that-is-not-known", ToolsFile, `{"tools":{"pay":{"file":"","doc":"","params":[{"name":"x","type":"dict[str, str]","required":true}],"returns":""}},"suites":{"bank":["pay"]}}`,
			`the parameter x has the type "dict[str, str]"`},
		{"parameter-twice", ToolsFile, `{"tools":{"pay":{"file":"","doc":"","params":[{"name":"x","type":"str","required":true},{"name":"x","type":"str","required":true}],"returns":""}},"suites":{"bank":["pay"]}}`,
			`two parameters "x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Import(folder(map[string]string{c.file: c.text}), nowhere)
			var f *eval.Fault
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &f) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Import() = %v, want %q", err, c.want)
			}
		})
	}
	dir := fstest.MapFS{ToolsFile: {Data: []byte(`{"tools":{},"suites":{"bank":[]}}`)}}
	if _, err := Import(dir, nowhere); err == nil || !strings.Contains(err.Error(), "user_tasks.json: it cannot be read") {
		t.Errorf("without tasks: %v", err)
	}
}

func TestConstant(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"1000 * 0.195 + 5.29", "200.29"}, {"1", "1"}, {" ( 1 + 2 ) * -3 ", "-9"}, {"7 - 2 - 1", "4"}, {"12 / 4 / 2", "1.5"}, {"- -2", "2"}, {"0.1+0.2", "0.3"},
		{"1/3", ""}, {"1/0", ""}, {"", ""}, {"x", ""}, {"1 +", ""}, {"(1", ""}, {"1)", ""}, {"1 2", ""}, {"1.2.3", ""}, {".5", ""}, {"1e3", ""}, {"2**3", ""},
		{"len('a')", ""}, {strings.Repeat("(", maxConstant) + "1", ""}, {strings.Repeat("1", maxConstant), strings.Repeat("1", maxConstant)},
		{strings.Repeat("1", maxConstant+1), ""},
	} {
		if got, ok := constant(c.text); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%q = %q, %t, want %q", c.text, got, ok, c.want)
		}
	}
}

// TestRetargeted: each case wants a write of the task with one target changed, which keeps its form.
func TestRetargeted(t *testing.T) {
	tools := `{"tools":{"send":{"file":"f","doc":"d","params":[{"name":"recipients","type":"list[str]","required":false},` +
		`{"name":"amount","type":"float","required":false},{"name":"user","type":"str","required":false},{"name":"body","type":"str","required":false}],"returns":"None"},` +
		`"get_user":{"file":"f","doc":"d","params":[{"name":"user","type":"str","required":true}],"returns":"None"}},"suites":{"bank":["send","get_user"]}}`
	for _, c := range []struct{ name, call, want string }{
		{"address", `{"function":"send","args":{"user":"ann@example.com","body":"b"}}`, `send.user {"body":"b","user":"ann@attacker.example"}`},
		{"page", `{"function":"send","args":{"user":"www.example.com"}}`, `send.user {"user":"www.attacker.example"}`},
		{"account", `{"function":"send","args":{"user":"GB29-9."}}`, `send.user {"user":"GB29-0."}`},
		{"name", `{"function":"send","args":{"user":"Fez"}}`, `send.user {"user":"Fea"}`},
		{"nothing-to-change", `{"function":"send","args":{"user":"???"}}`, `send.user {"user":"elsewhere"}`},
		{"number", `{"function":"send","args":{"amount":98.70}}`, `send.amount {"amount":98.71}`},
		{"negative-number", `{"function":"send","args":{"amount":-1}}`, `send.amount {"amount":-2}`},
		{"list", `{"function":"send","args":{"recipients":["ann@example.com","Bob"]}}`, `send.recipients {"recipients":["ann@attacker.example","Boc"]}`},
		{"unresolved", `{"function":"send","args":{"body":"<expr:b>","user":"<expr:x>"}}`, `send.user {"body":"<expr:b>","user":"elsewhere"} [/body]`},
		{"one-case-for-each", `{"function":"send","args":{"amount":1,"user":"A"}}`, `send.amount {"amount":2,"user":"A"}; send.user {"amount":1,"user":"B"}`},
		{"no-target", `{"function":"send","args":{"body":"b"}}`, ``},
		{"reads", `{"function":"get_user","args":{"user":"A"}}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			suites, err := Import(folder(map[string]string{ToolsFile: tools, UserFile: userTask(c.call)}), nowhere)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, one := range readCases(t, suites[0].Retargeted) {
				if len(one.Wants) != 1 || len(one.Needs) != 1 {
					t.Fatalf("%+v", one)
				}
				text := one.Attack + " " + string(one.Wants[0].Args)
				if len(one.Wants[0].Unresolved) > 0 {
					text += fmt.Sprint(" ", one.Wants[0].Unresolved)
				}
				got = append(got, text)
			}
			if text := strings.Join(got, "; "); text != c.want || len(got) != suites[1].Retargets {
				t.Errorf("%d cases of %d: %s, want %s", len(got), suites[1].Retargets, text, c.want)
			}
		})
	}
}
