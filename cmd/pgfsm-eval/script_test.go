package main

import (
	"flag"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"pgfsm/internal/test/scripttest"
)

var update = flag.Bool("update", false, "rewrite the files that tests compare with")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"pgfsm-eval": func() { os.Exit(runProcess()) },
		"toy-stdio":  func() { os.Exit(scripttest.ServeDemo(os.Args[1])) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "edit": scripttest.Edit},
		Setup: func(env *testscript.Env) error { // a configuration that others may write is refused
			return exec.Command("chmod", "-R", "go-w", env.WorkDir).Run()
		},
	})
}

// exits CODE PROGRAM [ARGUMENT...] runs a program and wants its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	if code := scripttest.Exec(ts, args[1], args[2:]...); code != want {
		ts.Fatalf("exit code = %d, want %d", code, want)
	}
}
