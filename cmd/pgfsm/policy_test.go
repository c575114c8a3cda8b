package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

// What the back-test compares. The old policies are judged with the risk rules of each trace, the new ones with their own.
const (
	firstPolicy = `version: 1
policies:
  - {id: german, when: "risk.mode == 'danger'", effect: deny}
  - {id: bob, when: "actor.id == 'local:bob'", effect: pending}
  - {id: late, match: {env: prod}, effect: allow, require_approval_if: args.version > 3}
  - {id: reads, match: {tool: "fetch_*"}, effect: allow}
`
	otherPolicy = `version: 1
policies:
  - {id: latest, when: "risk.mode == 'danger'", effect: pending}
  - {id: readers, when: "'readers' in actor.roles", effect: allow}
  - {id: in-german, match: {env: t*t}, when: "has(args.lang) && args.lang == 'de'", effect: deny}
  - {id: rest, effect: allow, deny: args.history == true}
`
	otherRisk = `version: 1
rules:
  - {id: latest, when: {args: {version: {gte: 7, exists: true}}}, set_mode: danger}
`
)

// pastCall is a recorded call, and all that the policies above ask about it.
type pastCall struct {
	actor, env, lang, history string // lang and history: "" is not given
	version                   int    // 0 is not given
	rated                     bool   // recorded with risk rules
	stopped                   string // what stopped it before the policy gate, if anything did
}

// said is a decision and whose it is.
type said struct{ word, by string }

// byOld is what the old policies say, read from them by hand.
func (c *pastCall) byOld() said {
	switch {
	case c.rated && c.lang != "en": // not given is unknown, and counts as danger
		return said{rules.Deny, "german"}
	case c.actor == "local:bob":
		return said{rules.Pending, "bob"}
	case c.env == "prod" && c.version == 0: // the condition fails
		return said{rules.Deny, "late"}
	case c.env == "prod" && c.version > 3:
		return said{rules.Pending, "late"}
	case c.env == "prod":
		return said{rules.Allow, "late"}
	}
	return said{rules.Allow, "reads"}
}

// byNew is what the new policies say, read from them by hand.
func (c *pastCall) byNew() said {
	switch {
	case c.version >= 7:
		return said{rules.Pending, "latest"}
	case c.actor == "local:alice":
		return said{rules.Allow, "readers"}
	case c.env == "test" && c.lang == "de":
		return said{rules.Deny, "in-german"}
	case c.history != "false": // also where the condition fails
		return said{rules.Deny, "rest"}
	}
	return said{rules.Allow, "rest"}
}

func (c *pastCall) plan() string {
	args, tool := `"policy_id":"policy-002"`, statestest.Tool
	for _, m := range []struct{ name, value string }{
		{"lang", `"` + c.lang + `"`}, {"version", fmt.Sprint(c.version)}, {"history", c.history},
	} {
		if m.value != `""` && m.value != "0" && m.value != "" { // it is given
			args += fmt.Sprintf(`,%q:%s`, m.name, m.value)
		}
	}
	switch c.stopped {
	case "arguments":
		args += `,"force":true`
	case "allowlist":
		args, tool = `"policy_id":"policy-002"`, statestest.Delete
	}
	return fmt.Sprintf(`{"type":"call_tool","server":%q,"tool":%q,"args":{%s}}`, statestest.Server, tool, args)
}

func randomPastCall(r *rand.Rand) pastCall {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	return pastCall{
		actor: one("local:alice", "local:bob", "local:carol"), env: one("test", "prod"), lang: one("", "en", "de"),
		history: one("", "true", "false"), version: r.IntN(10), rated: r.IntN(2) == 0,
		stopped: one("", "", "", "", "", "", "arguments", "allowlist"),
	}
}

