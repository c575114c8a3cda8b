package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/cli"
	"pgfsm/internal/clientfile"
	"pgfsm/internal/config"
	"pgfsm/internal/hook"
	"pgfsm/internal/visible"
)

// hooksDocument is the --json form of the change that link --hooks made, or would make.
type hooksDocument struct {
	SchemaVersion int            `json:"schema_version"`
	Client        string         `json:"client"`
	File          string         `json:"file"`
	Command       string         `json:"command"`
	Change        string         `json:"change"` // none, added or replaced
	DryRun        bool           `json:"dry_run"`
	Backup        string         `json:"backup,omitzero"`
	FailsOpen     bool           `json:"fails_open"` // the client lets a call run whose hook does not answer
	Value         jsontext.Value `json:"value"`
}

// linkHooks adds the hook to the client's settings of hooks.
func (o *linkOptions) linkHooks(ctx context.Context, w world, name string) error {
	hooks, err := clientfile.FindHooks(name)
	if err != nil {
		return err
	}
	switch {
	case o.http || o.stdio || o.replace || o.server != "" || o.variable != "":
		return errors.New("--http, --stdio, --server, --token-env and --replace do not go together with --hooks")
	case o.tokenFile == "":
		return errors.New("--hooks needs --token-file: the file that holds a token of the role hook")
	}
	path := o.file
	if path == "" {
		if path, err = hooks.Path(runtime.GOOS, w.env); err != nil {
			return err
		}
	}
	loaded, source, err := loadConfig(w, &o.options)
	if err != nil {
		return err
	}
	command, err := o.hookCommand(loaded, name)
	if err != nil {
		return err
	}
	open, err := failsOpen(ctx, w, name, o.acceptFailOpen)
	if err != nil {
		return err
	}

	d := hooksDocument{
		SchemaVersion: cli.SchemaVersion,
		Client:        name,
		File:          path,
		Command:       command,
		DryRun:        o.dryRun,
		FailsOpen:     open,
		Value:         hooks.Value(command),
	}
	file, err := clientfile.Read(path)
	if err != nil {
		return err
	}
	edited, change, err := hooks.Set(file, command)
	switch d.Change = change; {
	case err != nil:
		d.printValue(w)
		return fmt.Errorf("%s: %w; nothing was written: add the entries to \"hooks\" yourself", path, err)
	case change == clientfile.Replaced && !o.force:
		return fmt.Errorf("%s has another hook of pgfsm, and nothing was written: look at it, then say --force to replace it", path)
	case change != clientfile.Same && !o.dryRun:
		if d.Backup, err = file.Write(edited); err != nil {
			return err
		}
	}

	if o.json {
		return cli.PrintJSON(w.stdout, d)
	}
	d.print(w, source)
	return nil
}

// hookCommand returns the command that the client starts: pgfsm-hook beside this program, or this
// program.
func (o *linkOptions) hookCommand(loaded *config.Loaded, client string) (string, error) {
	gateway, err := o.hookGateway(loaded)
	if err != nil {
		return "", err
	}
	token, err := filepath.Abs(o.tokenFile)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(token); err != nil {
		return "", fmt.Errorf("--token-file: %w; make it with pgfsm token create --role hook", err)
	}
	program, err := ownProgram()
	if err != nil {
		return "", err
	}

	words := []string{program, "hook"}
	if small := filepath.Join(filepath.Dir(program), "pgfsm-hook"+filepath.Ext(program)); isProgram(small) {
		words = []string{small}
	}
	words = append(words, client, "--gateway", gateway, "--token-file", token)
	for i, word := range words {
		if words[i], err = quoteWord(word); err != nil {
			return "", err
		}
	}
	return strings.Join(words, " "), nil
}

