// Package scripttest has what the scripts of the commands' tests share.
package scripttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rogpeppe/go-internal/testscript"

	"pgfsm/mcp/demo"
)

// ServeDemo is a demo server on standard input and output, and returns the exit code of its process.
func ServeDemo(name string) int {
	for _, s := range demo.Servers() {
		if s.Name() != name {
			continue
		}
		if err := s.MCP().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	fmt.Fprintln(os.Stderr, "no such server")
	return 2
}

// Exec runs a program and returns its exit code.
func Exec(ts *testscript.TestScript, program string, args ...string) int {
	err := ts.Exec(program, args...)
	if err == nil {
		return 0
	}
	ended := (*exec.ExitError)(nil)
	if !errors.As(err, &ended) {
		ts.Fatalf("%s: %v", program, err)
	}
	return ended.ExitCode()
}

// Edit is the command edit FILE OLD NEW, which replaces the first OLD of a file. It must be there.
func Edit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: edit FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if !strings.Contains(text, args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o600))
}
