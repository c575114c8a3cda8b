package config

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// MaxPolicyTests bounds the tests of one file.
const MaxPolicyTests = 10_000

// A PolicyTest is a call and the expected decision.
type PolicyTest struct {
	Name   string
	Line   int // its line in the file
	Server string
	Tool   string
	Env    string // empty: the configuration's
	Actor  string
	Args   []byte // canonical
	Risk   *GivenRisk
	Expect string // allow, deny or pending
	Policy string // which policy must decide; empty: any

	Identity *policy.Identity // what the actor's identity provider says; nil: it is of none

	Pinned      *bool               // whether the tool's definition is pinned; nil: as the configuration says
	Annotations *policy.Annotations // the tool's annotations; nil: those that the configuration has

	History []policy.HistoryAnswer // earlier calls

	Declared bool // the file itself names the tool, under tools
}

// GivenRisk is the fixed risk of a test, instead of the risk rules' result.
type GivenRisk struct {
	Mode  string
	Score int
}

var policyTests = &shape{form: object, keys: []key{
	{name: "tests", required: true, doc: "Test calls, each with the expected decision.",
		shape: &shape{form: list, min: 1, max: MaxPolicyTests, unique: "name", what: "test", each: &shape{form: object, keys: []key{
			{name: "name", shape: &shape{form: text, max: MaxReasonBytes}, required: true, doc: "A sentence about the test."},
			{name: "input", required: true, doc: "The call.", shape: &shape{form: object, keys: []key{
				{name: "server", shape: plainName, required: true, doc: "The server's name."},
				{name: "tool", shape: toolName, required: true, doc: "The tool's own name."},
				{name: "env", shape: plainName, doc: "The environment. Default: the configuration's."},
				{name: "args", shape: &shape{form: anything}, initial: "{}", doc: "The arguments."},
				{name: "actor", shape: &shape{form: text, max: MaxToolBytes}, doc: "The requester."},
				{name: "as", absent: true, shape: actorShape, doc: "The requester, if it is one of an identity provider: instead of `actor`."},
				{name: "pinned", shape: &shape{form: boolean}, doc: "Whether the tool's definition is pinned. Default: as in the allowlist."},
				{name: "annotations", absent: true, shape: toolHints,
					doc: "The tool's annotations. Default: those of the definition stored with its pin, or none."},
				{name: "history", absent: true, shape: toldHistory, example: "{'history.count(\"actor\", \"1h\")': 5}",
					doc: "The earlier calls: the text of each `history` query, exactly as in the condition, with its result. A missing query is unknown and fails."},
			}}},
			{name: "risk", doc: "A fixed risk for the test.", shape: &shape{form: object, keys: []key{
				{name: "mode", shape: plainName, required: true, doc: "The mode."},
				{name: "score", shape: &shape{form: integer, min: 0, max: risk.MaxScore}, doc: "The score. Default: the baseline of the mode."},
			}}},
			{name: "expect", shape: &shape{form: text, enum: []string{rules.Allow, rules.Deny, rules.Pending}}, required: true,
				doc: "The expected decision."},
			{name: "expect_policy", shape: &shape{form: text, max: rules.MaxID}, doc: "The policy that must decide."},
		}}}},
	{name: "tools", absent: true, shape: &shape{form: table, max: policy.MaxServers, name: plainName, what: "server",
		each: &shape{form: list, max: MaxTools, each: toolName, unique: ".", what: "tool"}}, example: "{billing: [refund]}",
		doc: "Tools that the tests use but this configuration does not have, by server. For these tools, `test` evaluates only risk rules and policies."},
}}

// toolHints are MCP's hints. One that is not written is not given, which is more than false.
var toolHints = &shape{form: object, keys: []key{
	{name: "readOnlyHint", shape: &shape{form: boolean}, doc: "The tool changes nothing."},
	{name: "destructiveHint", shape: &shape{form: boolean}, doc: "The tool may destroy."},
	{name: "idempotentHint", shape: &shape{form: boolean}, doc: "Repeating the call changes nothing."},
	{name: "openWorldHint", shape: &shape{form: boolean}, doc: "The tool interacts with systems outside its own data."},
}}

// hints are the annotations of a node that was judged to be some; nil where there is none.
func (n *node) hints() *policy.Annotations {
	if n == nil {
		return nil
	}
	return &policy.Annotations{
		ReadOnly: n.flag("readOnlyHint"), Destructive: n.flag("destructiveHint"),
		Idempotent: n.flag("idempotentHint"), OpenWorld: n.flag("openWorldHint"),
	}
}

// flag is true or false as a key says; nil where it is not written.
func (n *node) flag(key string) *bool {
	v := n.get(key)
	if v == nil {
		return nil
	}
	return new(v.text == "true")
}

// MaxTestsFileBytes is how long a file of tests may be: it has room for [MaxPolicyTests].
const MaxTestsFileBytes = 8 << 20

