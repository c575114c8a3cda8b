// Command pgfsm lets a language model propose an MCP tool call and decides, outside the model, whether it happens.
//
// Results go to standard output, everything else to standard error. Exit codes: 0 yes (answered, a question back,
// clean), 1 no (blocked, diverged, tampered, findings), 2 could not (usage, configuration, failed), 3 waits for a
// person.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], world{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, getenv: os.LookupEnv,
	})
	stop()
	os.Exit(code)
}
