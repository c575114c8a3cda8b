package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
)

const commandsBegin = "<!-- commands: generated -->\n"

// TestDocsCommandsAreCurrent holds docs/reference/cli.md to the commands and their help.
func TestDocsCommandsAreCurrent(t *testing.T) {
	path := filepath.Join(repository, "docs", "reference", "cli.md")
	page := clitest.Read(t, path)
	head, _, found := strings.Cut(page, commandsBegin)
	if !found {
		t.Fatalf("%s has no line %q", path, commandsBegin)
	}
	var b strings.Builder
	b.WriteString(head + commandsBegin)
	for _, cmd := range newRoot(world{}).Commands() {
		if cmd.Name() != "help" && cmd.Name() != "completion" { // cobra's own
			commandReference(&b, cmd)
		}
	}
	if *update {
		check.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	} else if diff := cmp.Diff(b.String(), page); diff != "" {
		t.Errorf("%s is not current; run go test ./cmd/pgfsm -run TestDocs -update (-want +got):\n%s", path, diff)
	}
}

// commandReference writes the section of a command and those of its subcommands.
func commandReference(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n\n    %s\n", cmd.CommandPath(), cmd.Short, cmd.UseLine())
	if cmd.Long != "" {
		fmt.Fprintf(b, "\n%s\n", strings.ReplaceAll(cmd.Long, "\n  ", "\n      ")) // a list becomes a block of code
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimPrefix(cmd.Example, "  "), "\n  ", "\n"))
	}
	if flags := cmd.LocalFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(b, "\n```text\n%s```\n", flags)
	}
	if cmd.HasAvailableInheritedFlags() {
		fmt.Fprintf(b, "\nAlso the flags of `%s`.\n", cmd.Parent().CommandPath())
	}
	for _, sub := range cmd.Commands() {
		commandReference(b, sub)
	}
}

// TestHelpIsComplete shows that every command has help, and that every section of help.md is of a command.
func TestHelpIsComplete(t *testing.T) {
	sections := strings.Count("\n"+helpText, "\n## ")
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if strings.Contains(helpText, "## "+cmd.CommandPath()+"\n") {
			sections--
		}
		if cmd.Short == "" {
			t.Errorf("%s has no help", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(world{}))
	if sections != 0 {
		t.Errorf("%d sections of help.md are of no command, want 0", sections)
	}
}
