package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/tool"
	"pgfsm/mcp/demo"
)

var fencePattern = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// split splits a line as a shell does, as far as the pages need it.
func split(line string) (words []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|([^\s'"]+)`).FindAllStringSubmatch(line, -1) {
		words = append(words, m[1]+m[2]+m[3])
	}
	return words
}

// journeys are the pages whose commands are run one after the other, in the folder and with the state that the pages before
// left behind.
var journeys = []struct {
	page, from, to string // from one heading up to another
	commands       int    // at least
}{
	{"README.md", "## A gateway", "## The machine", 3},
	{"docs/guide/quickstart.md", "# ", "", 18},
	{"docs/guide/gateway.md", "# ", "", 1},
	{"docs/guide/approvals.md", "# ", "", 2},
	{"docs/operate/monitoring.md", "# ", "", 4},
	{"docs/operate/identity.md", "# ", "", 4},
	{"docs/guide/policies.md", "# ", "", 3},
}

// A traveller runs the commands of pages as a reader types them.
type traveller struct {
	*testing.T
	env               map[string]string
	admin             string // the administrator's token, which the reader keeps
	run, digest, tool string // what the pages call RUN, DIGEST and sha256:…
	ran               int
}

// TestDocsJourneys: the commands of README and of the guide do what the pages say, from the first to the last.
func TestDocsJourneys(t *testing.T) {
	fleet, err := demo.Listen(t.Context(), []string{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"})
	check.NoError(t, err)
	t.Cleanup(func() {
		if err := fleet.Close(); err != nil {
			t.Error(err)
		}
	})
	root, err := filepath.Abs(repository)
	check.NoError(t, err)
	dir := t.TempDir()
	real := strings.NewReplacer("http://127.0.0.1:5103/mcp", fleet.URL("mcp-policy-kb", "mcp"),
		"http://127.0.0.1:5101/sse", fleet.URL("mcp-sharepoint", "sse"))
	client := fmt.Sprintf(`{"mcpServers": {"kb": {"url": %q}}}`, fleet.URL("mcp-policy-kb", "mcp"))
	clitest.Write(t, filepath.Join(dir, ".mcp.json"), client)
	tr := &traveller{T: t, env: map[string]string{"HOME": dir, "XDG_CONFIG_HOME": filepath.Join(dir, "config")}}
	for _, j := range journeys {
		doc := clitest.Read(t, filepath.Join(root, filepath.FromSlash(j.page)))
		_, rest, found := strings.Cut(doc, j.from)
		if j.to != "" && found {
			rest, _, found = strings.Cut(rest, j.to)
		}
		if !found {
			t.Fatalf("%s has no %q, or no %q behind it", j.page, j.from, j.to)
		}
		t.Chdir(dir)
		before := tr.ran
		for section := range strings.SplitSeq(rest, "\n## ") {
			delete(tr.env, tokenVariable) // another section is another person
			tr.reads(j.page, real.Replace(section))
		}
		if tr.ran-before < j.commands {
			t.Errorf("%s: %d commands ran, want at least %d: the search is blind", j.page, tr.ran-before, j.commands)
		}
	}
	if tr.run == "" || tr.digest == "" {
		t.Error("no call was held: the journey to an approval leads nowhere")
	}
	if r := command(t.Context(), tr.env, "ledger", "show", "--ledger", "sqlite:pgfsm.db", tr.run); !strings.Contains(r.Stdout, "executed") {
		t.Errorf("the approved call was not made:\n%s%s", r.Stdout, r.Stderr)
	}
}

// reads does what the blocks of a section show.
func (tr *traveller) reads(page, section string) {
	tr.Helper()
	for _, fence := range fencePattern.FindAllStringSubmatch(section, -1) {
		if fence[1] != "sh" {
			tr.writes(fence[1], fence[2])
			continue
		}
		for line := range strings.Lines(fence[2]) {
			tr.types(page, line)
		}
	}
}

// writes keeps a file as a page shows it: one that begins with its name, what is to be added to it, or the allowlist.
func (tr *traveller) writes(kind, text string) {
	tr.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
	flag := os.O_TRUNC
	switch {
	case kind == "json" && (strings.HasPrefix(text, `{"mcp-policy-kb"`) || strings.HasPrefix(text, `{"billing"`)):
		name = "allowlist.json"
	case kind == "yaml" && name == "more of pgfsm.yaml":
		name, flag = "pgfsm.yaml", os.O_APPEND
	case kind != "yaml" || strings.Contains(name, " ") || !strings.HasSuffix(name, ".yaml"):
		return
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|flag, 0o600)
	if err != nil {
		tr.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		tr.Fatal(err)
	}
}

// types runs one line. It exits with 0, or with what the comment beside it says. A command that serves is left out: it runs
// until it is stopped. So is link, which refuses a program that go test made: the script link has its commands.
func (tr *traveller) types(page, line string) {
	tr.Helper()
	line, comment, _ := strings.Cut(strings.TrimSpace(line), " #")
	line = strings.TrimSpace(line)
	if line == "unset "+tokenVariable {
		delete(tr.env, tokenVariable)
		return
	}
	token := false
	if inner, ok := strings.CutPrefix(line, `export PGFSM_TOKEN="$(`); ok {
		line, token = strings.TrimSuffix(inner, `)"`), true
	}
	rest, ok := strings.CutPrefix(line, "pgfsm ")
	if words := split(rest); !ok || slices.Contains(words, "serve") || words[0] == "link" {
		return
	}
	want := exitYes
	if _, code, said := strings.Cut(comment, "exits with "); said {
		want = int(code[0] - '0')
	}
	tr.learns()
	args := split(strings.NewReplacer("RUN", tr.run, "DIGEST", tr.digest, "sha256:…", tr.tool, "SERVER TOOL", "kb fetch_policy_entry").Replace(rest))
	if strings.HasPrefix(rest, "init --from") || strings.HasPrefix(rest, "allow ") {
		args = append(args, "--yes") // the reader's answer
	}
	env := tr.env
	if strings.HasPrefix(rest, "token create") && tr.admin != "" {
		env = maps.Clone(env)
		env[tokenVariable] = tr.admin
	}
	tr.ran++
	r := command(tr.Context(), env, args...)
	if r.Code != want {
		tr.Errorf("%s: pgfsm %s: exit code %d, want %d\n%s%s", page, rest, r.Code, want, r.Stdout, r.Stderr)
	}
	if token {
		tr.env[tokenVariable] = strings.TrimSpace(r.Stdout)
		if strings.Contains(rest, "--role admin") {
			tr.admin = tr.env[tokenVariable]
		}
	}
}

// learns finds what the pages cannot know: the definition of the first tool, the run that waits and its digest.
func (tr *traveller) learns() {
	if tr.tool == "" {
		if _, err := os.Stat("allowlist.json"); err == nil {
			r := command(tr.Context(), tr.env, "tools", "--json")
			for i := 0; tr.tool == "" && i < 9; i++ {
				if at := fmt.Sprintf("/tools/%d", i); r.Member(at+"/name") == "fetch_policy_entry" {
					tr.tool = r.Member(at + "/definition")
				}
			}
		}
	}
	if tr.run == "" && tr.env[tokenVariable] != "" {
		tr.run = command(tr.Context(), tr.env, "approvals", "list", "--json").Member("/requests/0/run")
		tr.digest = command(tr.Context(), tr.env, "approvals", "show", tr.run, "--json").Member("/request/binding")
	}
}

// TestDocsGatewayCurl sends the README's call to a gateway, once as it stands and once with the tool that is allowed.
func TestDocsGatewayCurl(t *testing.T) {
	t.Parallel()
	tool.Path(t, "curl", "curl")
	example := curlFence.FindStringSubmatch(clitest.Read(t, filepath.Join(repository, "README.md")))
	if example == nil {
		t.Fatal("README.md has no call by curl")
	}
	fleet, err := demo.Listen(t.Context(), []string{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"})
	check.NoError(t, err)
	defer fleet.Close()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pgfsm.yaml":     "version: 1\nservers:\n  mcp-sharepoint: {url: " + fleet.URL("mcp-sharepoint", "mcp") + "}\nallowlist: allowlist.json\n",
		"allowlist.json": `{"mcp-sharepoint": ["fetch_sharepoint_doc"]}`,
	} {
		clitest.Write(t, filepath.Join(dir, name), text)
	}
	s := serve(t, dir)
	text := strings.ReplaceAll(example[1], "http://127.0.0.1:8787", s.base)
	for _, tc := range []struct{ name, text, want string }{
		{"refused", text, `"code":"tool_not_allowed","effect":"not_sent"`},
		{"allowed", strings.ReplaceAll(text, "delete_sharepoint_doc", "fetch_sharepoint_doc"), `"structuredContent":{`},
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", tc.text)
		cmd.Env = append(os.Environ(), "no_proxy=*")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), tc.want) {
			t.Errorf("%s: %v\n%s", tc.name, err, out)
		}
	}
}
