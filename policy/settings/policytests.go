package settings

import (
	"pgfsm/policy"
	"pgfsm/policy/rules"
)

// MaxPolicyTests bounds the tests of one file.
const MaxPolicyTests = 10_000

// A PolicyTest is a call and what policies must decide about it.
type PolicyTest struct {
	Name   string
	Line   int // where it stands in its file
	Server string
	Tool   string
	Env    string // empty: the configuration's
	Actor  string
	Args   []byte // canonical
	Risk   *GivenRisk
	Expect string // allow, deny or pending
	Policy string // which policy must decide; empty: any

	Pinned      *bool               // whether the tool's definition is pinned; nil: as the configuration says
	Annotations *policy.Annotations // what the tool says of itself, whole; nil: what the configuration knows of it

	History []policy.HistoryAnswer // what there was before
}

// GivenRisk is a risk that a test takes as given, in place of what the risk rules would say.
type GivenRisk struct {
	Mode  string
	Score int
}

var policyTests = &shape{form: object, keys: []key{
	{name: "tests", required: true, doc: "Calls, and what must be decided about them.",
		shape: &shape{form: list, min: 1, max: MaxPolicyTests, unique: "name", what: "test", each: &shape{form: object, keys: []key{
			{name: "name", shape: &shape{form: text, max: MaxReasonBytes}, required: true, doc: "What the test shows."},
			{name: "input", required: true, doc: "The call.", shape: &shape{form: object, keys: []key{
				{name: "server", shape: plainName, required: true, doc: "The server's name."},
				{name: "tool", shape: toolName, required: true, doc: "The tool's own name."},
				{name: "env", shape: plainName, doc: "The environment. Without it: that of the configuration."},
				{name: "args", shape: &shape{form: anything}, initial: "{}", doc: "The arguments."},
				{name: "actor", shape: &shape{form: text, max: MaxToolBytes}, doc: "Who asks."},
				{name: "pinned", shape: &shape{form: boolean}, doc: "Whether the tool's definition is pinned. Without it: as the allowlist says."},
				{name: "annotations", absent: true, shape: toolHints,
					doc: "What the tool says of itself, in place of what is known of it. Without it: what the kept definition of its pin says, or nothing."},
				{name: "history", absent: true, shape: toldHistory, example: "{'history.count(\"actor\", \"1h\")': 5}",
					doc: "What there was before: what conditions ask, as they ask it, and the number. What is not told is not known, and fails."},
			}}},
			{name: "risk", doc: "A risk to take as given.", shape: &shape{form: object, keys: []key{
				{name: "mode", shape: plainName, required: true, doc: "The mode."},
				{name: "score", shape: &shape{form: integer, min: 0, max: 1000}, initial: "0", doc: "The score."},
			}}},
			{name: "expect", shape: &shape{form: text, enum: []string{rules.Allow, rules.Deny, rules.Pending}}, required: true,
				doc: "What must be decided."},
			{name: "expect_policy", shape: &shape{form: text, max: rules.MaxID}, doc: "The policy that must decide it."},
		}}}},
}}

// toolHints are MCP's hints. One that is not written is not given, which is more than false.
var toolHints = &shape{form: object, keys: []key{
	{name: "readOnlyHint", shape: &shape{form: boolean}, doc: "The tool changes nothing."},
	{name: "destructiveHint", shape: &shape{form: boolean}, doc: "The tool may destroy."},
	{name: "idempotentHint", shape: &shape{form: boolean}, doc: "A second same call changes nothing."},
	{name: "openWorldHint", shape: &shape{form: boolean}, doc: "The tool reaches beyond its own data."},
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

// ReadPolicyTests reads a file of tests. The error is of type [Errors].
func ReadPolicyTests(name string, content []byte) ([]PolicyTest, error) {
	src, content := checkText(name, content)
	if len(src.faults) > 0 {
		return nil, src.err()
	}
	root := readYAML(src, content, "write tests: and what is expected")
	src.judge(root, policyTests)
	if err := src.err(); err != nil {
		return nil, err
	}
	var tests []PolicyTest
	for _, n := range root.list("tests") {
		risk := n.get("risk") // before the rest is completed: no risk is none, not one of 0
		t := PolicyTest{Name: n.str("name"), Line: n.at.line, Expect: n.str("expect"), Policy: n.str("expect_policy")}
		if risk != nil {
			complete(risk, policyTests.keys[0].shape.each.keys[2].shape)
			t.Risk = &GivenRisk{risk.str("mode"), risk.integer("score")}
		}
		in := n.get("input")
		t.Server, t.Tool, t.Env, t.Actor, t.Args = in.str("server"), in.str("tool"), in.str("env"), in.str("actor"), []byte("{}")
		if args := in.get("args"); args != nil {
			t.Args = args.json()
		}
		t.Pinned, t.Annotations = in.flag("pinned"), in.get("annotations").hints()
		if told := in.get("history"); told != nil {
			t.History = told.answers()
		}
		tests = append(tests, t)
	}
	return tests, nil
}
