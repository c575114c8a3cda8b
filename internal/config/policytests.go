package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// MaxPolicyTests bounds the tests of one file.
const MaxPolicyTests = 10_000

// A PolicyTest is a call and the expected decision.
type PolicyTest struct {
	Name      string
	TestInput `json:"input"`
	Risk      *GivenRisk
	Expect    string // allow, deny or pending
	Policy    string `json:"expect_policy"` // the policy that must decide; empty: any

	Line     int  `json:"-"` // line in the file
	Declared bool `json:"-"` // the file itself names the tool, under tools
}

// TestInput is the call of a test, with what is known about the tool, the actor and earlier calls.
type TestInput struct {
	Server, Tool string
	Env          string // empty: the configuration's value
	Actor        string
	Args         jsontext.Value      // canonical
	Pinned       *bool               // the tool's definition is pinned; nil: from the configuration
	Annotations  *policy.Annotations // the tool's annotations; nil: the configuration's
	Session      *TestSession        // the client's session; nil: none is known
	Origins      Table[string]       // the origins of arguments, by path; those of others are none

	// Claims of the actor's identity provider; nil: the actor has no provider.
	Identity *policy.Identity       `json:"-"`
	History  []policy.HistoryAnswer `json:"-"` // earlier calls

	As      *actorSettings        // the actor with its identity, as written
	Answers Table[jsontext.Value] `json:"history"` // History, as written
}

// TestSession is the session of a test, with what may be in it.
type TestSession struct {
	policy.Session
	Untrusted, Private bool
}

// GivenRisk is the fixed risk of a test, instead of the risk rules' result.
type GivenRisk struct {
	Mode  string
	Score int
}

// ReadPolicyTests reads a file of tests and checks its names, modes and scores against a
// configuration, if it is not nil. The error is of type [Errors].
func ReadPolicyTests(name string, text []byte, configured *policy.Content) ([]PolicyTest, error) {
	f, err := readJudged(name, text, testsSchema(), MaxTestsFileBytes, "write tests: and what is expected")
	if err != nil {
		return nil, err
	}

	var from struct {
		Tests []PolicyTest
		Tools Table[[]string]
	}
	decode(f.root, &from)
	f.checkUnique(path{"tests"}, "test", "name")

	for i := range from.Tests {
		t, entry := &from.Tests[i], path{"tests"}.item(i)
		t.Line, t.Args = f.get(entry).at.line, canonicalJSON(t.Args)
		if t.As != nil {
			if t.Actor != "" {
				f.addFault(entry.child("input", "as"), "write one of them", "%s has both actor and as",
					entry.child("input"))
			}
			t.Actor, t.Identity = t.As.toIdentity()
		}

		for _, h := range t.Answers {
			answer, err := condition.ParseAnswer(h.Name, string(h.Value))
			if err != nil {
				f.addFault(entry.child("input", "history", h.Name), "write a number, 0 or more for a count",
					"%s is no answer to %s", quote(string(h.Value)), quote(h.Name))
			}
			t.History = append(t.History, answer)
		}

		for _, o := range t.Origins {
			if origin.Assume((*origin.Rules)(nil).Find(nil, t.Server, t.Tool, t.Args, nil), o.Name, o.Value) == 0 {
				f.addKeyFault(entry.child("input", "origins", o.Name), "correct the path, such as to or items/*/id",
					"args has no value at %s", quote(o.Name))
			}
		}

		if server := from.Tools.index(t.Server); server >= 0 {
			t.Declared = slices.Contains(from.Tools[server].Value, t.Tool)
		}

		if configured != nil {
			h := testCheck{f, entry, configured}
			h.checkNames(t)
			h.checkRisk(t)
		}
	}

	if err := f.err(); err != nil {
		return nil, err
	}

	return from.Tests, nil
}

// testCheck checks one test against a configuration.
type testCheck struct {
	file       *file
	entry      path
	configured *policy.Content
}

