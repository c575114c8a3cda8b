package config

import (
	"errors"
	"strconv"

	"pgfsm/internal/glob"
	"pgfsm/internal/visible"
	"pgfsm/policy/condition"
	"pgfsm/policy/rules"
)

// PolicyVersion is the only version of policy files there is.
const PolicyVersion = 1

var (
	expression = &shape{form: text, max: condition.MaxSource, lines: true, what: "an expression"}
	globText   = &shape{form: text, max: glob.MaxPattern, what: "a glob"}
)

// globKeys are the keys that say which calls an entry speaks of.
var globKeys = []key{
	{name: "server", shape: globText, initial: "*", doc: "The server, by its name in the configuration."},
	{name: "tool", shape: globText, initial: "*", doc: "The tool."},
	{name: "env", shape: globText, initial: "*", doc: "The environment."},
}

// policyFile is the shape of a file of policies.
var policyFile = &shape{form: object, keys: []key{
	{name: "version", shape: &shape{form: integer, min: PolicyVersion, max: PolicyVersion}, required: true,
		example: number(PolicyVersion), doc: "The version of this format."},
	{name: "policies", required: true, example: "[{id: all-else, effect: deny}]",
		shape: &shape{form: list, max: rules.MaxPolicies, unique: "id", what: "policy", each: policyShape},
		doc:   "The policies, in order. The first that matches decides. If none matches, the call is denied."},
}}

var policyShape = &shape{form: object, keys: []key{
	{name: "id", shape: &shape{form: text, max: rules.MaxID}, required: true, example: "no-deletes",
		doc: "The policy's name in decisions and traces."},
	{name: "match", shape: &shape{form: object, keys: globKeys},
		doc: "The calls that the policy applies to: globs, in which `*` matches any characters and `?` one. Letter case matters."},
	{name: "when", shape: expression, doc: "A further condition on the call and its risk. Default: none.",
		example: `risk.mode != "safe"`},
	{name: "effect", shape: &shape{form: text, enum: []string{rules.Allow, rules.Deny, rules.Pending}}, required: true,
		example: rules.Deny, doc: "The decision: allow the call, deny it, or hold it for approvers."},
	{name: "deny", shape: expression, example: `"!pinned"`,
		doc: "Turns an allow into a deny: if this is true, the call is denied. Only with effect `allow`."},
	{name: "require_approval_if", shape: expression, example: "risk.score >= 50",
		doc: "If this is true, and `deny` is not, the call is held. Only with effect `allow`."},
	{name: "reason", shape: &shape{form: text, max: rules.MaxReason, check: checkShown},
		doc: "One sentence for readers of the decision.", example: `"Refunds above 100 are looked at."`},
	{name: "mode", shape: &shape{form: text, enum: []string{rules.Enforce, rules.Shadow}}, initial: rules.Enforce,
		doc: "`shadow`: the decision of the policy is recorded and has no effect."},
	{name: "approvers", example: "[release-manager]",
		shape: &shape{form: list, min: 1, max: rules.MaxApprovers, unique: ".", what: "approver",
			each: &shape{form: text, max: rules.MaxApprover, check: checkShown}},
		doc: "Roles that may decide about a held call. Like the next three keys, only in a policy that can hold a call. Default: any approver."},
	{name: "quorum", shape: &shape{form: integer, min: 1, max: rules.MaxQuorum}, initial: number(rules.DefaultQuorum),
		doc: "The number of people who must approve."},
	{name: "expires", shape: &shape{form: duration, min: rules.MinExpires, max: rules.MaxExpires},
		initial: writeDuration(rules.DefaultExpires), doc: "The time for a decision. After it, the held call counts as denied."},
	{name: "fresh", shape: &shape{form: duration, min: rules.MinFresh, max: rules.MaxFresh}, example: "5m",
		doc: "A vote counts only in the console, by an approver who signed in within this time before it. Default: any vote counts."},
}}

// checkShown refuses a text with deceptive characters.
func checkShown(s string) fault {
	if visible.Text(s) != s || visible.Blank(s) || s[0] == ' ' || s[len(s)-1] == ' ' {
		return fault{"holds characters that do not show, or begins or ends with a space", "remove them"}
	}
	return fault{}
}

// readEntries reads a file of policies or of risk rules: strict YAML, or strict JSON if its name ends in ".json". of makes
// content of what the file holds, faults and all, unless what it refers to cannot be told; refuse notes what that content's own package
// refuses. The error is of type [Errors].
func readEntries[C any](
	name string, text []byte, hint string, file *shape, of func(*node) (C, bool), refuse func(*Places, C, []string), claims []string,
) (*C, *Places, error) {
	src, text := checkSized(name, text, roomy)
	if len(src.faults) > 0 {
		return nil, nil, src.err()
	}
	src.known = true // nothing in it is secret
	root := readEither(src, text, hint)
	src.judge(root, file)
	places := &Places{src, root}
	content, ok := of(root)
	if ok {
		src.refuse()
		refuse(places, content, claims)
	}
	if err := src.err(); err != nil {
		return nil, nil, err
	}
	return &content, places, nil
}

