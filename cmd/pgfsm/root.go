package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
)

// Exit codes.
const (
	exitYes     = cli.ExitYes
	exitNo      = cli.ExitNo
	exitCould   = cli.ExitFailed
	exitPending = cli.ExitPending
)

// schemaVersion is the version of every --json document.
const schemaVersion = cli.SchemaVersion

// What package cli has for both commands.
var (
	exit          = cli.Exit
	group         = cli.Group
	mustFlags     = cli.MustFlags
	noSuchCommand = cli.NoSuchCommand
	printJSON     = cli.PrintJSON
	count         = cli.Count
	version       = cli.Version
	isTerminal    = cli.IsTerminal
)

// world is all that the command takes from outside.
type world struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) (string, bool)
	log            *slog.Logger // of a service that logs JSON: takes warnings, too
}

func (w world) env(name string) string {
	v, _ := w.getenv(name)
	return v
}

// run is the whole command: it returns its exit code and calls nothing that ends the process.
func run(ctx context.Context, args []string, w world) int {
	return cli.Execute(ctx, args, cli.Streams{In: w.stdin, Out: w.stdout, Err: w.stderr}, func(out io.Writer) *cobra.Command {
		w.stdout = out
		return newRoot(w)
	})
}

func newRoot(w world) *cobra.Command {
	root := &cobra.Command{Use: "pgfsm", Version: version()}
	root.AddCommand(
		newRun(w), newCall(w), newServe(w), newReload(w), newResume(w),
		newTools(w), newAllow(w), newReplay(w), newVerifyProof(w), newGraph(w), newVerify(w), newDemo(w), newInit(w),
		newConfig(w), newLink(w), newPins(w), newPolicy(w), newLedger(w), newApprovals(w),
		newConsole(w), newLogin(w), newToken(w), newIdentity(w), newVersion(w),
	)
	cli.AddHelp(root, helpText)
	return root
}
