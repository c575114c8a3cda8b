package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"pgfsm/internal/visible"
)

// Exit codes.
const (
	exitYes     = 0
	exitNo      = 1
	exitCould   = 2 // could not
	exitPending = 3
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

// verdictError ends the command with an exit code. Everything is printed already.
type verdictError struct{ code int }

func (e verdictError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exit returns nil for yes and otherwise the error that carries the code.
func exit(code int) error {
	if code == exitYes {
		return nil
	}
	return verdictError{code}
}

// run is the whole command: it returns its exit code and calls nothing that ends the process.
func run(ctx context.Context, args []string, w world) int {
	out := &sticky{to: w.stdout}
	if !isTerminal(w.stdout) { // a terminal is looked at for its width and colours, and does not fill up
		w.stdout = out
	}
	root := newRoot(w)
	understood := false // the command line is valid: later errors do not print the usage
	root.PersistentPreRun = func(*cobra.Command, []string) { understood = true }
	root.SetArgs(args)
	root.SetIn(w.stdin)
	root.SetOut(w.stdout)
	root.SetErr(w.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var verdict verdictError
	if errors.Is(out.err, syscall.EPIPE) {
		out.err = nil // the reader closed the pipe, which is no failure
		err = unlessPipe(err)
	}
	if out.err != nil && (err == nil || errors.As(err, &verdict)) {
		err, understood = fmt.Errorf("the result could not be written: %w", out.err), true
	}
	switch {
	case err == nil:
		return exitYes
	case errors.As(err, &verdict):
		return verdict.code
	}
	said := err.Error()
	if ctx.Err() != nil {
		said = strings.ReplaceAll(said, context.Canceled.Error(), "stopped by a signal, before the command was done")
	}
	fmt.Fprintf(w.stderr, "pgfsm: %s\n", visible.Lines(said))
	if !understood {
		fmt.Fprintf(w.stderr, "usage: %s (more: %s --help)\n", cmd.UseLine(), cmd.CommandPath())
	}
	return exitCould
}

// unlessPipe drops an error that is only about a reader who left.
func unlessPipe(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// sticky keeps the first error, so that a result that could not be written does not exit with 0.
type sticky struct {
	to  io.Writer
	err error
}

// Write passes the bytes on and keeps the first error.
func (s *sticky) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

func newRoot(w world) *cobra.Command {
	root := &cobra.Command{
		Use:           "pgfsm",
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(
		newRun(w), newCall(w), newServe(w), newReload(w), newResume(w),
		newTools(w), newAllow(w), newReplay(w), newVerifyProof(w), newGraph(w), newVerify(w), newDemo(w), newInit(w),
		newConfig(w), newEval(w), newLink(w), newPins(w), newPolicy(w), newLedger(w), newApprovals(w),
		newConsole(w), newLogin(w), newToken(w), newIdentity(w), newVersion(w),
	)
	addHelp(root)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, helpOn
		case "completion":
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	return root
}

// group makes a command that has only commands of its own.
func group(use string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// suggested bounds the edit distance of suggested commands.
const suggested = 2

// noSuchCommand refuses an unknown command, and suggests similar ones.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := cobra.NoArgs(cmd, args)
	cmd.SuggestionsMinimumDistance = suggested
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 && args[0] != "" {
		return fmt.Errorf("%w (did you mean %s?)", err, strings.Join(near, " or "))
	}
	return err
}

// helpOn prints the help of a command. Cobra's own exits with 0 for an unknown one.
func helpOn(c *cobra.Command, args []string) error {
	about, rest, err := c.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("there is no command %q to help with", strings.Join(args, " "))
	}
	if err != nil {
		return err
	}
	about.InitDefaultHelpFlag()
	return about.Help()
}