// pastBundles are what the calls were recorded with, by environment, whether there were risk rules, and how a policy that
// nobody asks about any more decided.
func pastBundles() map[string]*policy.Bundle {
	all := make(map[string]*policy.Bundle)
	for _, env := range []string{"test", "prod"} {
		for _, rated := range []bool{false, true} {
			for _, effect := range []string{"", rules.Allow, rules.Deny, rules.Pending} {
				c := statestest.Content()
				c.Env, c.Roles = env, []policy.Role{{Role: "readers", Actors: []string{"local:alice"}}}
				if rated {
					c.Risk = statestest.Ladder(risk.Rule{ID: "german", SetMode: "danger", Args: []risk.Predicate{
						{Path: "lang", Op: risk.OpNe, Value: jsontext.Value(`"en"`)},
					}})
				}
				if effect != "" {
					c.Policy = statestest.Policies(rules.Policy{ID: "then", Effect: effect})
				}
				all[fmt.Sprint(env, rated, effect)] = statestest.MustBundle(c, nil)
			}
		}
	}
	return all
}

// runID is the nth of the run ids that the past has.
func runID(n int) string { return fmt.Sprintf("01890a5d-ac96-774b-bcce-%012x", n) }

// recordPast records n calls in a folder, without what makes a record durable.
func recordPast(t *testing.T, dir string, n int) []pastCall {
	t.Helper()
	machine, bundles := statestest.MustMachine(t), pastBundles()
	r := rand.New(rand.NewPCG(10, 4))
	past, effects := make([]pastCall, n), make([]string, n)
	for i := range past {
		past[i] = randomPastCall(r)
		effects[i] = []string{"", rules.Allow, rules.Deny, rules.Pending}[r.IntN(4)]
	}
	each(4, n, func(i int) {
		c := &past[i]
		run := states.NewRun(runID(i), states.Request{
			Actor: c.actor, At: statestest.At, Kind: states.KindCall, Text: canonical.Text(c.plan()),
		}, bundles[fmt.Sprint(c.env, c.rated, effects[i])])
		if err := writePast(t.Context(), dir, machine, run); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return past
}

// writePast advances a run and writes its trace as docs/trace-format.md says. The recorder would flush it to the disk
// several times, which for thousands takes minutes.
func writePast(ctx context.Context, dir string, m *states.Machine, run *states.Run) error {
	var steps statestest.Memory
	outcome, err := m.Advance(ctx, run, statestest.NewWorld().Door(), &steps)
	if err != nil {
		return err
	}
	h := traces.NewHeader(m, run)
	header := map[string]any{"format": h.Format, "machine": h.Machine, "request": h.Request, "run_id": h.RunID, "bundle": h.Bundle.Digest}
	last := canonical.Sum("trace header", canonical.MustMarshal(header))
	doc := bytes.NewBuffer(bytes.TrimSuffix(canonical.MustMarshal(h), []byte("}")))
	for i, s := range steps.Steps {
		step := map[string]any{
			"at": statestest.At, "command": s.Command, "event": s.Event, "facts": s.Facts, "from": s.From, "prev": last, "seq": i,
			"to": s.To, "trigger": s.On,
		}
		last = canonical.Sum("trace step", canonical.MustMarshal(step))
		step["hash"] = last
		doc.WriteString([]string{`,"steps":[`, ","}[min(i, 1)])
		doc.Write(canonical.MustMarshal(step))
	}
	head := canonical.Sum("trace head", canonical.MustMarshal(map[string]any{"last": last, "outcome": outcome}))
	fmt.Fprintf(doc, `],"outcome":%s,"head":%q}`, canonical.MustMarshal(outcome), head)
	return os.WriteFile(filepath.Join(dir, traces.Name(run.ID())), doc.Bytes(), 0o600)
}

// backTest is a folder with the two policies and a folder for traces.
func backTest(t *testing.T) (root, before, after, past string) {
	root = folder(t, "old.yaml", firstPolicy, "new/policy.yaml", otherPolicy, "new/risk.yaml", otherRisk, "traces/readme.txt", "")
	return root, filepath.Join(root, "old.yaml"), filepath.Join(root, "new"), filepath.Join(root, "traces")
}

// diffed is the --json document of policy diff.
type diffed struct {
	SchemaVersion int `json:"schema_version"`
	Traces        int `json:"traces"`
	Judged        int `json:"judged"`
	Unusable      int `json:"unusable"`
	Decisions     []struct {
		Old   string `json:"old"`
		New   string `json:"new"`
		Calls int    `json:"calls"`
	} `json:"decisions"`
	Changed []changed `json:"changed"`
}

type changed struct {
	Path  string `json:"path"`
	RunID string `json:"run_id"`
	Tool  string `json:"tool"`
	Old   string `json:"old"`
	New   string `json:"new"`
	By    string `json:"by"`
}

// naively is what policy diff has to say, from the calls themselves.
func naively(dir string, past []pastCall) (counts map[[2]string]int, judged int, all []changed) {
	counts = make(map[[2]string]int)
	for i := range past {
		if past[i].stopped != "" {
			continue
		}
		judged++
		before, after := past[i].byOld(), past[i].byNew()
		counts[[2]string{before.word, after.word}]++
		if before.word != after.word {
			all = append(all, changed{
				filepath.ToSlash(filepath.Join(dir, traces.Name(runID(i)))), runID(i), statestest.Server + " " + statestest.Tool,
				before.word, after.word, after.by,
			})
		}
	}
	return counts, judged, all
}

// disputes says where a document of policy diff differs from the naive one.
func disputes(got diffed, dir string, past []pastCall) string {
	counts, judged, all := naively(dir, past)
	if got.SchemaVersion != schemaVersion || got.Traces != len(past) || got.Judged != judged || got.Unusable != 0 {
		return fmt.Sprintf("version %d, %d traces, %d judged, %d unusable; want %d, %d, %d, 0",
			got.SchemaVersion, got.Traces, got.Judged, got.Unusable, schemaVersion, len(past), judged)
	}
	if len(got.Decisions) != 9 {
		return fmt.Sprintf("%d pairs of decisions, want 9", len(got.Decisions))
	}
	for _, d := range got.Decisions {
		if want := counts[[2]string{d.Old, d.New}]; d.Calls != want {
			return fmt.Sprintf("%s -> %s: %d calls, want %d", d.Old, d.New, d.Calls, want)
		}
	}
	return cmp.Diff(all, got.Changed)
}

// TestPolicyDiffEqualsANaiveOne: ten thousand traces, in parallel, without a change to any file.
func TestPolicyDiffEqualsANaiveOne(t *testing.T) {
	n := scaled(10_000)
	if testing.Short() {
		n /= 10
	}
	root, before, after, dir := backTest(t)
	past := recordPast(t, dir, n)
	was := files(t, root)
	r := command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir, "--json", "--jobs", "4")
	r.want(t, exitYes)
	if now := files(t, root); !slices.Equal(was, now) {
		t.Error("policy diff changed a file, or left one")
	}
	var got diffed
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil {
		t.Fatal(err)
	}
	if problem := disputes(got, dir, past); problem != "" {
		t.Error(problem)
	}
	for _, d := range got.Decisions {
		if d.Calls < n/200 {
			t.Errorf("%d calls go %s -> %s, want at least %d: the policies show too little", d.Calls, d.Old, d.New, n/200)
		}
	}
	if r.stderr != "" {
		t.Errorf("standard error of what is no terminal = %q, want nothing", r.stderr)
	}
	past[0].stopped, past[1].stopped = "now", "now" // the comparison can fail
	if disputes(got, dir, past) == "" {
		t.Error("disputes() finds nothing where two calls more are counted")
	}
}

// TestPolicyDiffAnswers: the same answer in any number of jobs, and what --fail-on makes of it.
func TestPolicyDiffAnswers(t *testing.T) {
	_, before, after, dir := backTest(t)
	past := recordPast(t, dir, 60)
	counts, _, _ := naively(dir, past)
	gained := map[string]int{} // by the new decision
	for pair, n := range counts {
		if pair[0] != pair[1] {
			gained[pair[1]] += n // a sum: in any order the same
		}
	}
	one := command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir, "--json", "--jobs", "1")
	many := command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir, "--json", "--jobs", "16")
	if one.code != exitYes || one != many {
		t.Errorf("policy diff in one job = %+v, in sixteen %+v", one, many)
	}
	for kind, word := range changes { // each alone
		code := exitYes
		if gained[word] > 0 {
			code = exitNo
		}
		command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir, "--fail-on", kind).want(t, code)
		command(t.Context(), nil, "policy", "diff", before, before, "--traces", dir, "--fail-on", kind).want(t, exitYes)
	}
	if gained[rules.Allow] == 0 || gained[rules.Deny] == 0 || gained[rules.Pending] == 0 {
		t.Errorf("changes = %v, want some of each kind", gained)
	}
	text := command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir)
	if want := fmt.Sprintf("%d traces, ", len(past)); text.code != exitYes || !strings.Contains(text.stdout, want) {
		t.Errorf("policy diff = %+v, want %q", text, want)
	}
}

