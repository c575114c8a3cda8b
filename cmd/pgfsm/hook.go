package main

import (
	"slices"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/hook"
)

func newHook(w world) *cobra.Command {
	cmd := newCommand("hook "+hook.Usage, cobra.ArbitraryArgs, func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && slices.Contains([]string{"-h", "--help"}, args[0]) {
			return cmd.Help()
		}
		return cli.Exit(hook.Run(cmd.Context(), args, w.getenv, w.stdin, w.stdout, w.stderr))
	})
	// A wrong flag must deny the call in the client's form, which only the hook knows.
	cmd.DisableFlagParsing = true
	cmd.DisableFlagsInUseLine = true
	cmd.AddCommand(newHookCheck(w))
	return cmd
}
