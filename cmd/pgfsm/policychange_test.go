package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

// TestKindsOfChange: what of a hold is weaker, and what is seen besides.
func TestKindsOfChange(t *testing.T) {
	base := ruling{
		Decision: rules.Pending, Code: policy.CodeApprovalRequired, Policy: "a", Condition: "require_approval_if", RiskMode: "review",
		RiskScore: 50, Approvers: []string{"owners", "leads"}, Quorum: 2, Expires: "2026-11-21T09:00:00Z",
	}
	for _, tt := range []struct {
		name   string
		change func(r *ruling)
		there  []string // from base to the changed one
		back   []string
	}{
		{"nothing", func(*ruling) {}, nil, nil},
		{"order-of-approvers", func(r *ruling) { r.Approvers = []string{"leads", "owners"} }, nil, nil},
		{"lower-quorum", func(r *ruling) { r.Quorum = 1 }, []string{holdWeakened}, []string{holdStrengthened}},
		{"a-role-more", func(r *ruling) { r.Approvers = []string{"leads", "owners", "all"} }, []string{holdWeakened}, []string{holdStrengthened}},
		{"any-role", func(r *ruling) { r.Approvers = nil }, []string{holdWeakened}, []string{holdStrengthened}},
		{"a-second-longer", func(r *ruling) { r.Expires = "2026-11-21T09:00:01Z" }, []string{holdWeakened}, []string{holdStrengthened}},
		{"into-the-next-year", func(r *ruling) { r.Expires = "2027-01-01T00:00:00Z" }, []string{holdWeakened}, []string{holdStrengthened}},
		{"passed-at-once", func(r *ruling) { r.Expires = "" }, []string{holdStrengthened}, []string{holdWeakened}},
		{"another-role", func(r *ruling) { r.Approvers = []string{"owners", "all"} }, []string{holdChanged}, []string{holdChanged}},
		{"lower-quorum-shorter", func(r *ruling) { r.Quorum, r.Expires = 1, "2026-11-21T08:00:00Z" }, []string{holdChanged}, []string{holdChanged}},
		{"all-weaker", func(r *ruling) { r.Quorum, r.Expires, r.Approvers = 1, "2026-11-22T08:00:00Z", nil },
			[]string{holdWeakened}, []string{holdStrengthened}},
		{"another-policy", func(r *ruling) { r.Policy = "b" }, []string{policyChanged}, []string{policyChanged}},
		{"another-condition", func(r *ruling) { r.Condition = "" }, []string{policyChanged}, []string{policyChanged}},
		{"another-mode", func(r *ruling) { r.RiskMode = "danger" }, []string{riskChanged}, []string{riskChanged}},
		{"another-score", func(r *ruling) { r.RiskScore++ }, []string{riskChanged}, []string{riskChanged}},
		{"all-of-it", func(r *ruling) { r.Quorum, r.Policy, r.RiskScore = 3, "b", 51 },
			[]string{holdStrengthened, policyChanged, riskChanged}, []string{holdWeakened, policyChanged, riskChanged}},
		{"allowed", func(r *ruling) { *r = ruling{Decision: rules.Allow, Policy: "a", RiskMode: "review", RiskScore: 50} },
			[]string{newlyAllowed, policyChanged}, []string{newlyHeld, policyChanged}},
		{"denied-by-the-same", func(r *ruling) { r.Decision, r.Code = rules.Deny, policy.CodePolicyDenied }, []string{newlyDenied}, []string{newlyHeld}},
		{"denied-for-it-failed", func(r *ruling) { r.Decision, r.Code = rules.Deny, policy.CodePolicyFailed },
			[]string{newlyDenied, policyChanged}, []string{newlyHeld, policyChanged}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			other := base
			tt.change(&other)
			if d := cmp.Diff(tt.there, kindsOf(&base, &other)); d != "" {
				t.Errorf("kindsOf(base, other) (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.back, kindsOf(&other, &base)); d != "" {
				t.Errorf("kindsOf(other, base) (-want +got):\n%s", d)
			}
		})
	}
	denied, failed := ruling{Decision: rules.Deny, Code: policy.CodePolicyDenied}, ruling{Decision: rules.Deny, Code: policy.CodePolicyFailed}
	if got := kindsOf(&denied, &failed); !slices.Equal(got, []string{policyChanged}) {
		t.Errorf("kinds of a denial that becomes a failure = %q, want %s", got, policyChanged)
	}
}

