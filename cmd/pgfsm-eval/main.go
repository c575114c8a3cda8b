// Command pgfsm-eval measures the effect of pgfsm's gates: each gate alone, attacks in which the
// planner obeys the attacker, and pgfsm compared with an agent without gates. The command pgfsm
// contains none of this code.
//
// Results go to files, as JSON, and to standard output, as text. Warnings and errors go to standard
// error. Exit codes: 0 yes, 1 no (a gate slipped, an expectation failed), 2 the command could not
// do what it was asked.
package main

import (
	"context"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
)

func main() { os.Exit(runProcess()) }

// runProcess runs the command on this process's own streams and signals.
func runProcess() int {
	log.SetOutput(io.Discard) // net/http logs unsolicited bytes of servers, with secrets
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the first signal cancels ctx, the second one ends the process
	return run(ctx, os.Args[1:], streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

type streams = cli.Streams

// run executes the command and returns its exit code. It calls nothing that ends the process.
func run(ctx context.Context, args []string, s streams) int {
	return cli.Execute(ctx, args, s, func(out io.Writer) *cobra.Command {
		s.Out = out
		return newRoot(s)
	})
}

func newRoot(s streams) *cobra.Command {
	root := cli.Group("pgfsm-eval", newGates(s), newAttack(s), newE2E(s), newReport(s), newFromTraces(s))
	root.Short, root.Version = "Measure what the gates achieve", cli.Version()
	root.Long = `pgfsm-eval computes reproducible figures. gates tests each gate without servers and without a model. e2e compares pgfsm with
an agent without gates. attack runs attacks in which the planner does exactly what the attacker wants.

Exit codes: 0 yes, 1 no (a gate slipped, an expectation failed), 2 could not (usage, configuration, failed).`
	return root
}

// Marks at the beginning of lines.
const (
	tick  = "✓"
	cross = "✗"
)

func mark(yes bool) string {
	if yes {
		return tick
	}
	return cross
}
