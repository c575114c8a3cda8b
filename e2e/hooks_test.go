package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"pgfsm/internal/hook"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// A coder is Claude Code in a folder with the starter bundle for coding agents, as far as its hooks see it.
type coder struct {
	*testing.T
	dir    string
	s      *served
	at     string // the gateway as its hooks reach it
	secret string // a file with a token of the role hook
	token  string
}

// newCoder writes the starter bundle, with a short time for reports and other settings of serve, and starts the gateway.
func newCoder(t *testing.T, serving ...string) *coder {
	t.Helper()
	dir := t.TempDir()
	command(t.Context(), nil, "init", "--bundle", "coding-agent", dir).Want(t, exitYes)
	path := filepath.Join(dir, "pgfsm.yaml")
	text, err := os.ReadFile(path)
	check.NoError(t, err)
	short := strings.Replace(string(text), "report_within: 10m", strings.Join(append(serving, "report_within: 1s"), "\n  "), 1)
	check.NoError(t, os.WriteFile(path, []byte(short+"\nledger: sqlite:pgfsm.db\n"), 0o600))
	c := &coder{T: t, dir: dir, s: serve(t, dir), secret: filepath.Join(dir, "hook.token")}
	c.at = c.s.base
	c.token = makeToken(t, path, ledger.RoleHook, "ada")
	check.NoError(t, os.WriteFile(c.secret, []byte(c.token+"\n"), 0o600))
	return c
}