// expiring is a context that is over when it has been asked so many times.
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

// TestPolicyDiffInterrupted: half an answer is none.
func TestPolicyDiffInterrupted(t *testing.T) {
	root, before, after, dir := backTest(t)
	recordPast(t, dir, 40)
	was := files(t, root)
	for _, asked := range []int64{0, 1, 20, 39, 40} {
		ctx := &expiring{Context: t.Context()}
		ctx.left.Store(asked)
		r := command(ctx, nil, "policy", "diff", before, after, "--traces", dir, "--json")
		if r.code != exitCould || r.stdout != "" || !strings.Contains(r.stderr, context.Canceled.Error()) {
			t.Errorf("interrupted after %d: %+v, want exit code %d, the reason, and no answer", asked, r, exitCould)
		}
	}
	ctx := &expiring{Context: t.Context()}
	ctx.left.Store(1 << 20)
	command(ctx, nil, "policy", "diff", before, after, "--traces", dir).want(t, exitYes)
	if !slices.Equal(was, files(t, root)) {
		t.Error("policy diff changed a file, or left one")
	}
}

// TestPolicyDiffOfWhatCannotBeUsed: one bad trace is named, and the answer is not a yes.
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
			_, before, after, dir := backTest(t)
			recordPast(t, dir, 20)
			bad := filepath.Join(dir, traces.Name(runID(7)))
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
				if r.code != exitCould || !strings.Contains(r.stderr, runID(7)) || strings.Count(r.stderr, "\n") != 1 {
					t.Errorf("policy diff %q = %+v, want exit code %d and the trace's name", more, r, exitCould)
				}
			}
			r := command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir, "--json")
			r.want(t, exitCould, "/traces", "20", "/unusable", "1")
		})
	}
}

