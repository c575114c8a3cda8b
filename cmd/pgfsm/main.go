// Command pgfsm lets a language model propose an MCP tool call and decides, outside the model,
// whether it happens.
//
// Results go to standard output: text, or with --json one document. Warnings and errors go to
// standard error. Exit codes: 0 yes (answered, a question back, clean), 1 no (blocked, diverged,
// tampered, findings), 2 could not (usage, configuration, failed), 3 waits for approvers.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(runProcess()) }

// runProcess runs the command on this process's own streams, environment and signals.
func runProcess() int {
	log.SetOutput(io.Discard) // net/http logs unsolicited bytes of servers, with secrets
	// If the reader of standard output goes away, writes fail, but the process must not end while a
	// call is in flight. (Notify, not Ignore: servers that pgfsm starts would inherit an ignored
	// signal.)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the first signal cancels ctx, the second one ends the process
	return run(ctx, os.Args[1:], world{
		stdin:  os.Stdin,
		stdout: os.Stdout,
		stderr: os.Stderr,
		getenv: os.LookupEnv,
	})
}