// hook starts the hook with an event of Claude Code, and returns what it prints.
func (c *coder) hook(event, call, command string) string {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), "pgfsm", "hook", "claude", "--gateway", c.at, "--token-file", c.secret)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(
		`{"hook_event_name":%q,"session_id":"s-1","prompt_id":"p-1","cwd":"/home/me/project","tool_name":"Bash","tool_input":{"command":%q},`+
			`"tool_response":{"stdout":""},"tool_use_id":%q}`, event, command, call))
	out, err := cmd.Output()
	if err != nil {
		c.Errorf("%s of %q: %v, %s", event, command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// ask posts an event to the gateway; the answer denies if there is none.
func (c *coder) ask(e hook.Event) (answer hook.Answer) {
	body, err := json.Marshal(e)
	check.NoError(c, err)
	resp, err := send(c.Context(), http.MethodPost, c.s.base+hook.Path,
		http.Header{"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/json"}}, string(body))
	if err != nil {
		return answer
	}
	defer resp.Body.Close()
	if json.NewDecoder(resp.Body).Decode(&answer) != nil {
		return hook.Answer{}
	}
	return answer
}

func bash(call, command string) hook.Event {
	args, _ := json.Marshal(map[string]string{"command": command})
	return hook.Event{Kind: hook.KindCall, Client: "claude", Session: "s-1", Call: call, Tool: "Bash", Arguments: args}
}

// runs returns the runs of the ledger, oldest first.
func (c *coder) runs() (runs []ledger.RunRow) {
	inLedger(c.T, c.dir, func(r ledger.Reader) error {
		runs = nil
		for q, err := range r.Runs(ledger.Filter{}) {
			if err != nil {
				return err
			}
			runs = append(runs, q)
		}
		return nil
	})
	return runs
}

// TestHooksJourney: a coding agent asks about its calls by its hook. One is allowed and reported, one waits for a person and is made
// after the approval, and one is denied. The record of all of them verifies.
func TestHooksJourney(t *testing.T) {
	t.Parallel()
	c := newCoder(t)
	if out := c.hook("PreToolUse", "call-1", "git status --short"); out != "{}" {
		t.Errorf("an allowed call: the client gets %s, want no objection", out)
	}
	c.hook("PostToolUse", "call-1", "git status --short")
	if out := c.hook("PreToolUse", "call-2", "cat /home/me/.ssh/id_rsa"); !strings.Contains(out, `"permissionDecision":"deny"`) {
		t.Errorf("a call that names a key: the client gets %s, want a denial", out)
	}

	held := c.hook("PreToolUse", "call-3", "git push")
	runs := c.runs()
	run := runs[len(runs)-1]
	if run.Status != ledger.Pending || !strings.Contains(held, "deny") || !strings.Contains(held, "/console/calls/"+run.RunID) {
		t.Fatalf("a held call: the client gets %s; the run is %s", held, run.Status)
	}
	c.s.decide(t, "approve", run.RunID, makeToken(t, c.s.config, ledger.RoleApprover, "bob"))
	inLedger(t, c.dir, func(r ledger.Reader) error {
		for e, err := range ledger.EventsOf(r, run.RunID) {
			if err != nil {
				return err
			}
			at, err := time.Parse(time.RFC3339, e.At)
			check.NoError(t, err)
			until := at.Add(time.Hour).Format(policy.TimeForm)
			if e.Type == ledger.ApprovalApproved && !strings.Contains(string(e.Payload), `"expires":"`+until+`"`) {
				t.Errorf("the approval of %s does not expire after claim_within: %s", e.At, e.Payload)
			}
		}
		return nil
	})
	if out := c.hook("PreToolUse", "call-4", "git push"); out != "{}" {
		t.Errorf("the same call after the approval: the client gets %s, want no objection", out)
	}
	c.hook("PostToolUse", "call-4", "git push --force")
	if out := c.hook("PreToolUse", "call-5", "git push"); !strings.Contains(out, "deny") {
		t.Errorf("the same call once more: the client gets %s, want it held again", out)
	}

	var ends []string
	for _, q := range c.runs() {
		ends = append(ends, strings.TrimSpace(fmt.Sprint(q.Status, " ", q.Code)))
	}
	if want := []string{"reported", "denied policy_denied", "reported rewritten", "pending"}; !slices.Equal(ends, want) {
		t.Errorf("the runs ended as %q, want %q", ends, want)
	}
	c.s.stop(t, exitYes)
	commandIn(t.Context(), c.dir, nil, "ledger", "verify", "--deep").Want(t, exitYes)
}

// TestHooksOverASocket: the gateway listens on a unix socket that only its user can reach, and that needs a token too. It replaces the
// socket of a gateway that was killed, but not that of one that runs, and removes its own when it ends.
func TestHooksOverASocket(t *testing.T) {
	t.Parallel()
	c := newCoder(t, "socket: pgfsm.sock")
	socket := filepath.Join(c.dir, "pgfsm.sock")
	c.at = "unix:" + socket
	if info, err := os.Stat(socket); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Fatalf("the socket is %v, %v, want one that only its owner can use", info, err)
	}
	if out := c.hook("PreToolUse", "call-1", "git status --short"); out != "{}" {
		t.Errorf("an allowed call: the client gets %s, want no objection", out)
	}
	if out := c.hook("PreToolUse", "call-2", "cat .env"); !strings.Contains(out, "policy_denied") {
		t.Errorf("a call that names credentials: the client gets %s, want a denial", out)
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	defer client.CloseIdleConnections()
	for _, path := range []string{"/mcp", hook.Path} {
		resp, err := client.Post("http://localhost"+path, "application/json", strings.NewReader(`{}`))
		check.NoError(t, err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("without a token %s answers %d, want 401", path, resp.StatusCode)
		}
	}

	commandIn(t.Context(), c.dir, nil, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0").
		Expect(t, exitCould, "serve.socket: another process listens on")
	c.s.kill()
	c.s = serve(t, c.dir)
	if out := c.hook("PostToolUse", "call-1", "git status --short"); out != "{}" {
		t.Errorf("after the gateway was killed: the client gets %s", out)
	}
	c.s.stop(t, exitYes)
	if _, err := os.Lstat(socket); !os.IsNotExist(err) {
		t.Errorf("after the end: %v, want no socket", err)
	}
}

// TestHooksDecideAsTheTestsOfTheBundleSay: for each call of the tests of the starter bundle, the hook gets the decision that its test
// expects.
func TestHooksDecideAsTheTestsOfTheBundleSay(t *testing.T) {
	t.Parallel()
	c := newCoder(t)
	text, err := os.ReadFile(filepath.Join(c.dir, "tests.yaml"))
	check.NoError(t, err)
	var file struct {
		Tests []struct {
			Name  string
			Input struct {
				Server, Tool string
				Args         any
			}
			Expect string
		}
	}
	check.NoError(t, yaml.Unmarshal(text, &file))
	asked := 0
	for i, test := range file.Tests {
		if test.Input.Server != "claude" {
			continue
		}
		asked++
		args, err := json.Marshal(test.Input.Args)
		check.NoError(t, err)
		e := bash(fmt.Sprint("call-", i), "")
		e.Tool, e.Arguments = test.Input.Tool, args
		answer := c.ask(e)
		got := "deny"
		switch {
		case answer.Allowed:
			got = "allow"
		case answer.Code == "approval_required":
			got = "pending"
		}
		// The tests are about policies: a gate before them may deny what a policy would hold.
		earlier := slices.Contains([]string{"arguments_invalid", "tool_not_allowed", "too_many_held"}, answer.Code)
		if got != test.Expect && (test.Expect == "allow" || !earlier) {
			t.Errorf("%s: %+v, want %s", test.Name, answer, test.Expect)
		}
	}
	if asked < 50 {
		t.Errorf("%d calls were asked about", asked)
	}
}

// TestHooksSurviveKills: the gateway is killed after it has decided about a call, and before the client reports it. Nothing is decided
// twice, and each call without a report ends as unreported.
func TestHooksSurviveKills(t *testing.T) {
	t.Parallel()
	c := newCoder(t)
	kills := killsWanted(t)
	permitted := make(map[string]string) // the run of a call that the client was allowed to make
	for i := range kills {
		call := fmt.Sprint("call-", i)
		answered := make(chan hook.Answer, 1)
		go func() { answered <- c.ask(bash(call, "git status --short")) }()
		if i%2 == 0 { // as the answer arrives
			if answer := <-answered; answer.Allowed {
				permitted[call] = answer.Run
			}
			c.s.kill()
		} else { // at any moment
			c.s.kill()
			if answer := <-answered; answer.Allowed {
				permitted[call] = answer.Run
			}
		}
		c.s = serve(t, c.dir)
		again := c.ask(bash(call, "git status --short"))
		lapsed := again.Code == "call_id_reused" // by now
		if first, ok := permitted[call]; ok && again.Run != first || !again.Allowed && !lapsed {
			t.Fatalf("after the kill, %s is answered %+v, want the run %s", call, again, first)
		}
	}
	byCall := make(map[string]int)
	waitUntil(t, func() bool {
		open := false
		clear(byCall)
		for _, q := range c.runs() {
			byCall[q.ClientCall]++
			open = open || q.Status != ledger.Unreported
		}
		return !open
	})
	if len(byCall) != kills {
		t.Errorf("%d calls are recorded, want %d", len(byCall), kills)
	}
	for call, n := range byCall {
		if n != 1 {
			t.Errorf("%s has %d runs", call, n)
		}
	}
	c.s.stop(t, exitYes)
	commandIn(t.Context(), c.dir, nil, "ledger", "verify", "--deep").Want(t, exitYes)
}

// waitUntil waits until something is so.
func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	err := ledger.Poll(t.Context(), 50*time.Millisecond, func() (bool, error) { return done(), nil })
	check.NoError(t, err)
}

// TestDocsHooks types what the page about hooks says, up to the gateway, which has fixed ports.
func TestDocsHooks(t *testing.T) {
	t.Parallel()
	page := clitest.Read(t, filepath.Join(repository, "docs", "guide", "hooks.md"))
	_, steps, _ := strings.Cut(page, "\n## From nothing")
	steps, _, _ = strings.Cut(steps, "\n## ")
	script := "set -e\n"
	for _, fence := range fencePattern.FindAllStringSubmatch(steps, -1) {
		if running := regexp.MustCompile(`pgfsm (serve|link|hook|console)`); fence[1] == "sh" && !running.MatchString(fence[2]) {
			script += fence[2]
		}
	}

	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Env = append(os.Environ(), "HOME="+home)
	cmd.Dir = home
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	info, err := os.Stat(filepath.Join(home, ".config", "pgfsm", "hook.token"))
	if err != nil || info.Size() == 0 || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file is %v, %v, want one that only its owner can read", info, err)
	}
}
