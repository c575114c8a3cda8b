package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
)

// world holds everything that the command uses from its environment.
type world struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) (string, bool)
	log            *slog.Logger // set for a service that logs JSON: receives warnings, too
}

func (w world) env(name string) string {
	v, _ := w.getenv(name)
	return v
}

// run executes the command and returns its exit code. It calls nothing that ends the process.
func run(ctx context.Context, args []string, w world) int {
	return cli.Execute(ctx, args, cli.Streams{In: w.stdin, Out: w.stdout, Err: w.stderr},
		func(out io.Writer) *cobra.Command {
			w.stdout = out
			return newRoot(w)
		})
}

func newRoot(w world) *cobra.Command {
	root := &cobra.Command{Use: "pgfsm", Version: cli.Version()}
	root.AddCommand(
		newRun(w), newCall(w), newServe(w), newReload(w), newResume(w),
		newTools(w), newAllow(w), newReplay(w), newVerifyProof(w), newVerifyConsistency(w), newGraph(w), newVerify(w), newDemo(w), newInit(w),
		newConfig(w), newLink(w), newHook(w), newPins(w), newPolicy(w), newLabels(w), newRedact(w), newLedger(w), newApprovals(w),
		newConsole(w), newLogin(w), newToken(w), newIdentity(w), newConnections(w), newVersion(w),
	)
	cli.AddHelp(root, helpText)
	return root
}

// newCommand makes a command that calls do.
func newCommand(use string, args cobra.PositionalArgs,
	do func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Args: args, RunE: do}
}

// checkFirst makes a command check its flags before it begins.
func checkFirst(cmd *cobra.Command, check func() error) {
	begin := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := check(); err != nil {
			return err
		}
		return begin(cmd, args)
	}
}

// unlessEnded returns err, or nil if the user has ended the command.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// notEmpty refuses flags with an empty value, for example from an unset shell variable.
func notEmpty(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return fmt.Errorf("--%s is empty: give a value, or leave the flag out", name)
		}
	}
	return nil
}

// helpText has the help of every command: a heading with the command's path, a one-line summary,
// the description, and examples in a fence.
//
//go:embed help.md
var helpText string
