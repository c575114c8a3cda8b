package upstream

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// roles are scripts that are played over several transports.
var roles = map[string]func() script{}

// hang blocks this process. Without cgo, the runtime would end one that waits for nothing.
func hang() { time.Sleep(time.Hour) }

// play runs this process as a child of a test.
func play(role string) int {
	switch role {
	case "echo":
		if err := echoServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			return 1
		}
	case "grows":
		if err := growing().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			return 1
		}
	case "honest":
		runScript(honest)
	case "garbage":
		fmt.Println("{Server: ready on stdio}")
		runScript(honest)
	case "downloads":
		fmt.Fprintln(os.Stderr, "npm warn exec this will be installed: x")
		hang()
	case "dies-at-start":
		fmt.Fprintln(os.Stderr, "first line")
		fmt.Fprintf(os.Stderr, "\x1b[31mno database \u202eat %s\n", os.Getenv("DB_PASSWORD"))
		return 3
	case "dies-at-call":
		runScript(answering("tools/call", func(spoken) []string { os.Exit(5); return nil }))
	case "deaf":
		hang()
	case "stops-reading":
		runScript(answering("tools/list", func(w spoken) []string {
			fmt.Println(result(w.id, onePage))
			hang()
			return nil
		}))
	case "environment":
		runScript(answering("tools/list", func(w spoken) []string {
			return []string{result(w.id, fmt.Sprintf(`{"tools":[],"env":%q}`, strings.Join(os.Environ(), "\n")))}
		}))
	case "family", "stubborn-family": // it has a child of its own
		if role == "stubborn-family" { // and neither the end of input nor SIGTERM ends it
			signal.Ignore(syscall.SIGTERM)
		}
		grandchild := exec.Command("sleep", "600")
		if err := grandchild.Start(); err != nil {
			return 1
		}
		page := fmt.Sprintf(`{"tools":[],"pids":[%d,%d]}`, os.Getpid(), grandchild.Process.Pid)
		runScript(answering("tools/list", func(w spoken) []string { return []string{result(w.id, page)} }))
		if role == "stubborn-family" {
			hang()
		}
	default:
		begin, ok := roles[role]
		if !ok {
			return 99
		}
		runScript(begin())
	}
	return 0
}
