package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

const grantTools = `{"tools":[
	{"name":"look","inputSchema":{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"},
		"of":{"type":"object","properties":{"kind":{"type":["string","null"]}}}}}},
	{"name":"list","inputSchema":{"type":"object"}},
	{"name":"erase","inputSchema":{"type":"object"}}]}`

// granted is a configuration for grants: a server that counts, and a model that obeys.
type granted struct {
	dir, config string
	server      *puppet
	count       *atomic.Int32
	hangs       atomic.Bool // at the call
	runs        int
}

// newGranted writes the configuration, with grants of its own if there are any, given by name and text.
func newGranted(t *testing.T, grants ...string) *granted {
	t.Helper()
	g := &granted{count: new(atomic.Int32)}
	g.server = newPuppet(t, func(method string) string {
		switch method {
		case "tools/list":
			return grantTools
		case "tools/call":
			g.count.Add(1)
			if g.hangs.Load() {
				return ""
			}
		}
		return honest(method)
	})
	o := newOracle(t, obeys)
	var names []string
	for i := 0; i < len(grants); i += 2 {
		names = append(names, grants[i])
	}
	more := ""
	if len(names) > 0 {
		more = "grants: [" + strings.Join(names, ", ") + "]"
	}
	g.config, _ = modelConfig(t, g.server.URL, o.URL+"/v1", "1m", more)
	g.dir = filepath.Dir(g.config)
	for i := 0; i+1 < len(grants); i += 2 {
		g.file(t, grants[i], grants[i+1])
	}
	return g
}

// file writes a grant and returns its path.
func (g *granted) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(g.dir, name)
	write(t, path, text)
	return path
}

// ask makes a call by asking for it, or by calling, with the flags given, and holds it to a code and to whether the
// server was called.
func (g *granted) ask(t *testing.T, how, tool, args, code string, flags ...string) ran {
	t.Helper()
	before := g.count.Load()
	words := append([]string{how, "--json", "-c", g.config}, flags...)
	if how == "run" {
		words = append(words, planFor("puppet", tool, args))
	} else {
		words = append(words, "puppet", tool, args)
	}
	r := command(t.Context(), nil, words...)
	g.runs++
	calls := int32(0)
	if code == "" {
		calls = 1
		r.want(t, exitYes, "/type", "tool_result", "/effect", "done")
	} else {
		gate := "grant"
		if code == "tool_not_allowed" {
			gate = "allowlist"
		}
		r.want(t, exitNo, "/type", "blocked", "/state", "blocked", "/gate", gate, "/code", code, "/effect", "not_sent")
	}
	if got := g.count.Load() - before; got != calls {
		t.Errorf("%s %s %s: calls that reached the server = %d, want %d", how, tool, args, got, calls)
	}
	return r
}

// oneGrant is a grant for one tool with the given constraints.
func oneGrant(tool, what string) string {
	return fmt.Sprintf("version: 1\ntools: {puppet: {%s: {%s}}}\n", tool, what)
}

// TestFaultsGrants: what a grant covers is called, and nothing else is.
func TestFaultsGrants(t *testing.T) {
	t.Parallel()
	const outside = "arguments_not_granted"
	for _, tt := range []struct {
		name, grant, tool, args, code string
	}{
		{"covered", oneGrant("look", ""), "look", `{"id":"a"}`, ""},
		{"tool-not-named", oneGrant("look", ""), "list", `{}`, "tool_not_granted"},
		{"never-wider-than-the-allowlist", oneGrant("erase", ""), "erase", `{}`, "tool_not_allowed"},
		{"equal", oneGrant("look", "args: {id: {eq: doc-001}}"), "look", `{"id":"doc-001"}`, ""},
		{"not-equal", oneGrant("look", "args: {id: {eq: doc-001}}"), "look", `{"id":"doc-002"}`, outside},
		{"large-numbers-differ", oneGrant("look", "args: {n: {eq: 9007199254740992}}"), "look",
			`{"n":9007199254740993}`, outside},
		{"counted-without-a-task", oneGrant("look", "calls: 5"), "look", `{}`, "grant_task_missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := newGranted(t)
			flag := "--grant=" + g.file(t, "grant.yaml", tt.grant)
			g.ask(t, "run", tt.tool, tt.args, tt.code, flag)
			// The same grant by the configuration says the same.
			c := newGranted(t, "grant.yaml", tt.grant)
			c.ask(t, "call", tt.tool, tt.args, tt.code)
			replays(t, filepath.Join(g.dir, "traces"), 1)
			replays(t, filepath.Join(c.dir, "traces"), 1)
		})
	}
}

