package main

import (
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
	"pgfsm/policy/ruling"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/tracestest"
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
  - {id: latest, when: "risk.mode == 'danger'", effect: pending, expires: 48h}
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

// said is a decision, whose it is, at which risk, and until when a call that is held waits.
type said struct{ word, by, risk, until string }

// at adds the risk and, to a hold, until when it waits.
func (s said) at(risk, until string) said {
	if s.risk = risk; s.word == rules.Pending {
		s.until = until
	}
	return s
}

// byOld is what the old policies say, read from them by hand.
func (c *pastCall) byOld() said {
	german := c.rated && c.lang != "en" // not given is unknown, and counts as danger
	s := func() said {
		switch {
		case german:
			return said{word: rules.Deny, by: "german"}
		case c.actor == "local:bob":
			return said{word: rules.Pending, by: "bob"}
		case c.env == "prod" && c.version == 0: // the condition fails
			return said{word: rules.Deny, by: "late"}
		case c.env == "prod" && c.version > 3:
			return said{word: rules.Pending, by: "late"}
		case c.env == "prod":
			return said{word: rules.Allow, by: "late"}
		}
		return said{word: rules.Allow, by: "reads"}
	}()
	switch {
	case german:
		return s.at("danger 90", "a day")
	case c.rated:
		return s.at("safe 0", "a day")
	}
	return s.at("unrated 0", "a day")
}

// byNew is what the new policies say, read from them by hand.
func (c *pastCall) byNew() said {
	s := func() said {
		switch {
		case c.version >= 7:
			return said{word: rules.Pending, by: "latest"}
		case c.actor == "local:alice":
			return said{word: rules.Allow, by: "readers"}
		case c.env == "test" && c.lang == "de":
			return said{word: rules.Deny, by: "in-german"}
		case c.history != "false": // also where the condition fails
			return said{word: rules.Deny, by: "rest"}
		}
		return said{word: rules.Allow, by: "rest"}
	}()
	if c.version >= 7 {
		return s.at("danger 90", "two days")
	}
	return s.at("safe 0", "two days")
}

// naiveKinds are the kinds of change from one to the other. Every policy of the new ones has another name.
func naiveKinds(before, after said) (kinds []string) {
	switch {
	case before.word != after.word:
		kinds = append(kinds, map[string]string{rules.Allow: "newly-allowed", rules.Deny: "newly-denied", rules.Pending: "newly-held"}[after.word])
	case before.until != after.until: // the new ones wait longer, and differ in nothing else
		kinds = append(kinds, "hold-weakened")
	}
	kinds = append(kinds, "policy-changed")
	if before.risk != after.risk {
		kinds = append(kinds, "risk-changed")
	}
	return kinds
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

// writePast advances a run and writes its trace as docs/reference/trace-format.md says. The recorder would flush it to the disk
// several times, which for thousands takes minutes.
func writePast(ctx context.Context, dir string, m *states.Machine, run *states.Run) error {
	var steps statestest.Memory
	outcome, err := m.Advance(ctx, run, statestest.NewWorld().Door(), &steps)
	if err != nil {
		return err
	}
	doc := tracestest.Doc{}
	if err := json.Unmarshal(canonical.MustMarshal(traces.NewHeader(m, run)), &doc.Members); err != nil {
		return err
	}
	doc.Members["outcome"] = canonical.MustMarshal(outcome)
	for _, s := range steps.Steps {
		doc.Steps = append(doc.Steps, tracestest.Members{
			"at": canonical.MustMarshal(statestest.At), "command": s.Command, "event": s.Event, "facts": s.Facts,
			"from": canonical.MustMarshal(s.From), "to": canonical.MustMarshal(s.To), "trigger": canonical.MustMarshal(s.On),
		})
	}
	text, err := doc.Seal()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, traces.Name(run.ID())), text, 0o600)
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
	Kinds []struct {
		Kind  string `json:"kind"`
		Calls int    `json:"calls"`
	} `json:"kinds"`
	Changed []changed `json:"changed"`
}

type changed struct {
	Path  string   `json:"path"`
	RunID string   `json:"run_id"`
	Tool  string   `json:"tool"`
	Old   string   `json:"old"`
	New   string   `json:"new"`
	By    string   `json:"by"`
	Kinds []string `json:"kinds"`
}

// naively is what policy diff has to say, from the calls themselves.
func naively(dir string, past []pastCall) (counts map[[2]string]int, kinds map[string]int, judged int, all []changed) {
	counts, kinds = make(map[[2]string]int), make(map[string]int)
	for i := range past {
		if past[i].stopped != "" {
			continue
		}
		judged++
		before, after := past[i].byOld(), past[i].byNew()
		counts[[2]string{before.word, after.word}]++
		all = append(all, changed{
			filepath.ToSlash(filepath.Join(dir, traces.Name(runID(i)))), runID(i), statestest.Server + " " + statestest.Tool,
			before.word, after.word, after.by, naiveKinds(before, after),
		})
		for _, kind := range naiveKinds(before, after) {
			kinds[kind]++
		}
	}
	return counts, kinds, judged, all
}

// disputes says where a document of policy diff differs from the naive one.
func disputes(got diffed, dir string, past []pastCall) string {
	counts, kinds, judged, all := naively(dir, past)
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
	var named []string
	for _, k := range got.Kinds {
		if named = append(named, k.Kind); k.Calls != kinds[k.Kind] {
			return fmt.Sprintf("%s: %d calls, want %d", k.Kind, k.Calls, kinds[k.Kind])
		}
	}
	if d := cmp.Diff(ruling.Kinds(), named); d != "" {
		return d
	}
	return cmp.Diff(all, got.Changed)
}

// TestPolicyDiffEqualsANaiveOne: a thousand traces, in make soak ten thousand, in parallel, without a change to any file.
func TestPolicyDiffEqualsANaiveOne(t *testing.T) {
	n := 1_000
	if os.Getenv("PGFSM_SOAK") != "" {
		n *= 10
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
	_, kinds, _, _ := naively(dir, past)
	one := command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir, "--json", "--jobs", "1")
	many := command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir, "--json", "--jobs", "16")
	if one.code != exitYes || one != many {
		t.Errorf("policy diff in one job = %+v, in sixteen %+v", one, many)
	}
	for _, kind := range ruling.Kinds() {
		code := exitYes
		if kinds[kind] > 0 {
			code = exitNo
		}
		command(t.Context(), nil, "policy", "diff", before, after, "--traces", dir, "--fail-on", kind).want(t, code)
		command(t.Context(), nil, "policy", "diff", before, before, "--traces", dir, "--fail-on", kind).want(t, exitYes)
	}
	for _, kind := range []string{ruling.NewlyAllowed, ruling.NewlyDenied, ruling.NewlyHeld, ruling.HoldWeakened, ruling.RiskChanged} {
		if kinds[kind] == 0 {
			t.Errorf("changes = %v, want some of the kind %s", kinds, kind)
		}
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
