package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pgfsm/internal/cli"
	"pgfsm/internal/clientfile"
	"pgfsm/internal/hook"
	"pgfsm/internal/hookcheck"
	"pgfsm/internal/visible"
)

// hookCheckTime is how long the hook may take when it is checked.
const hookCheckTime = 10 * time.Second

// clientCheckTime is how long the client itself may take.
const clientCheckTime = time.Minute

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
	Tried         bool     `json:"tried"`            // the client itself, with a scripted model
	Obeyed        bool     `json:"obeyed"`           // the client did not make the call
	Note          string   `json:"note"`             // about the client itself
	FailsOpen     bool     `json:"fails_open"`
	NotEnforced   []string `json:"not_enforced"`
}

// checkHook starts the hook as the client's settings say, with a call that must be denied.
func checkHook(ctx context.Context, w world, client, path string, asJSON bool) error {
	hooks, err := clientfile.FindHooks(client)
	if err != nil {
		return err
	}
	elsewhere := path != ""
	if !elsewhere {
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
	if elsewhere {
		c.Note = "not tried, because it may not read " + visible.Text(path)
	} else {
		c.Tried, c.Obeyed, c.Note = askClient(ctx, client, limit.Title)
	}

	code := cli.ExitYes
	if !c.Denied || len(c.Missing) > 0 || c.Tried && !c.Obeyed {
		code = cli.ExitNo
	}
	return w.printDocument(asJSON, c, code, func(io.Writer, ink) { c.print(w, limit.Title) })
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

// askClient lets the client on the PATH run a command that does nothing, with a scripted model, and
// returns whether it did not run it because of the hook.
func askClient(ctx context.Context, name, title string) (tried, obeyed bool, note string) {
	client := hookcheck.Find(name)
	if client == nil {
		return false, false, fmt.Sprintf("not tried: %s has no mode for that. Let it run the command %q, which the gateway denies",
			title, hook.CheckCommand)
	}
	if _, err := exec.LookPath(client.Program); err != nil {
		return false, false, "not tried: " + client.Program + " is not on the PATH. Let it run the command " +
			strconv.Quote(hook.CheckCommand) + ", which the gateway denies"
	}
	folder, err := os.MkdirTemp("", "pgfsm-hook-check")
	if err != nil {
		return false, false, "not tried: " + err.Error()
	}
	defer os.RemoveAll(folder)

	ctx, cancel := context.WithTimeout(ctx, clientCheckTime)
	defer cancel()
	outcome, err := client.Run(ctx, hookcheck.Options{Folder: folder, Environment: os.Environ(), Command: hook.CheckCommand})
	switch {
	case err != nil:
		return false, false, "not tried: " + err.Error()
	case !outcome.Called || outcome.Result == "":
		return false, false, title + " could not be tried with a scripted model; it printed: " + visible.Cut(outcome.Output, maxTold, "…")
	case strings.Contains(outcome.Result, hook.DeniedText):
		return true, true, title + " asked the hook, and did not run the command"
	}
	return true, false, title + " did not obey: it did not start the hook, or the hook did not deny"
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
	fmt.Fprintf(w.stdout, "client:   %s\n", visible.Line(c.Note))

	if c.FailsOpen {
		fmt.Fprintf(w.stdout, "%s fails open. A call runs although nobody allowed it if\n", title)
	} else {
		fmt.Fprintf(w.stdout, "A hook is a question, not a wall. With %s, a call runs although nobody allowed it if\n", title)
	}
	for _, limit := range c.NotEnforced {
		fmt.Fprintf(w.stdout, "  - %s\n", limit)
	}
}
