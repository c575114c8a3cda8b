package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/traces"
	"pgfsm/traces/backtest"
)

// TestPolicyDiffShowsNothingThatATerminalObeys: whatever stands in a trace.
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

// TestPolicyDiffOfHostileTraces: each is named with what is wrong, none is waited for, and the others are judged.
func TestPolicyDiffOfHostileTraces(t *testing.T) {
	t.Parallel()
	_, before, after, dir := backTest(t)
	recordPast(t, dir, 10)
	good, err := os.ReadFile(filepath.Join(dir, traces.Name(runID(0))))
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
	r := command(patient(t), nil, "policy", "diff", before, after, "--traces", dir, "--jobs", "2")
	if r.code != exitCould || strings.Count(r.stderr, " cannot be used: ") != len(bad) || strings.Count(r.stderr, "\n") != len(bad) {
		t.Errorf("policy diff = %d, want %d and a line for each of %d:\n%s", r.code, exitCould, len(bad), r.stderr)
	}
	if want := fmt.Sprintf("%d traces, ", 10+len(bad)); !strings.Contains(r.stdout, want) {
		t.Errorf("stdout does not hold %q:\n%s", want, r.stdout)
	}
	if strings.ContainsAny(r.stdout+r.stderr, "\x1b\u202e") || !strings.Contains(r.stderr, `trace_\u001b[31m\u202eshown.json cannot be used`) {
		t.Errorf("a file's name reached the terminal: %q", r.stderr)
	}
	for name := range bad {
		if !strings.Contains(r.stderr, name) && !strings.Contains(name, "\x1b") {
			t.Errorf("stderr does not name %s:\n%s", name, r.stderr)
		}
	}
	j := command(patient(t), nil, "policy", "diff", before, after, "--traces", dir, "--json")
	j.want(t, exitCould, "/unusable", fmt.Sprint(len(bad)), "/errors/0/path", filepath.ToSlash(filepath.Join(dir, "trace_\\u001b[31m\\u202eshown.json")))
}