func (h *testCheck) addFault(key, remedy, problem string, args ...any) {
	p := h.entry.child(strings.Split(key, ".")...)
	h.file.addFault(p, remedy, "%s: %s", p, fmt.Sprintf(problem, args...))
}

// checkNames refuses a server, tool, claim or policy that the configuration does not have.
func (h *testCheck) checkNames(t *PolicyTest) {
	const remedy = "correct it, or name the tool under tools: to test a call that the configuration does not have yet"
	listed := func(a policy.Allowance) bool { return a.Server == t.Server && slices.Contains(a.Tools, t.Tool) }
	switch {
	case t.Declared:
	case !slices.ContainsFunc(h.configured.Servers, func(s policy.Server) bool { return s.Name == t.Server }):
		h.addFault("input.server", remedy, "no server %q is configured", t.Server)
	case !slices.ContainsFunc(h.configured.Allowlist, listed):
		h.addFault("input.tool", remedy, "the allowlist names no tool %q of server %q", t.Tool, t.Server)
	}
	if t.Identity != nil {
		for _, c := range t.Identity.Claims {
			if h.configured.Identity == nil || !slices.Contains(h.configured.Identity.Claims, c.Name) {
				h.addFault("input.as.claims", "correct it, or add it to claims of an issuer",
					"no claim %q is configured", c.Name)
			}
		}
	}
	named := func(p rules.Policy) bool { return p.ID == t.Policy }
	if t.Policy != "" && (h.configured.Policy == nil || !slices.ContainsFunc(h.configured.Policy.Policies, named)) {
		h.addFault("expect_policy", "", "there is no policy %q", t.Policy)
	}
}

// checkRisk refuses a given mode that the configuration does not have, and a score below the mode's
// baseline, because no call can have it. A missing score becomes the baseline.
func (h *testCheck) checkRisk(t *PolicyTest) {
	if t.Risk == nil {
		return
	}
	modes := []risk.Mode{{Name: policy.Unrated}}
	if h.configured.Risk != nil {
		modes = h.configured.Risk.Modes
	}
	names := make([]string, len(modes))
	for i, m := range modes {
		names[i] = m.Name
	}
	switch i := slices.Index(names, t.Risk.Mode); {
	case i < 0:
		h.addFault("risk.mode", "use "+strings.Join(names, ", "), "there is no risk mode %q", t.Risk.Mode)
	case !h.file.isWritten(h.entry.child("risk", "score")):
		t.Risk.Score = modes[i].Baseline
	case t.Risk.Score < modes[i].Baseline:
		h.addFault("risk.score", "", "no call has the mode %q and the score %d: the baseline of the mode is %d",
			t.Risk.Mode, t.Risk.Score, modes[i].Baseline)
	}
}

// actorSettings holds an actor of an identity provider, in the form that people write for a
// question or a test.
type actorSettings struct {
	ID, Kind, Client, OnBehalfOf string

	Groups *[]string
	Claims Table[string]
}

// toIdentity returns the actor and the claims of its identity provider.
func (a *actorSettings) toIdentity() (string, *policy.Identity) {
	id := &policy.Identity{
		Client:     a.Client,
		Kind:       a.Kind,
		OnBehalfOf: a.OnBehalfOf,
		Groups:     a.Groups,
	}
	if a.Groups != nil {
		slices.Sort(*a.Groups)
	}
	for _, c := range a.Claims {
		id.Claims = append(id.Claims, policy.Claim{Name: c.Name, Value: c.Value})
	}
	slices.SortFunc(id.Claims, func(a, b policy.Claim) int { return strings.Compare(a.Name, b.Name) })
	return a.ID, id
}

// ReadActor reads a JSON file with an actor of an identity provider. Missing groups and claims are
// unknown. The error is of type [Errors].
func ReadActor(name string, text []byte) (actor string, id *policy.Identity, err error) {
	f, err := readJudged(name, text, actorSchema(), MaxPolicyFileBytes, "")
	if err != nil {
		return "", nil, err
	}
	var a actorSettings
	decode(f.root, &a)
	actor, id = a.toIdentity()
	return actor, id, nil
}
