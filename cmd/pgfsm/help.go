package main

import (
	_ "embed"
	"strings"

	"github.com/spf13/cobra"
)

// helpText has the help of every command: a heading with its path, a line that says what it does, its description, and examples in a fence.
//
//go:embed help.md
var helpText string

// addHelp gives a command and those below it the help that helpText has for them.
func addHelp(cmd *cobra.Command) {
	if _, rest, found := strings.Cut(helpText, "## "+cmd.CommandPath()+"\n"); found {
		section, _, _ := strings.Cut(rest, "\n## ")
		short, long, _ := strings.Cut(section, "\n")
		long, example, _ := strings.Cut(long, "```sh\n")
		example = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(example), "```"))
		cmd.Short, cmd.Long = short, strings.TrimSpace(long)
		if example != "" {
			cmd.Example = "  " + strings.ReplaceAll(example, "\n", "\n  ")
		}
	}
	for _, sub := range cmd.Commands() {
		addHelp(sub)
	}
}
