package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/internal/test/cli"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/traces"
	"pgfsm/traces/backtest"
)

// backTest is a folder with two policies and n traces of one call.
func backTest(t *testing.T, n int) (root, before, after, past string) {
	t.Helper()
	root = cli.Folder(t, "old.yaml", "version: 1\npolicies: [{id: reads, match: {tool: \"fetch_*\"}, effect: allow}]\n",
		"new/policy.yaml", "version: 1\npolicies: [{id: all, effect: deny}]\n", "new/risk.yaml", "version: 1\n", "traces/readme.txt", "")
	recorded := t.TempDir()
	r := command(t.Context(), map[string]string{"SAFE_TRACE_DIR": recorded}, "run", "--json", "show policy-002")
	r.Want(t, exitYes)
	text, err := os.ReadFile(filepath.Join(recorded, traces.Name(r.Member("/run_id"))))
	if err != nil {
		t.Fatal(err)
	}
	past = filepath.Join(root, "traces")
	for i := range n {
		if err := os.WriteFile(filepath.Join(past, traces.Name(fmt.Sprintf("run-%02d", i))), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root, filepath.Join(root, "old.yaml"), filepath.Join(root, "new"), past
}

// TestPolicyDiffInParallel shows the same answer in any number of jobs, and that no file is changed.
func TestPolicyDiffInParallel(t *testing.T) {
	root, before, after, dir := backTest(t, 40)
	was := files(t, root)
	one := command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir, "--json", "--jobs", "1")
	many := command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir, "--json", "--jobs", "16")
	one.Want(t, exitYes, "/traces", "40", "/judged", "40", "/kinds/2/kind", "newly-denied", "/kinds/2/calls", "40")
	if one != many || one.Stderr != "" {
		t.Errorf("policy diff in one job = %+v, in sixteen %+v", one, many)
	}
	if !slices.Equal(was, files(t, root)) {
		t.Error("policy diff changed a file, or left one")
	}
}

// expiring is a context that is cancelled after a number of calls of Err.
type expiring struct {
	context.Context
	left atomic.Int64
}

func (e *expiring) Err() error {
	if e.left.Add(-1) < 0 {
		return context.Canceled
	}
	return e.Context.Err()
}

// TestPolicyDiffInterrupted shows that an interrupted command prints no part of an answer.
func TestPolicyDiffInterrupted(t *testing.T) {
	root, before, after, dir := backTest(t, 40)
	was := files(t, root)
	for _, asked := range []int64{0, 1, 20, 39, 40} {
		ctx := &expiring{Context: t.Context()}
		ctx.left.Store(asked)
		r := command(ctx, nil, "policy", "diff", before, after, "--traces", dir, "--json")
		if r.Code != exitCould || r.Stdout != "" || !strings.Contains(r.Stderr, "stopped by a signal") {
			t.Errorf("interrupted after %d: %+v, want exit code %d, the reason, and no answer", asked, r, exitCould)
		}
	}
	ctx := &expiring{Context: t.Context()}
	ctx.left.Store(1 << 20)
	command(ctx, nil, "policy", "diff", before, after, "--traces", dir).Want(t, exitYes)
	if !slices.Equal(was, files(t, root)) {
		t.Error("policy diff changed a file, or left one")
	}
}

// TestPolicyDiffOfWhatCannotBeUsed shows that one unusable trace is named, and that the exit code is 2.
func TestPolicyDiffOfWhatCannotBeUsed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(doc string) string
	}{
		{"argument-changed", func(doc string) string { return strings.Replace(doc, `policy-002`, `policy-003`, 1) }},
		{"environment-changed", func(doc string) string { return strings.Replace(doc, `"env":"`, `"env":"x`, 1) }},
		{"actor-changed", func(doc string) string { return strings.Replace(doc, `"actor":"local:`, `"actor":"local:x`, 1) }},
		{"cut", func(doc string) string { return doc[:len(doc)/2] }},
		{"empty", func(string) string { return "" }},
		{"no-trace", func(string) string { return "{}" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, before, after, dir := backTest(t, 20)
			bad := filepath.Join(dir, traces.Name("run-07"))
			doc, err := os.ReadFile(bad)
			if err != nil {
				t.Fatal(err)
			}
			if tt.change(string(doc)) == string(doc) {
				t.Fatal("the case changes nothing")
			}
			if err := os.WriteFile(bad, []byte(tt.change(string(doc))), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, more := range [][]string{nil, {"--fail-on", "newly-allowed,newly-denied,newly-held"}} {
				r := command(t.Context(), nil, slices.Concat([]string{"policy", "diff", before, after, "--traces", dir}, more)...)
				if r.Code != exitCould || !strings.Contains(r.Stderr, "run-07") || strings.Count(r.Stderr, "\n") != 1 {
					t.Errorf("policy diff %q = %+v, want exit code %d and the trace's name", more, r, exitCould)
				}
			}
			r := command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir, "--json")
			r.Want(t, exitCould, "/traces", "20", "/unusable", "1")
		})
	}
}