// hookGateway returns the gateway as a hook on this machine reaches it.
func (o *linkOptions) hookGateway(loaded *config.Loaded) (string, error) {
	if socket := loaded.Serve.Socket; socket != "" {
		path, err := filepath.Abs(socket)
		return hook.SocketPrefix + path, err
	}
	endpoint, err := o.endpointURL(loaded)
	return strings.TrimSuffix(endpoint, "/mcp"), err
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// quoteWord quotes a word for the shell with which clients start hooks.
func quoteWord(word string) (string, error) {
	quote := "'"
	if runtime.GOOS == "windows" {
		quote = `"`
	}
	switch {
	case strings.Contains(word, quote):
		return "", fmt.Errorf("the path %s has a quotation mark: choose another", visible.Quote(word))
	case visible.PlainWord(word):
		return word, nil
	}
	return quote + word + quote, nil
}

// blockingSince is the first version of Claude Code that can deny a call whose hook fails.
var blockingSince = []int{2, 1, 295}

// failsOpen reports whether a client lets a call run whose hook does not answer. It refuses such a
// client unless that is accepted.
func failsOpen(ctx context.Context, w world, client string, accepted bool) (open bool, err error) {
	limit := hook.LimitsOf(client)
	why := fmt.Sprintf("%s fails open: it lets a call run whose hook cannot start, is killed or is too slow", limit.Title)
	open = limit.FailsOpen
	if client == "claude" {
		version, found := claudeVersion(ctx)
		switch {
		case !found:
			w.warn("claude is not on the PATH or does not tell its version: before 2.1.295, Claude Code lets a call run whose hook fails; " +
				"compare claude --version")
		case slices.Compare(version, blockingSince) < 0:
			open = true
			why = fmt.Sprintf("%s %d.%d.%d fails open: before 2.1.295, it lets a call run whose hook cannot start, is killed or is too slow; update it",
				limit.Title, version[0], version[1], version[2])
		}
	}

	switch {
	case open && !accepted:
		return open, errors.New(why + "; --accept-fail-open writes the hook nevertheless")
	case open:
		w.warn(why)
	}
	return open, nil
}

// versionPattern finds the version in what a client prints.
var versionPattern = regexp.MustCompile(`(\d+)\.(\d+)\.(\d+)`)

// versionTime is how long a client may take to print its version.
const versionTime = 10 * time.Second

// claudeVersion asks the claude on the PATH for its version.
func claudeVersion(ctx context.Context) (version []int, found bool) {
	ctx, cancel := context.WithTimeout(ctx, versionTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, "claude", "--version").Output()
	digits := versionPattern.FindStringSubmatch(string(out))
	if err != nil || digits == nil {
		return nil, false
	}
	for _, part := range digits[1:] {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, false
		}
		version = append(version, n)
	}
	return version, true
}

// print shows the entries as a change of the file. It shows no other part of the file, because any
// part may contain secrets.
func (d *hooksDocument) print(w world, source string) {
	path := visible.Text(d.File)
	switch {
	case d.Change == clientfile.Same:
		fmt.Fprintf(w.stdout, "%s has these hooks already; nothing was written\n", path)
		return
	case d.DryRun:
		fmt.Fprintf(w.stdout, "%s, in hooks (nothing was written):\n", path)
	default:
		fmt.Fprintf(w.stdout, "%s, in hooks:\n", path)
	}
	d.printValue(w)
	if d.DryRun {
		return
	}

	title := hook.LimitsOf(d.Client).Title
	if d.Backup != "" {
		fmt.Fprintf(w.stderr, "pgfsm: the file as it was is %s\n", visible.Text(d.Backup))
	}
	fmt.Fprintf(w.stderr, "pgfsm: start pgfsm serve -c %s, then restart %s\n", visible.Text(source), title)
	if d.Client == "codex" {
		fmt.Fprintln(w.stderr, "pgfsm: Codex runs a hook only after you trusted it: say /hooks in Codex")
	}
	fmt.Fprintf(w.stderr, "pgfsm: then try it with pgfsm hook check %s\n", d.Client)
}

// printValue prints the entries only.
func (d *hooksDocument) printValue(w world) {
	value := d.Value.Clone()
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		panic("an entry of ours is not JSON: " + err.Error())
	}
	for line := range strings.Lines(string(value) + "\n") {
		fmt.Fprintf(w.stdout, "+ %s", visible.Lines(line))
	}
}
