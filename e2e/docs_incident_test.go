package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger"
)

// What differs from run to run: ids, times, digests, names of logs, and how much a log has.
var masks = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`(?m)^[0-9a-f]{8}  `), "ID  "},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`), "TIME"},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "DIGEST"},
	{regexp.MustCompile(`pgfsm-log-[A-Z2-7]{26}`), "LOG"},
	{regexp.MustCompile(`\d+ (entr|request|blob|token)(y|ies|s)?\b`), "N $1"},
	{regexp.MustCompile(`the checkpoint has \d+`), "the checkpoint has N"},
}

func withoutIDs(line string) string {
	for _, m := range masks {
		line = m.pattern.ReplaceAllString(line, m.by)
	}
	return line
}

// unprinted are the lines of a page that a command did not print, or not in this order. A line of the page may be a part of a printed line.
func unprinted(shown, printed string) (missing []string) {
	rest := strings.Split(withoutIDs(printed), "\n")
	for line := range strings.Lines(shown) {
		want := withoutIDs(strings.TrimSpace(line))
		if want == "…" || want == "" {
			continue
		}
		at := 0
		for at < len(rest) && !strings.Contains(rest[at], want) {
			at++
		}
		if at == len(rest) {
			missing = append(missing, want)
			continue
		}
		rest = rest[at+1:]
	}
	return missing
}

// TestDocsIncident: an agent's call was approved and made. The commands of docs/operate/incident.md then print what the page shows.
func TestDocsIncident(t *testing.T) {
	t.Parallel()
	crm := mcptest.New(t, mcptest.Except("tools/list", `{"tools":[{"name":"delete_customer","inputSchema":{"type":"object","properties":{"id":{"type":"integer"}}}}]}`))
	dir := clitest.Folder(t, "pgfsm.yaml", "version: 1\nenv: prod\nservers: {crm: {type: http, url: "+clitest.Quote(crm.URL)+"}}\nallowlist: allowlist.json\n"+
		inOffice+"roles: {owners: [bob@example.com]}\n",
		"allowlist.json", `{"crm": ["delete_customer"]}`,
		"policy.yaml", "version: 1\npolicies:\n  - {id: deletions, match: {tool: 'delete_*'}, effect: pending, approvers: [owners], reason: An owner approves deletions.}\n",
		"elsewhere/.keep", "")
	s := serve(t, dir)
	bob := makeToken(t, s.config, "approver", "bob@example.com")
	bot := s.agent("/mcp", makeToken(t, s.config, "agent", "billing-bot"))
	run := bot.call("crm__delete_customer", `{"id":42}`).Result.Meta.Decision.RunID
	digest := command(t.Context(), map[string]string{tokenVariable: bob}, "approvals", "show", run, "-c", s.config, "--json").Member("/request/binding")
	command(t.Context(), map[string]string{tokenVariable: bob}, "approvals", "approve", run, "-c", s.config, "--digest", digest,
		"--reason", "ticket 4711").Want(t, exitYes)
	runEnded(t, dir, run, ledger.Executed, "")
	key := command(t.Context(), nil, "ledger", "key", "new", "-c", s.config, "-o", filepath.Join(dir, "pgfsm-log.key"))
	key.Want(t, exitYes)
	clitest.Write(t, filepath.Join(dir, "elsewhere", "pgfsm-log.pub"), key.Stdout)
	command(t.Context(), nil, "ledger", "checkpoint", "-c", s.config, "--key", filepath.Join(dir, "pgfsm-log.key"),
		"-o", filepath.Join(dir, "elsewhere", "pgfsm.checkpoint")).Want(t, exitYes)

	typed := strings.NewReplacer("01a217a1-1f5b-748e-9ba1-41e0562c29e3", run, "562c29e3", ledger.ShortID(run), "/elsewhere", filepath.Join(dir, "elsewhere"),
		"run.json", filepath.Join(dir, "run.json"), "run.tlog-proof", filepath.Join(dir, "run.tlog-proof"))
	all := consoleCommands(t, "docs/operate/incident.md")
	for _, c := range all {
		c.run(t, nil, typed, s.config, exitYes)
	}
	if len(all) != 7 {
		t.Errorf("%d commands of the page ran, want 7", len(all))
	}
}

// A consoleCommand is a command of a page with what it prints, in a block of the kind console.
type consoleCommand struct{ line, prints string }

// consoleCommands are those of a page that begin with pgfsm.
func consoleCommands(t *testing.T, page string) (all []consoleCommand) {
	t.Helper()
	for _, fence := range consoleFence.FindAllStringSubmatch(clitest.Read(t, filepath.Join(repository, page)), -1) {
		for command := range strings.SplitSeq("\n"+margin.ReplaceAllString(fence[1], ""), "\n$ ") {
			if line, prints, _ := strings.Cut(command, "\n"); strings.HasPrefix(line, "pgfsm ") {
				all = append(all, consoleCommand{line, prints})
			}
		}
	}
	return all
}

// Blocks in lists are indented.
var (
	consoleFence = regexp.MustCompile("(?ms)^ *```console\n(.*?)^ *```$")
	margin       = regexp.MustCompile("(?m)^ +")
)

// run runs the command on the ledger of a configuration, unless it names another one, and compares what it prints.
func (c consoleCommand) run(t *testing.T, env map[string]string, typed *strings.Replacer, config string, want int) {
	t.Helper()
	args := split(typed.Replace(strings.TrimPrefix(c.line, "pgfsm ")))
	if args[0] != "replay" && args[0] != "verify-proof" && !strings.Contains(c.line, " --ledger ") {
		args = append(args, "-c", config)
	}
	r := command(t.Context(), env, args...)
	if r.Code != want {
		t.Errorf("%s: exit code %d, want %d\n%s%s", c.line, r.Code, want, r.Stdout, r.Stderr)
	}
	for _, missing := range unprinted(c.prints, strings.ReplaceAll(r.Stdout, filepath.Dir(config)+string(os.PathSeparator), "")) {
		t.Errorf("%s does not print, or not in this order: %s\n%s", c.line, missing, r.Stdout)
	}
}