// loadEntries reads the file at path name.
func loadEntries[C any](name string, open Open, read func(string, []byte, ...string) (*C, *Places, error)) (*C, error) {
	text, err := open(name)
	if err != nil {
		return nil, Errors{{File: name, Problem: "cannot be read: " + reason(err)}}
	}
	content, _, err := read(name, text)
	return content, err
}

// namedEntries reads the file that a key of the configuration names.
func namedEntries[C any](l *loader, key string, read func(string, []byte, ...string) (*C, *Places, error)) (*C, *Places) {
	at := l.file.root.get(key)
	if at == nil {
		return nil, nil
	}
	path := l.file.resolve(at.text)
	text, ok := l.opened(at, key, path, "")
	if !ok {
		return nil, nil
	}
	var claims []string
	if rules := l.out.Content.Identity; rules != nil {
		claims = rules.Claims
	}
	content, places, err := read(path, text, claims...)
	if err != nil {
		l.faults = append(l.faults, err.(Errors)...)
	}
	return content, places
}

// ReadPolicy reads a file of policies: strict YAML, or strict JSON if its name ends in ".json". What is not written
// stands in the content as what it means. The error is of type [Errors], and holds the faults that [rules.Compile]
// finds. Conditions may read the given claims.
func ReadPolicy(name string, text []byte, claims ...string) (*rules.Content, *Places, error) {
	return readEntries(name, text, "write version: 1 and policies: []", policyFile, policiesOf, (*Places).policyFaults, claims)
}

// LoadPolicy reads the file of policies at path name; see [ReadPolicy].
func LoadPolicy(name string, open Open) (*rules.Content, error) {
	return loadEntries(name, open, ReadPolicy)
}

// policiesOf makes policies of what was judged, faults and all: entry i stands for item i. ok is false if there are none to judge.
func policiesOf(root *node) (_ rules.Content, ok bool) {
	items := root.list("policies")
	c := rules.Content{Policies: make([]rules.Policy, len(items))}
	for i, n := range items {
		match := n.get("match")
		p := rules.Policy{
			ID:    n.str("id"),
			Match: rules.Match{Server: match.glob("server"), Tool: match.glob("tool"), Env: match.glob("env")},
			When:  n.expression("when"), Effect: n.str("effect"), Deny: n.expression("deny"),
			RequireApprovalIf: n.expression("require_approval_if"), Reason: n.str("reason"), Mode: n.str("mode"),
			Approvers: n.texts("approvers"), Quorum: n.orZero("quorum"),
		}
		if v := n.get("expires"); v != nil {
			p.Expires, _ = parseDuration(v.text)
		}
		if v := n.get("fresh"); v != nil {
			p.Fresh, _ = parseDuration(v.text)
		}
		if p.Mode == "" {
			p.Mode = rules.Enforce
		}
		if p.Effect == rules.Pending || p.Effect == rules.Allow && p.RequireApprovalIf != "" {
			if p.Quorum == 0 {
				p.Quorum = rules.DefaultQuorum
			}
			if p.Expires == 0 {
				p.Expires = rules.DefaultExpires
			}
		}
		c.Policies[i] = p
	}
	return c, root != nil && len(items) <= rules.MaxPolicies
}

// glob is the glob of a key; that for everything where there is none.
func (n *node) glob(key string) string {
	if s := n.str(key); s != "" {
		return s
	}
	return "*"
}

// expression is the expression of a key. A present but invalid one counts as true, so that rules about its presence still apply.
func (n *node) expression(key string) string {
	if n.get(key) == nil {
		return ""
	}
	if s := n.str(key); s != "" {
		return s
	}
	return "true"
}

// orZero is the number of a key, 0 where there is none.
func (n *node) orZero(key string) int {
	v := n.get(key)
	if v == nil || v.kind != isNumber {
		return 0
	}
	i, err := strconv.Atoi(v.text)
	if err != nil {
		return 0
	}
	return i
}

// policyFaults notes what the policies themselves refuse.
func (p *Places) policyFaults(c rules.Content, claims []string) {
	var all rules.Errors
	_, err := rules.Compile(c, claims...)
	if err != nil && !errors.As(err, &all) {
		p.src.fault(place{1, 1}, "", "", "%s", err)
	}
	for _, one := range all {
		at := p.find("policies", one.Index, one.Key)
		if one.Cause != nil {
			p.note(at, one.Cause)
		} else {
			p.fault(at, one.Remedy, one.Problem)
		}
	}
}
