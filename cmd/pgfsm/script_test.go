package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/scripttest"
)

var update = flag.Bool("update", false, "rewrite the files that scripts compare with")

func TestMain(m *testing.M) {
	clitest.Private()
	// Most tests in parallel wait for the time of a server or of the gateway to be over; -parallel changes it.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){
		"pgfsm":     func() { os.Exit(runProcess()) },
		"toy-stdio": func() { os.Exit(scripttest.ServeDemo(os.Args[1])) },
	})
}

func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(scripts) < 20 {
		t.Fatalf("Glob() = %d scripts, %v, want at least 20", len(scripts), err)
	}
	testscript.RunT(inTurn{t}, scriptParams(testscript.Params{Dir: "testdata/script", UpdateScripts: *update}))
}

// inTurn runs one script after the other: [exits] runs the command in this process, which has one working directory.
type inTurn struct{ *testing.T }

func (inTurn) Parallel()     {}
func (inTurn) Verbose() bool { return testing.Verbose() }
func (r inTurn) Run(name string, f func(testscript.T)) {
	r.T.Run(name, func(t *testing.T) { f(inTurn{t}) })
}

func scriptParams(p testscript.Params) testscript.Params {
	p.RequireExplicitExec, p.RequireUniqueNames = true, true
	p.Cmds = map[string]func(*testscript.TestScript, bool, []string){
		"exits": exits, "json": setJSON, "member": wantMember, "mask": mask, "mode": wantMode, "edit": scripttest.Edit, "forge": forge,
	}
	return p
}

// exits CODE [exec] PROGRAM [ARGUMENT...] runs a program and wants its exit code. It runs pgfsm in this process and without standard
// input, unless exec asks for a process.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE [exec] PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if args[1] == "pgfsm" {
		code = runIn(ts, args[2:])
	} else {
		if args[1] == "exec" {
			args = args[1:]
		}
		code = scripttest.Exec(ts, args[1], args[2:]...)
	}
	if code != want {
		ts.Fatalf("exit code = %d, want %d", code, want)
	}
}

// runIn runs the command in this process, in the script's folder and with its environment.
func runIn(ts *testscript.TestScript, args []string) int {
	back, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	defer func() { ts.Check(os.Chdir(back)) }()
	return run(context.Background(), args, world{
		stdin: strings.NewReader(""), stdout: ts.Stdout(), stderr: ts.Stderr(),
		getenv: func(name string) (string, bool) { v := ts.Getenv(name); return v, v != "" },
	})
}

// json NAME POINTER [FILE] sets a variable to what stands at a JSON pointer of standard output or of a file.
func setJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: json NAME POINTER [FILE]")
	}
	file := "stdout"
	if len(args) == 3 {
		file = args[2]
	}
	ts.Setenv(args[0], value(ts, file, args[1]))
}

// member POINTER VALUE wants a value, without quotation marks if it is a string, in standard output.
func wantMember(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: member POINTER VALUE")
	}
	if got := value(ts, "stdout", args[0]); got != args[1] {
		ts.Fatalf("%s = %s, want %s", args[0], got, args[1])
	}
}

func value(ts *testscript.TestScript, file, pointer string) string {
	v, err := clitest.ValueAt([]byte(ts.ReadFile(file)), pointer)
	ts.Check(err)
	if v.Kind() == '"' {
		v, err = jsontext.AppendUnquote(nil, v)
		ts.Check(err)
	}
	return string(v)
}

var changing = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`), "RUN"},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "DIGEST"},
	{regexp.MustCompile(`exactly this call: [0-9a-f]{12}\.`), "exactly this call: PERMIT."},
}

// mask FILE OUT writes a file anew with words in the place of what differs from run to run.
func mask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mask FILE OUT")
	}
	text := ts.ReadFile(args[0])
	for _, c := range changing {
		text = c.pattern.ReplaceAllLiteralString(text, c.word)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// mode MODE PATTERN... wants these permission bits of every file that matches.
func wantMode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: mode MODE PATTERN...")
	}
	for _, pattern := range args[1:] {
		found, err := filepath.Glob(ts.MkAbs(pattern))
		ts.Check(err)
		if len(found) == 0 {
			ts.Fatalf("there is no %s", pattern)
		}
		for _, f := range found {
			info, err := os.Stat(f)
			ts.Check(err)
			if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[0] {
				ts.Fatalf("mode of %s = %s, want %s", f, got, args[0])
			}
		}
	}
}