// TestFaultsGrantsIntersect: two grants cover what both cover.
func TestFaultsGrantsIntersect(t *testing.T) {
	t.Parallel()
	const outside = "arguments_not_granted"
	g := newGranted(t, "of-the-house.yaml", "version: 1\ntools: {puppet: {look: {args: {id: {in: [a, b]}}}, list: {}}}\n")
	mine := "--grant=" + g.file(t, "mine.yaml", oneGrant("look", "args: {id: {in: [b, c]}}"))
	g.ask(t, "run", "look", `{"id":"b"}`, "", mine)
	g.ask(t, "call", "look", `{"id":"a"}`, outside, mine)
	g.ask(t, "run", "look", `{"id":"c"}`, outside, mine)
	g.ask(t, "call", "look", `{"id":"a"}`, "")
	g.ask(t, "run", "list", `{}`, "tool_not_granted", mine)
	replays(t, filepath.Join(g.dir, "traces"), g.runs)
}

// TestFaultsGrantCounts: a grant's calls are those of a task. What was refused does not count.
func TestFaultsGrantCounts(t *testing.T) {
	t.Parallel()
	g := newGranted(t)
	grant := "--grant=" + g.file(t, "grant.yaml",
		"version: 1\ntools: {puppet: {look: {calls: 2, args: {id: {in: [a, b]}}}, list: {}}}\n")
	g.ask(t, "run", "look", `{"id":"a"}`, "", grant, "--task=one")
	g.ask(t, "call", "look", `{"id":"c"}`, "arguments_not_granted", grant, "--task=one")
	g.ask(t, "call", "look", `{"id":"b"}`, "", grant, "--task=one")
	g.ask(t, "run", "look", `{"id":"a"}`, "grant_exhausted", grant, "--task=one")
	g.ask(t, "call", "look", `{"id":"a"}`, "grant_exhausted", grant, "--task=one")
	g.ask(t, "run", "list", `{}`, "", grant, "--task=one") // another tool, and not counted
	g.ask(t, "run", "look", `{"id":"a"}`, "", grant, "--task=two")
	g.ask(t, "run", "look", `{"id":"a"}`, "grant_task_missing", grant)
	g.ask(t, "run", "list", `{}`, "", grant)
	g.ask(t, "run", "look", `{"id":"z"}`, "", "--task=one") // without a grant nothing is narrowed
	replays(t, filepath.Join(g.dir, "traces"), g.runs)
}

// TestFaultsGrantAmongProcesses: of eight processes that work on one task at once, as many call as are granted.
func TestFaultsGrantAmongProcesses(t *testing.T) {
	t.Parallel()
	const many, most = 8, 3
	g := newGranted(t)
	grant := g.file(t, "grant.yaml", oneGrant("look", fmt.Sprintf("calls: %d", most)))
	var cmds []*exec.Cmd
	var outs, errs []fmt.Stringer
	for range many {
		cmd, stdout, stderr := child(t.Context(), "pgfsm", nil, "call", "--json", "-c", g.config, "--grant", grant,
			"--task", "one", "puppet", "look", `{"id":"a"}`)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds, outs, errs = append(cmds, cmd), append(outs, stdout), append(errs, stderr)
	}
	answered := 0
	for i, cmd := range cmds {
		r := ran{exitCodeOf(t, cmd.Wait()), outs[i].String(), errs[i].String()}
		if r.code == exitYes {
			answered++
			r.want(t, exitYes, "/type", "tool_result", "/effect", "done")
			continue
		}
		r.want(t, exitNo, "/type", "blocked", "/gate", "grant", "/code", "grant_exhausted", "/effect", "not_sent")
	}
	if got := g.count.Load(); got != most || answered != most {
		t.Errorf("%d calls reached the server and %d were answered, want %d", got, answered, most)
	}
	replays(t, filepath.Join(g.dir, "traces"), many)
}

// TestFaultsGrantSurvivesAKill: a call that was begun counts, whatever became of the process that made it.
func TestFaultsGrantSurvivesAKill(t *testing.T) {
	t.Parallel()
	g := newGranted(t)
	g.hangs.Store(true)
	grant := g.file(t, "grant.yaml", oneGrant("look", "calls: 2"))
	cmd, _, _ := child(t.Context(), "pgfsm", nil, "call", "--json", "-c", g.config, "--grant", grant, "--task", "one",
		"puppet", "look", `{}`)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.server.await(t, "tools/call")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait() // killed, as was to be
	g.hangs.Store(false)
	second := g.ask(t, "run", "look", `{}`, "", "--grant", grant, "--task", "one")
	if !strings.Contains(second.stderr, "ended as failed indeterminate") {
		t.Errorf("stderr = %q, want the killed run to end as indeterminate", second.stderr)
	}
	g.ask(t, "run", "look", `{}`, "grant_exhausted", "--grant", grant, "--task", "one")
	if got := g.count.Load(); got != 2 {
		t.Errorf("calls that reached the server = %d, want 2", got)
	}
	replays(t, filepath.Join(g.dir, "traces"), 3)
}
