package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Severity is the severity of a finding.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // it cannot be what its author meant
	Warning Severity = "warning" // it may be intended, but permits more than it should
	Note    Severity = "note"    // it has no effect here, but may have one with another environment or allowlist
)

// The codes of findings. They do not change.
const (
	PolicyUnreachable    = "policy_unreachable"
	ApprovalUnreachable  = "approval_unreachable"
	RiskNotMonotonic     = "risk_not_monotonic"
	ConditionNeverTrue   = "condition_never_true"
	ConditionAlwaysTrue  = "condition_always_true"
	ConditionAlwaysFails = "condition_always_fails"
	AllowsEverything     = "allows_everything"
	ArgumentUnknown      = "argument_unknown"
	ArgumentType         = "argument_type"
	ArgumentOptional     = "argument_optional"
	ModeUnknown          = "mode_unknown"
	RuleUnknown          = "rule_unknown"
	RiskUnconfigured     = "risk_unconfigured"
	RoleUnknown          = "role_unknown"
	NameUnconfigured     = "name_unconfigured"
	ServerUnconfigured   = "server_unconfigured"
	MatchImpossible      = "match_impossible"
	MatchesNoTool        = "matches_no_tool"
	ToolUnmentioned      = "tool_unmentioned"
	DestructiveAllowed   = "destructive_allowed"
	WriteAllowed         = "write_allowed"
)

// A Code is a kind of finding.
type Code struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Meaning  string   `json:"meaning"`
}

// Codes returns every kind of finding, in the order of the manual.
func Codes() []Code { return slices.Clone(codes) }

var codes = []Code{
	{PolicyUnreachable, Error, "No call reaches the policy: policies above it decide every call that it matches."},
	{ApprovalUnreachable, Error, "The policy holds no call: earlier policies, or its own deny, decide every call that it would hold."},
	{RiskNotMonotonic, Warning, "The policy stops a call, and lets the same call through if its mode or score is higher."},
	{ConditionNeverTrue, Error, "The condition is not true for any call."},
	{ConditionAlwaysTrue, Warning, "The condition is not false for any call."},
	{ConditionAlwaysFails, Error, "The expression cannot be judged for any call."},
	{AllowsEverything, Warning, "The policy allows every call that reaches it, including calls of unexpected tools."},
	{ArgumentUnknown, Error, "No tool that the policy or rule is about has an argument of this name."},
	{ArgumentType, Error, "The argument has another type in every tool that the policy or rule is about."},
	{ArgumentOptional, Note, "A risk rule asks about an argument that a call may lack, and the rule then counts as matched."},
	{ModeUnknown, Error, "There is no such risk mode."},
	{RuleUnknown, Error, "There is no such risk rule."},
	{RiskUnconfigured, Error, "The condition asks for the risk of a call, but there are no risk rules."},
	{RoleUnknown, Error, "There is no such role in the configuration."},
	{NameUnconfigured, Note, "The condition names an environment, a tool or a kind of actor that does not exist."},
	{ServerUnconfigured, Warning, "The policy, rule or condition names a server that is not configured."},
	{MatchImpossible, Error, "The policy denies or holds calls, or the rule rates them, and a glob of it can match none: globs have only `*` and `?`, " +
		"and a tool's name does not contain its server's. Or a condition names such a tool."},
	{MatchesNoTool, Note, "The policy matches no tool on the allowlist."},
	{ToolUnmentioned, Warning, "The allowlist names the tool, but no policy matches it: every call is denied."},
	{DestructiveAllowed, Error, "A tool that says it may destroy is allowed without a person."},
	{WriteAllowed, Warning, "A tool that does not say it is read-only is allowed without a person."},
}

// The lists that can have findings; see [Finding].List.
const (
	Policies    = "policies"
	Vars        = "vars"
	Rules       = "rules"
	ModeByScore = "set_mode_by_score"
	Allowlist   = "allowlist"
)

// A Finding is one fault or suspicious place.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// List is where Place counts: policies (of policy.yaml), vars, rules or set_mode_by_score (of risk.yaml), or
	// allowlist (where Place counts servers).
	List  string `json:"list"`
	Place int    `json:"place"` // from 0
	// Policy is the id of the policy; of the rule, or the name of the variable or mode, in the other lists.
	Policy string `json:"policy"`
	Key    string `json:"key"`    // what is at fault in the element: "when", "match", "args[2].path", …
	Line   int    `json:"line"`   // within the expression, from 1; 0 if it is not about a place in one
	Column int    `json:"column"` // in characters, likewise
	Server string `json:"server"` // of the tool, if it is about one
	Tool   string `json:"tool"`

	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
}

// String returns the finding in one line.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s[%d]", f.Severity, f.Code, f.List, f.Place)
	if f.Policy != "" {
		fmt.Fprintf(&b, " (%q)", f.Policy)
	}
	if f.Key != "" {
		b.WriteString(", " + f.Key)
	}
	if f.Line > 0 {
		fmt.Fprintf(&b, ", %d:%d", f.Line, f.Column)
	}
	b.WriteString(": " + f.Problem)
	if f.Remedy != "" {
		b.WriteString("; " + f.Remedy)
	}
	return b.String()
}

// order is the order of the files and of their elements.
var order = map[string]int{}

func init() {
	for i, word := range []string{Policies, Vars, Rules, ModeByScore, Allowlist, // lists
		"", "match", "expr", "when", "effect", "deny", "require_approval_if", "approvers", "args", "score_expr"} { // keys
		order[word] = i
	}
}

// byPlace compares findings by their place.
func byPlace(a, b Finding) int {
	key := func(f Finding) int {
		if i := strings.IndexAny(f.Key, "[."); i >= 0 {
			return order[f.Key[:i]]
		}
		return order[f.Key]
	}
	return cmp.Or(cmp.Compare(order[a.List], order[b.List]), cmp.Compare(a.Place, b.Place), cmp.Compare(key(a), key(b)),
		cmp.Compare(a.Key, b.Key), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
		cmp.Compare(a.Code, b.Code), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool),
		cmp.Compare(a.Problem, b.Problem))
}