// The configuration of the tests below.
const (
	policyConfig = `version: 1
env: prod
servers:
  ledger: {type: http, url: "http://127.0.0.1:9/mcp"}
allowlist: allowlist.json
risk: risk.yaml
policy: policy.yaml
roles: {owners: ["local:bob"], tellers: ["local:alice"]}
`
	policyConfigRisk = `version: 1
rules:
  - {id: large, when: {args: {amount: {gt: 1000}}}, set_mode: review, reason: A large amount.}
  - {id: rate, when: {tool: transfer}, score_expr: "args.amount / args.parts", reason: By part.}
`
	policyConfigPolicy = `version: 1
policies:
  - {id: trial, effect: deny, mode: shadow}
  - {id: others, match: {server: mail}, effect: deny}
  - id: transfers
    match: {server: ledger, tool: "transfer*"}
    effect: allow
    deny: risk.score > 900
    require_approval_if: risk.mode != 'safe'
    approvers: [owners]
    quorum: 2
    expires: 1h
    reason: Money moves.
`
	policyTests = `tests:
  - {name: small, input: {server: ledger, tool: transfer, args: {amount: 5, parts: 1}, actor: "local:alice"}, expect: allow, expect_policy: transfers}
  - {name: large, input: {server: ledger, tool: transfer, args: {amount: 2000, parts: 4}}, expect: pending}
`
)

func policyFolder(t *testing.T) (dir, config string) {
	dir = folder(t, "pgfsm.yaml", policyConfig, "risk.yaml", policyConfigRisk, "policy.yaml", policyConfigPolicy,
		"allowlist.json", `{"ledger": ["transfer"]}`, "tests.yaml", policyTests,
		"wrong/tests.yaml", strings.Replace(policyTests, "expect: allow", "expect: deny", 1))
	return dir, filepath.Join(dir, "pgfsm.yaml")
}

