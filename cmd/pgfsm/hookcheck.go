package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/clientfile"
	"pgfsm/internal/hook"
	"pgfsm/internal/visible"
)

// hookCheckTime is how long the hook may take when it is checked.
const hookCheckTime = 10 * time.Second

func newHookCheck(w world) *cobra.Command {
	var file string
	var asJSON bool
	cmd := newCommand("check {claude|codex|cursor|gemini|vscode}", cobra.ExactArgs(1), func(cmd *cobra.Command, words []string) error {
		if err := notEmpty(cmd, "file"); err != nil {
			return err
		}
		return checkHook(cmd.Context(), w, words[0], file, asJSON)
	})
	cmd.Flags().StringVar(&file, "file", "", "another `FILE` with the client's hooks")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// hookCheck is the --json form of a check.
type hookCheck struct {
	SchemaVersion int      `json:"schema_version"`
	Client        string   `json:"client"`
	File          string   `json:"file"`
	Command       string   `json:"command"`
	Missing       []string `json:"missing,omitzero"` // the events without the hook
	Denied        bool     `json:"denied"`           // the call that no policy allows
	Answer        string   `json:"answer"`           // what the hook printed about it
	FailsOpen     bool     `json:"fails_open"`
	NotEnforced   []string `json:"not_enforced"`
}

// checkHook starts the hook as the client's settings say, with a call that must be denied.
func checkHook(ctx context.Context, w world, client, path string, asJSON bool) error {
	hooks, err := clientfile.FindHooks(client)
	if err != nil {
		return err
	}
	if path == "" {
		if path, err = hooks.Path(runtime.GOOS, w.env); err != nil {
			return err
		}
	}
	file, err := clientfile.Read(path)
	if err != nil {
		return err
	}

	limit := hook.LimitsOf(client)
	c := hookCheck{
		SchemaVersion: cli.SchemaVersion,
		Client:        client,
		File:          path,
		Command:       hooks.Command(file),
		FailsOpen:     limit.FailsOpen,
		NotEnforced:   limit.Runs,
	}
	if c.Command == "" {
		return fmt.Errorf("%s has no hook of pgfsm for %s: pgfsm link %s --hooks writes it", path, hooks.Events[0], client)
	}
	c.Missing = hooks.Missing(file, c.Command)
	c.Denied, c.Answer = askHook(ctx, c.Command, client)

	if asJSON {
		err = cli.PrintJSON(w.stdout, c)
	} else {
		c.print(w, limit.Title)
	}
	if err == nil && (!c.Denied || len(c.Missing) > 0) {
		err = cli.Exit(cli.ExitNo)
	}
	return err
}

// askHook starts a command with a shell, as clients do, and returns whether the gateway denied the
// call, and what the command printed.
func askHook(ctx context.Context, command, client string) (denied bool, printed string) {
	ctx, cancel := context.WithTimeout(ctx, hookCheckTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	if runtime.GOOS == "windows" {
		cmd = exec.CommandContext(ctx, "cmd", "/C", command)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(hook.CheckInput(client)), &stdout, &stderr
	err := cmd.Run()

	printed = strings.TrimSpace(stdout.String())
	switch {
	case err != nil && stderr.Len() > 0:
		return false, strings.TrimSpace(stderr.String())
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return false, fmt.Sprintf("it did not answer within %s", hookCheckTime)
	case err != nil:
		return false, err.Error()
	}
	return strings.Contains(printed, `"deny"`), printed
}

func (c *hookCheck) print(w world, title string) {
	fmt.Fprintf(w.stdout, "settings: %s starts %s\n", visible.Text(c.File), visible.Text(c.Command))
	if len(c.Missing) > 0 {
		fmt.Fprintf(w.stdout, "          but not in the same way for %s: pgfsm link %s --hooks --force\n", strings.Join(c.Missing, ", "), c.Client)
	}
	switch {
	case c.Denied:
		fmt.Fprintf(w.stdout, "call:     the gateway denied the tool %s, as it must\n", hook.CheckTool)
	case strings.Contains(c.Command, " --observe"):
		fmt.Fprintln(w.stdout, "call:     not denied: the hook only observes")
	default:
		fmt.Fprintf(w.stdout, "call:     not denied by the gateway: %s\n", visible.Line(c.Answer))
	}
	fmt.Fprintf(w.stdout, "client:   not asked: only the model of %s makes calls. Let it run a command that no policy allows, and see that it is denied\n", title)

	if c.FailsOpen {
		fmt.Fprintf(w.stdout, "%s fails open. A call runs although nobody allowed it if\n", title)
	} else {
		fmt.Fprintf(w.stdout, "A hook is a question, not a wall. With %s, a call runs although nobody allowed it if\n", title)
	}
	for _, limit := range c.NotEnforced {
		fmt.Fprintf(w.stdout, "  - %s\n", limit)
	}
}
