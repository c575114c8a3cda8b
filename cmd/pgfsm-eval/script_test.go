package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"pgfsm/mcp/demo"
)

var update = flag.Bool("update", false, "rewrite the files that tests compare with")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"pgfsm-eval": func() { os.Exit(runProcess()) },
		"toy-stdio":  serveStdio,
	})
}

// serveStdio is a demo server, named by the first argument, on standard input and output.
func serveStdio() {
	for _, s := range demo.Servers() {
		if s.Name() == os.Args[1] {
			if err := s.MCP().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "edit": edit},
		Setup: func(env *testscript.Env) error { // a configuration that others may write is refused
			return exec.Command("chmod", "-R", "go-w", env.WorkDir).Run()
		},
	})
}

// exits CODE PROGRAM [ARGUMENT...] runs a program and wants its exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ended := (*exec.ExitError)(nil)
		if !errors.As(err, &ended) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		code = ended.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code = %d, want %d", code, want)
	}
}

// edit FILE OLD NEW replaces the first OLD of a file, which must be there.
func edit(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o600))
}