func TestPolicyExplainDocument(t *testing.T) {
	_, config := policyFolder(t)
	explain := func(args ...string) ran {
		return command(t.Context(), nil, slices.Concat([]string{"policy", "explain", "-c", config, "--json", "--server", "ledger"}, args)...)
	}
	held := explain("--tool", "transfer", "--args", `{"amount":2000,"parts":4}`, "--actor", "local:alice")
	held.want(t, exitPending, "/schema_version", fmt.Sprint(schemaVersion), "/decision", "pending", "/code", "approval_required",
		"/policy", "transfers", "/condition", "require_approval_if", "/reason", `Policy \"transfers\": Money moves.`,
		"/risk_mode", "review", "/risk_score", "500", "/approvers/0", "owners", "/quorum", "2",
		"/risk/0/rule", "large", "/risk/0/matched", "true", "/risk/0/mode", "review", "/risk/0/score", "50", "/risk/0/reason", "A large amount.",
		"/risk/1/rule", "rate", "/risk/1/score", "500", "/risk/1/failed", "", "/risk/2", "",
		"/policies/0/policy", "trial", "/policies/0/shadow", "true", "/policies/0/matched", "true",
		"/policies/1/policy", "others", "/policies/1/matched", "false", "/policies/1/why", `the server \"ledger\" is not \"mail\`,
		"/policies/2/policy", "transfers", "/policies/2/matched", "true", "/policies/3", "",
		"/shadow/0/policy", "trial", "/shadow/0/effect", "deny")
	if expires := held.member("/expires"); len(expires) != len(statestest.At) {
		t.Errorf("/expires = %q, want a time like %s", expires, statestest.At)
	}
	explain("--tool", "transfer", "--args", `{"amount":2000}`).want(t, exitNo, "/decision", "deny", "/code", "policy_denied",
		"/condition", "deny", "/risk_mode", "danger", "/risk_score", "1000", "/approvers", "", "/quorum", "", "/expires", "")
	explain("--tool", "transfer", "--args", `{"amount":10,"parts":2}`).want(t, exitYes, "/decision", "allow", "/code", "", "/policy", "transfers")
	explain("--tool", "nothing").want(t, exitNo, "/decision", "deny", "/policy", "", "/policies/2/matched", "false")
}

func TestPolicyTestDocument(t *testing.T) {
	dir, config := policyFolder(t)
	good := command(t.Context(), nil, "policy", "test", "-c", config, "--json", filepath.Join(dir, "tests.yaml"))
	good.want(t, exitYes, "/schema_version", fmt.Sprint(schemaVersion), "/ok", "true", "/tests/0/name", "small", "/tests/0/ok", "true",
		"/tests/0/got", "allow", "/tests/0/want", "allow", "/tests/0/policy", "transfers", "/tests/0/want_policy", "transfers",
		"/tests/0/line", "2", "/tests/0/file", filepath.ToSlash(filepath.Join(dir, "tests.yaml")),
		"/tests/1/name", "large", "/tests/1/got", "pending", "/tests/1/line", "3", "/tests/2", "",
		"/uncovered/policies_without_a_test/0", "others", "/uncovered/policies_without_a_test/1", "",
		"/uncovered/risk_rules_without_a_test", "[]")
	bad := command(t.Context(), nil, "policy", "test", "-c", config, "--json", filepath.Join(dir, "wrong"))
	bad.want(t, exitNo, "/ok", "false", "/tests/0/ok", "false", "/tests/0/got", "allow", "/tests/0/want", "deny", "/tests/1/ok", "true")
	all := command(t.Context(), nil, "policy", "test", "-c", config, "--json", dir)
	all.want(t, exitNo, "/ok", "false", "/tests/3/ok", "true", "/tests/4", "")
}

// TestPolicyCommandsCanFail shows each command saying yes, no and could not.
func TestPolicyCommandsCanFail(t *testing.T) {
	dir, config := policyFolder(t)
	root, before, after, past := backTest(t)
	recordPast(t, past, 30)
	clean := folder(t, "policy.yaml", "policies:\n- {id: a, match: {server: s, tool: read, env: '*'}, effect: allow}\n",
		"bad/policy.yaml", "policies:\n- {id: a, match: {server: s, tool: read, env: '*'}, effect: maybe}\n",
		"open/policy.yaml", "policies:\n- {id: a, match: {server: '*', tool: '*', env: '*'}, effect: allow}\n")
	fine, worse := filepath.Join(dir, "fine.yaml"), filepath.Join(dir, "worse.yaml")
	for path, text := range map[string]string{ // each a file of its own
		fine: strings.Replace(policyConfig, "policy: policy.yaml", "policy: fine-policy.yaml", 1),
		filepath.Join(dir, "fine-policy.yaml"): "version: 1\npolicies:\n" +
			"  - {id: transfers, match: {server: ledger, tool: transfer}, effect: pending, approvers: [owners]}\n",
		worse: strings.Replace(policyConfig, "policy: policy.yaml", "policy: worse-policy.yaml", 1),
		filepath.Join(dir, "worse-policy.yaml"): "version: 1\npolicies:\n" +
			"  - {id: all, effect: allow}\n  - {id: transfers, match: {tool: transfer}, effect: pending}\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	to := func(name string) string { return filepath.Join(root, name) }
	for _, tt := range []struct {
		name string
		code int
		args []string
	}{
		{"explain-yes", exitYes, []string{"explain", "-c", config, "--server", "ledger", "--tool", "transfer", "--args", `{"amount":1,"parts":1}`}},
		{"explain-no", exitNo, []string{"explain", "-c", config, "--server", "ledger", "--tool", "transfer"}},
		{"explain-held", exitPending, []string{"explain", "-c", fine, "--server", "ledger", "--tool", "transfer"}},
		{"explain-could-not", exitCould, []string{"explain", "-c", config, "--server", "ledger", "--tool", "transfer", "--args", `{"a":1,"a":2}`}},
		{"test-yes", exitYes, []string{"test", "-c", config, filepath.Join(dir, "tests.yaml")}},
		{"test-no", exitNo, []string{"test", "-c", config, filepath.Join(dir, "wrong", "tests.yaml")}},
		{"test-could-not", exitCould, []string{"test", "-c", config, filepath.Join(dir, "nowhere.yaml")}},
		{"lint-yes", exitYes, []string{"lint", "-c", fine}},
		{"lint-no", exitNo, []string{"lint", "-c", worse}},
		{"lint-could-not", exitCould, []string{"lint", "-c", fine, "--live"}},
		{"diff-yes", exitYes, []string{"diff", before, after, "--traces", past}},
		{"diff-no", exitNo, []string{"diff", before, after, "--traces", past, "--fail-on", "newly-denied"}},
		{"diff-could-not", exitCould, []string{"diff", before, after, "--traces", filepath.Join(root, "new")}},
		{"import-yes", exitYes, []string{"import", "--from", "ctrl", clean, "-o", to("yes")}},
		{"import-no", exitNo, []string{"import", "--from", "ctrl", filepath.Join(clean, "open"), "-o", to("no")}},
		{"import-could-not", exitCould, []string{"import", "--from", "ctrl", filepath.Join(clean, "bad"), "-o", to("bad")}},
		{"import-overwrites-nothing", exitCould, []string{"import", "--from", "ctrl", clean, "-o", to("new")}},
		{"import-from-elsewhere", exitCould, []string{"import", "--from", "opa", clean, "-o", to("opa")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := command(t.Context(), nil, append([]string{"policy"}, tt.args...)...)
			r.want(t, tt.code)
			if tt.code == exitCould && r.stdout != "" {
				t.Errorf("standard output = %q, want nothing", r.stdout)
			}
		})
	}
}

// TestPolicyImportOfWhatIsNoFile: a device and a pipe in the place of a file are refused, and not read or waited for.
func TestPolicyImportOfWhatIsNoFile(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{"device": "/dev/zero", "folder": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(target, filepath.Join(dir, "policy.yaml")); err != nil {
				t.Fatal(err)
			}
			r := command(patient(t), nil, "policy", "import", "--from", "ctrl", dir, "-o", filepath.Join(dir, "out"))
			if r.code != exitCould || !strings.Contains(r.stderr, "not a regular file") {
				t.Errorf("import = %d %s, want %d and that it is not a regular file", r.code, r.stderr, exitCould)
			}
		})
	}
}