// ReadPolicyTests reads a file of tests and checks its names, modes and scores against a configuration, if it is not nil. The error is
// of type [Errors].
func ReadPolicyTests(name string, content []byte, of *policy.Content) ([]PolicyTest, error) {
	src, content := checkSized(name, content, size{MaxTestsFileBytes, 1 << 20})
	if len(src.faults) > 0 {
		return nil, src.err()
	}
	src.known = true // nothing in it is secret
	root := readYAML(src, content, "write tests: and what is expected")
	src.judge(root, policyTests)
	if err := src.err(); err != nil {
		return nil, err
	}
	var tests []PolicyTest
	for i, n := range root.list("tests") {
		t := PolicyTest{Name: n.str("name"), Line: n.at.line, Expect: n.str("expect"), Policy: n.str("expect_policy")}
		in := n.get("input")
		t.Server, t.Tool, t.Env, t.Actor, t.Args = in.str("server"), in.str("tool"), in.str("env"), in.str("actor"), []byte("{}")
		if args := in.get("args"); args != nil {
			t.Args = args.json()
		}
		if as := in.get("as"); as != nil {
			if in.get("actor") != nil {
				src.fault(as.at, fmt.Sprintf("tests[%d].input.as", i), "write one of them", "tests[%d].input has both actor and as", i)
			}
			t.Actor, t.Identity = as.actor()
		}
		t.Pinned, t.Annotations = in.flag("pinned"), in.get("annotations").hints()
		if told := in.get("history"); told != nil {
			t.History = told.answers()
		}
		t.Declared = slices.Contains(root.get("tools").texts(t.Server), t.Tool)
		if given := n.get("risk"); given != nil {
			t.Risk = &GivenRisk{given.str("mode"), given.orZero("score")}
		}
		if of != nil {
			h := held{src, n, fmt.Sprintf("tests[%d].", i), of}
			h.names(&t)
			h.risk(&t)
		}
		tests = append(tests, t)
	}
	if err := src.err(); err != nil {
		return nil, err
	}
	return tests, nil
}

// held is one test that is checked against a configuration.
type held struct {
	src  *source
	test *node
	path string
	of   *policy.Content
}

func (h *held) fault(in *node, key, remedy, problem string, args ...any) {
	path := h.path + key
	h.src.fault(in.at, path, remedy, "%s: "+problem, append([]any{path}, args...)...)
}

// names refuses a server, tool or policy that the configuration does not have.
func (h *held) names(t *PolicyTest) {
	const remedy = "correct it, or name the tool under tools: to test a call that the configuration does not have yet"
	in := h.test.get("input")
	listed := func(a policy.Allowance) bool { return a.Server == t.Server && slices.Contains(a.Tools, t.Tool) }
	switch {
	case t.Declared:
	case !slices.ContainsFunc(h.of.Servers, func(s policy.Server) bool { return s.Name == t.Server }):
		h.fault(in.get("server"), "input.server", remedy, "no server %q is configured", t.Server)
	case !slices.ContainsFunc(h.of.Allowlist, listed):
		h.fault(in.get("tool"), "input.tool", remedy, "the allowlist names no tool %q of server %q", t.Tool, t.Server)
	}
	h.claims(t)
	if t.Policy == "" {
		return
	}
	named := func(p rules.Policy) bool { return p.ID == t.Policy }
	if h.of.Policy == nil || !slices.ContainsFunc(h.of.Policy.Policies, named) {
		h.fault(h.test.get("expect_policy"), "expect_policy", "", "there is no policy %q", t.Policy)
	}
}

// claims refuses a claim that the configuration does not have.
func (h *held) claims(t *PolicyTest) {
	if t.Identity == nil {
		return
	}
	var configured []string
	if h.of.Identity != nil {
		configured = h.of.Identity.Claims
	}
	for _, c := range t.Identity.Claims {
		if !slices.Contains(configured, c.Name) {
			h.fault(h.test.get("input").get("as").get("claims"), "input.as.claims", "correct it, or add it to claims of an issuer", "no claim %q is configured", c.Name)
		}
	}
}

// risk refuses a given mode that the configuration does not have, and a score that is below the mode's baseline: no call
// has that. A score that is not given becomes the baseline.
func (h *held) risk(t *PolicyTest) {
	if t.Risk == nil {
		return
	}
	modes := []risk.Mode{{Name: policy.Unrated}}
	if h.of.Risk != nil {
		modes = h.of.Risk.Modes
	}
	given := h.test.get("risk")
	i := slices.IndexFunc(modes, func(m risk.Mode) bool { return m.Name == t.Risk.Mode })
	if i < 0 {
		names := make([]string, len(modes))
		for k, m := range modes {
			names[k] = m.Name
		}
		h.fault(given.get("mode"), "risk.mode", "use "+strings.Join(names, ", "), "there is no risk mode %q", t.Risk.Mode)
		return
	}
	switch score := given.get("score"); {
	case score == nil:
		t.Risk.Score = modes[i].Baseline
	case t.Risk.Score < modes[i].Baseline:
		h.fault(score, "risk.score", "", "no call has the mode %q and the score %d: the baseline of the mode is %d",
			t.Risk.Mode, t.Risk.Score, modes[i].Baseline)
	}
}