// TestPolicyDiffShowsNothingThatATerminalObeys: whatever stands in a trace.
func TestPolicyDiffShowsNothingThatATerminalObeys(t *testing.T) {
	const bad = "x\x1b[31m\u202e\n\x07\x9b"
	r := func(decision string, quorum int) *ruling {
		return &ruling{Decision: decision, Code: bad, Policy: bad, Condition: bad + fmt.Sprint(quorum), RiskMode: bad + fmt.Sprint(quorum),
			Approvers: []string{bad + fmt.Sprint(quorum)}, Quorum: quorum, Expires: bad}
	}
	var all []compared
	for _, pair := range [][2]*ruling{
		{r(rules.Allow, 1), r(rules.Deny, 2)}, {r(rules.Pending, 1), r(rules.Pending, 2)}, {r(rules.Allow, 1), r(rules.Allow, 2)},
	} {
		all = append(all, compared{Path: bad, RunID: bad, Tool: bad, Old: pair[0].Decision, New: pair[1].Decision, By: bad,
			Before: pair[0], After: pair[1], Kinds: kindsOf(pair[0], pair[1]), judged: true})
	}
	all = append(all, compared{Path: bad, fault: bad})
	for _, asJSON := range []bool{false, true} {
		var stdout, stderr bytes.Buffer
		err := (&diffOptions{json: asJSON}).report(world{stdout: &stdout, stderr: &stderr, getenv: os.LookupEnv}, all)
		if err == nil || strings.ContainsAny(stdout.String()+stderr.String(), "\x1b\u202e\x07\u009b") || strings.Contains(stdout.String(), "\x9b") {
			t.Errorf("report() = %v, json %t:\n%q\n%q", err, asJSON, stdout.String(), stderr.String())
		}
		if !asJSON && (strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stdout.String(), `\u001b[31m\u202e`)) {
			t.Errorf("report():\n%s\n%s\nwant one line of errors, and the escapes written out", stdout.String(), stderr.String())
		}
	}
}

// TestPolicyDiffSideIsBounded: each set of risk rules is compiled once, by one of those who ask at once, and not all of
// thousands are remembered.
func TestPolicyDiffSideIsBounded(t *testing.T) {
	path := filepath.Join(folder(t, "policy.yaml", firstPolicy), "policy.yaml")
	s, err := readSide(path)
	if err != nil {
		t.Fatal(err)
	}
	rated := func(i int) *policy.Content {
		c := statestest.Content()
		c.Risk = statestest.Ladder(risk.Rule{ID: fmt.Sprintf("rule-%d", i), SetMode: "danger"})
		return &c
	}
	const askers = 16
	var got [askers]*policy.Bundle
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i], _ = s.bundle(rated(0)) })
	}
	wg.Wait()
	for i, b := range got {
		if b == nil || b != got[0] {
			t.Fatalf("asker %d has another bundle than the first: %p, %p", i, b, got[0])
		}
	}
	seen := make(map[*policy.Bundle]bool)
	for i := range 3 * maxSideBundles {
		b, err := s.bundle(rated(i))
		if err != nil {
			t.Fatal(err)
		}
		seen[b] = true
		if len(s.compiled) > maxSideBundles {
			t.Fatalf("%d bundles are remembered, want at most %d", len(s.compiled), maxSideBundles)
		}
	}
	if len(seen) != 3*maxSideBundles {
		t.Errorf("%d sets of rules have %d bundles", 3*maxSideBundles, len(seen))
	}
	last, err := s.bundle(rated(3*maxSideBundles - 1))
	if err != nil || !seen[last] {
		t.Errorf("bundle() = %p, %v, want the one that was compiled", last, err)
	}
	// What is no risk rule makes no other bundle.
	plain, err := s.bundle(&policy.Content{Format: policy.ContentFormat, Limits: rated(0).Limits, Summary: rated(0).Summary, Input: rated(0).Input})
	if err != nil {
		t.Fatal(err)
	}
	for env := range 3 {
		c := statestest.Content()
		c.Env, c.Roles = fmt.Sprint(env), []policy.Role{{Role: fmt.Sprint(env)}}
		if b, err := s.bundle(&c); err != nil || b != plain {
			t.Errorf("bundle() without risk rules = %p, %v, want %p", b, err, plain)
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