// TestPolicyDiffShowsNothingThatATerminalObeys shows that control characters of traces are escaped.
func TestPolicyDiffShowsNothingThatATerminalObeys(t *testing.T) {
	const bad = "x\x1b[31m\u202e\n\x07\x9b"
	r := func(decision string, quorum int) *ruling.Ruling {
		return &ruling.Ruling{Decision: decision, Code: bad, Policy: bad, Condition: bad + fmt.Sprint(quorum), RiskMode: bad + fmt.Sprint(quorum),
			Approvers: []string{bad + fmt.Sprint(quorum)}, Quorum: quorum, Expires: bad}
	}
	var all []backtest.Call
	for _, pair := range [][2]*ruling.Ruling{
		{r(rules.Allow, 1), r(rules.Deny, 2)}, {r(rules.Pending, 1), r(rules.Pending, 2)}, {r(rules.Allow, 1), r(rules.Allow, 2)},
	} {
		all = append(all, backtest.Call{Path: bad, RunID: bad, Tool: bad, Old: pair[0].Decision, New: pair[1].Decision, By: bad,
			Before: pair[0], After: pair[1], Kinds: ruling.Changes(pair[0], pair[1])})
	}
	all = append(all, backtest.Call{Path: bad, Err: errors.New(bad)})
	for _, asJSON := range []bool{false, true} {
		var stdout, stderr bytes.Buffer
		err := (&diffOptions{json: asJSON}).report(world{stdout: &stdout, stderr: &stderr, getenv: os.LookupEnv}, backtest.NewReport(all))
		if err == nil || strings.ContainsAny(stdout.String()+stderr.String(), "\x1b\u202e\x07\u009b") || strings.Contains(stdout.String(), "\x9b") {
			t.Errorf("report() = %v, json %t:\n%q\n%q", err, asJSON, stdout.String(), stderr.String())
		}
		if !asJSON && (strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stdout.String(), `\u001b[31m\u202e`)) {
			t.Errorf("report():\n%s\n%s\nwant one line of errors, and the escapes written out", stdout.String(), stderr.String())
		}
	}
}

// TestPolicyDiffOfHostileTraces shows that each is named with its fault, that none blocks the command, and that the others are judged.
func TestPolicyDiffOfHostileTraces(t *testing.T) {
	t.Parallel()
	_, before, after, dir := backTest(t, 10)
	good, err := os.ReadFile(filepath.Join(dir, traces.Name("run-00")))
	if err != nil {
		t.Fatal(err)
	}
	nested := strings.Repeat("[", 1<<18) + strings.Repeat("]", 1<<18)
	bad := map[string]string{
		"trace_deep.json":                strings.Repeat("[", 1<<20),
		"trace_deep_object.json":         strings.Repeat(`{"a":`, 1<<20),
		"trace_deep_inside.json":         strings.Replace(string(good), `"request":{`, `"request":{"x":`+nested+`,`, 1),
		"trace_list.json":                "[]",
		"trace_null.json":                "null",
		"trace_number.json":              strings.Repeat("9", 1<<20),
		"trace_twice.json":               strings.Replace(string(good), `{"`, `{"format":"pgfsm.trace/v1","format":"pgfsm.trace/v1","`, 1),
		"trace_more.json":                strings.Replace(string(good), `"steps":[`, `"more":1,"steps":[`, 1),
		"trace_text_behind.json":         string(good) + "{}",
		"trace_not_utf8.json":            strings.Replace(string(good), "policy-002", "policy-\xff\xfe", 1),
		"trace_\x1b[31m\u202eshown.json": "{}",
	}
	for name, text := range bad { // each a file of its own
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"trace_zero.json": "/dev/zero", "trace_self.json": "trace_self.json", "trace_folder.json": dir} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		bad[name] = "link"
	}
	if f, err := os.Create(filepath.Join(dir, "trace_huge.json")); err != nil {
		t.Fatal(err)
	} else if err := f.Truncate(traces.MaxTraceBytes + 1); err != nil { // a file of nothing but a hole
		t.Fatal(err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	bad["trace_huge.json"] = "hole"
	if err := os.Mkdir(filepath.Join(dir, "trace_nested.json"), 0o700); err != nil { // a folder is looked into
		t.Fatal(err)
	}
	r := command(cli.Patient(t), nil, "policy", "diff", before, after, "--traces", dir, "--jobs", "2")
	if r.Code != exitCould || strings.Count(r.Stderr, " cannot be used: ") != len(bad) || strings.Count(r.Stderr, "\n") != len(bad) {
		t.Errorf("policy diff = %d, want %d and a line for each of %d:\n%s", r.Code, exitCould, len(bad), r.Stderr)
	}
	if want := fmt.Sprintf("%d traces, ", 10+len(bad)); !strings.Contains(r.Stdout, want) {
		t.Errorf("stdout does not hold %q:\n%s", want, r.Stdout)
	}
	if strings.ContainsAny(r.Stdout+r.Stderr, "\x1b\u202e") || !strings.Contains(r.Stderr, `trace_\u001b[31m\u202eshown.json cannot be used`) {
		t.Errorf("a file's name reached the terminal: %q", r.Stderr)
	}
	for name := range bad {
		if !strings.Contains(r.Stderr, name) && !strings.Contains(name, "\x1b") {
			t.Errorf("stderr does not name %s:\n%s", name, r.Stderr)
		}
	}
	j := command(cli.Patient(t), nil, "policy", "diff", before, after, "--traces", dir, "--json")
	j.Want(t, exitCould, "/unusable", fmt.Sprint(len(bad)), "/errors/0/path", filepath.ToSlash(filepath.Join(dir, "trace_\\u001b[31m\\u202eshown.json")))
}
