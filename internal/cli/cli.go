// Package cli has what the commands pgfsm and pgfsm-eval share: exit codes, how an error ends a
// command, groups of commands, and documents, counts and progress bars in one form.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"pgfsm/internal/visible"
)

// Exit codes.
const (
	ExitYes     = 0
	ExitNo      = 1
	ExitFailed  = 2 // the command could not do what it was asked
	ExitPending = 3 // the call waits for approvers
)

// VerdictError ends a command with an exit code. Everything is printed already.
type VerdictError struct{ Code int }

func (e VerdictError) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Exit returns nil for [ExitYes], and otherwise the error that carries the code.
func Exit(code int) error {
	if code == ExitYes {
		return nil
	}
	return VerdictError{code}
}

// Streams are the standard streams of a command.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Execute runs the command line on the command that newRoot makes for standard output, and returns
// the exit code. An error that is no verdict is printed with the command's name.
func Execute(ctx context.Context, args []string, s Streams, newRoot func(out io.Writer) *cobra.Command) int {
	out := &stickyWriter{to: s.Out}
	if !IsTerminal(s.Out) { // a terminal is asked for its width and colours, and does not fill up
		s.Out = out
	}

	root := newRoot(s.Out)
	understood := false // the command line is valid: later errors do not print the usage
	root.PersistentPreRun = func(*cobra.Command, []string) { understood = true }
	root.SilenceUsage, root.SilenceErrors = true, true
	root.Args, root.RunE = NoSuchCommand, printHelp
	root.SetArgs(args)
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	replaceCobraCommands(root)

	cmd, err := root.ExecuteContextC(ctx)
	var verdict VerdictError
	if errors.Is(out.err, syscall.EPIPE) { // the reader closed the pipe, which is no failure
		out.err = nil
		if errors.Is(err, syscall.EPIPE) {
			err = nil
		}
	}

	if out.err != nil && (err == nil || errors.As(err, &verdict)) {
		err, understood = fmt.Errorf("the result could not be written: %w", out.err), true
	}

	switch {
	case err == nil:
		return ExitYes
	case errors.As(err, &verdict):
		return verdict.Code
	}

	// The reason of a cancelled context is a signal.
	message := err.Error()
	if ctx.Err() != nil {
		message = strings.ReplaceAll(message, context.Canceled.Error(),
			"stopped by a signal, before the command was done")
	}

	fmt.Fprintf(s.Err, "%s: %s\n", root.Name(), visible.Lines(message))
	if !understood {
		fmt.Fprintf(s.Err, "usage: %s (more: %s --help)\n", cmd.UseLine(), cmd.CommandPath())
	}

	return ExitFailed
}

// stickyWriter keeps the first error, so that a result that could not be written does not exit with
// 0.
type stickyWriter struct {
	to  io.Writer
	err error
}

// Write passes the bytes on and keeps the first error.
func (s *stickyWriter) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// Group makes a command that has only commands of its own.
func Group(use string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Args: NoSuchCommand, RunE: printHelp}
	cmd.AddCommand(commands...)
	return cmd
}

// AddHelp gives a command and those below it their help. The text has a section for each: a heading
// with its path, a line that says what it does, its description, and examples in a fence.
func AddHelp(cmd *cobra.Command, text string) {
	if _, sections, found := strings.Cut(text, "## "+cmd.CommandPath()+"\n"); found {
		section, _, _ := strings.Cut(sections, "\n## ")
		short, long, _ := strings.Cut(section, "\n")
		long, example, _ := strings.Cut(long, "```sh\n")
		example = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(example), "```"))
		cmd.Short, cmd.Long = short, strings.TrimSpace(long)
		if example != "" {
			cmd.Example = "  " + strings.ReplaceAll(example, "\n", "\n  ")
		}
	}
	for _, sub := range cmd.Commands() {
		AddHelp(sub, text)
	}
}

// suggestedDistance bounds the edit distance of suggested commands.
const suggestedDistance = 2

// NoSuchCommand refuses an unknown command, and suggests similar ones.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := cobra.NoArgs(cmd, args)
	cmd.SuggestionsMinimumDistance = suggestedDistance
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 && args[0] != "" {
		return fmt.Errorf("%w (did you mean %s?)", err, strings.Join(similar, " or "))
	}
	return err
}

// replaceCobraCommands replaces what cobra's help and completion do without a known command: cobra
// exits with 0.
func replaceCobraCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Run, c.RunE = nil, printHelpOf
		case "completion":
			c.RunE = printHelp
		}
	}
}

// printHelpOf prints the help of a command.
func printHelpOf(c *cobra.Command, args []string) error {
	topic, unused, err := c.Root().Find(args)
	if err != nil {
		return err
	}
	if len(unused) > 0 {
		return fmt.Errorf("there is no command %q to help with", strings.Join(args, " "))
	}
	topic.InitDefaultHelpFlag()
	return topic.Help()
}

func printHelp(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// MustFlags makes flags required.
func MustFlags(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag does not exist
		}
	}
}

// Version is the module's version that is built in, or devel.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
