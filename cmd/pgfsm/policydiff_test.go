package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/policy/ruling"
	"pgfsm/traces"
)

// backTest is a folder with two policies and n traces of one call.
func backTest(t *testing.T, n int) (root, before, after, past string) {
	t.Helper()
	root = clitest.Folder(t, "old.yaml", "version: 1\npolicies: [{id: reads, match: {tool: \"fetch_*\"}, effect: allow}]\n",
		"new/policy.yaml", "version: 1\npolicies: [{id: all, effect: deny}]\n", "new/risk.yaml", "version: 1\n", "traces/readme.txt", "")
	recorded := t.TempDir()
	r := command(t.Context(), map[string]string{"SAFE_TRACE_DIR": recorded}, "run", "--json", "show policy-002")
	r.Want(t, cli.ExitYes)
	text, err := os.ReadFile(filepath.Join(recorded, traces.Name(r.Member("/run_id"))))
	check.NoError(t, err)
	past = filepath.Join(root, "traces")
	for i := range n {
		check.NoError(t, os.WriteFile(filepath.Join(past, traces.Name(fmt.Sprintf("run-%02d", i))), text, 0o600))
	}
	return root, filepath.Join(root, "old.yaml"), filepath.Join(root, "new"), past
}

// TestPolicyDiffOfHostileTraces shows that each is named with its fault, that none blocks the command, and that the others are judged.
func TestPolicyDiffOfHostileTraces(t *testing.T) {
	t.Parallel()
	_, before, after, dir := backTest(t, 10)
	good, err := os.ReadFile(filepath.Join(dir, traces.Name("run-00")))
	check.NoError(t, err)
	nested := strings.Repeat("[", 1<<18) + strings.Repeat("]", 1<<18)
	bad := map[string]string{
		"trace_deep.json":                strings.Repeat("[", 1<<20),
		"trace_deep_inside.json":         strings.Replace(string(good), `"request":{`, `"request":{"x":`+nested+`,`, 1),
		"trace_twice.json":               strings.Replace(string(good), `{"`, `{"format":"pgfsm.trace/v1","format":"pgfsm.trace/v1","`, 1),
		"trace_not_utf8.json":            strings.Replace(string(good), "policy-002", "policy-\xff\xfe", 1),
		"trace_\x1b[31m\u202eshown.json": "{}",
	}
	for name, text := range bad { // each a file of its own
		check.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for name, target := range map[string]string{"trace_zero.json": "/dev/zero", "trace_self.json": "trace_self.json", "trace_folder.json": dir} {
		check.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
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
	r := command(clitest.Patient(t), nil, "policy", "diff", before, after, "--traces", dir)
	if r.Code != cli.ExitFailed || strings.Count(r.Stderr, " cannot be used: ") != len(bad) || strings.Count(r.Stderr, "\n") != len(bad) {
		t.Errorf("policy diff = %d, want %d and a line for each of %d:\n%s", r.Code, cli.ExitFailed, len(bad), r.Stderr)
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
	j := command(clitest.Patient(t), nil, "policy", "diff", before, after, "--traces", dir, "--json")
	j.Want(t, cli.ExitFailed, "/unusable", fmt.Sprint(len(bad)), "/errors/0/path", filepath.ToSlash(filepath.Join(dir, "trace_\\u001b[31m\\u202eshown.json")))
}

// TestChangedGrounds: a line names the risk that took over, too.
func TestChangedGrounds(t *testing.T) {
	before := &ruling.Ruling{Decision: rules.Deny, Code: policy.CodePolicyDenied, Policy: "all", RiskMode: "safe", RiskScore: 10}
	after := *before
	after.RiskMode, after.RiskScore = "danger", 60
	if grounds, want := changedGrounds(before, &after), `"all"; risk safe 10 -> danger 60`; grounds != want {
		t.Errorf("the line says %s, want %s", grounds, want)
	}
}
