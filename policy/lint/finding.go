package lint

import (
	"cmp"
	"slices"
	"strings"
)

// A Severity is the severity of a finding.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // the part cannot be what its author meant
	Warning Severity = "warning" // the part may be intended, but permits more than it should
	// The part has no effect here, but may have one with another environment or allowlist.
	Note Severity = "note"
)

// The codes of findings. They do not change.
const (
	PolicyUnreachable   = "policy_unreachable"   // policies above decide every call that the policy matches
	ApprovalUnreachable = "approval_unreachable" // the policy holds no call
	// The policy stops a call, and not if its mode or score is higher.
	RiskNotMonotonic     = "risk_not_monotonic"
	ConditionNeverTrue   = "condition_never_true"
	ConditionAlwaysTrue  = "condition_always_true"
	ConditionAlwaysFails = "condition_always_fails"
	AllowsEverything     = "allows_everything" // the policy also allows calls of unexpected tools
	ArgumentUnknown      = "argument_unknown"  // no tool of the policy or rule has the argument
	// The argument has another type in every tool of the policy or rule.
	ArgumentType       = "argument_type"
	ModeUnknown        = "mode_unknown"
	RuleUnknown        = "rule_unknown"
	RiskUnconfigured   = "risk_unconfigured" // there are no risk rules
	RoleUnknown        = "role_unknown"
	QuorumUnreachable  = "quorum_unreachable" // fewer people can vote than must approve
	NameUnconfigured   = "name_unconfigured"  // an environment, a tool or a kind of actor
	ServerUnconfigured = "server_unconfigured"
	MatchImpossible    = "match_impossible" // a glob of a policy or rule that stops calls can match none
	MatchesNoTool      = "matches_no_tool"
	ToolUnmentioned    = "tool_unmentioned" // no policy matches a tool on the allowlist
	// A tool that says it may destroy is allowed without a person.
	DestructiveAllowed = "destructive_allowed"
	// A tool that does not say it is read-only is allowed without a person.
	WriteAllowed = "write_allowed"
	// A call that can be made without a person can change results that labels trust.
	TrustedWritable    = "trusted_writable"
	ArgumentUnlabelled = "argument_unlabelled"  // found() passes over enums and booleans
	FoundWithoutTarget = "found_without_target" // found() is always false
)

var severities = map[string]Severity{
	PolicyUnreachable:    Error,
	ApprovalUnreachable:  Error,
	RiskNotMonotonic:     Warning,
	ConditionNeverTrue:   Error,
	ConditionAlwaysTrue:  Warning,
	ConditionAlwaysFails: Error,
	AllowsEverything:     Warning,
	ArgumentUnknown:      Error,
	ArgumentType:         Error,
	ModeUnknown:          Error,
	RuleUnknown:          Error,
	RiskUnconfigured:     Error,
	RoleUnknown:          Error,
	QuorumUnreachable:    Warning,
	NameUnconfigured:     Note,
	ServerUnconfigured:   Warning,
	MatchImpossible:      Error,
	MatchesNoTool:        Note,
	ToolUnmentioned:      Warning,
	DestructiveAllowed:   Error,
	WriteAllowed:         Warning,
	TrustedWritable:      Warning,
	ArgumentUnlabelled:   Warning,
	FoundWithoutTarget:   Warning,
}

// The lists that can have findings; see [Finding].List.
const (
	Policies    = "policies"
	Vars        = "vars"
	Rules       = "rules"
	ModeByScore = "set_mode_by_score"
	Allowlist   = "allowlist"

	LabelledTools = "tools" // of labels.yaml
	LabelledRoles = "roles"
)

// A Finding is one fault or suspicious place.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// List names the list that Place counts in: policies (of policy.yaml), vars, rules or
	// set_mode_by_score (of risk.yaml), allowlist (where Place counts servers), or tools or roles (of
	// labels.yaml).
	List  string `json:"list"`
	Place int    `json:"place"` // the index in List, from 0
	// Policy is the id of the policy; of the rule, or the name of the variable or mode, in the
	// other lists.
	Policy string `json:"policy"`
	Key    string `json:"key"`    // the faulty part of the element: "when", "match", "args[2].path", …
	Line   int    `json:"line"`   // within the expression, from 1; 0 if it is not about a place in one
	Column int    `json:"column"` // in characters, likewise
	Server string `json:"server"` // the tool's server, if it is about a tool
	Tool   string `json:"tool"`

	Problem string `json:"problem"`
	Remedy  string `json:"remedy"`
}

// order is the order of the files and of their elements.
var order = []string{Policies, Vars, Rules, ModeByScore, Allowlist, LabelledTools, LabelledRoles, // lists
	// Keys.
	"", "match", "expr", "when", "effect", "deny", "require_approval_if", "approvers", "args", "score_expr", "target", "amount", "content"}

// byPlace compares findings by their place.
func byPlace(a, b Finding) int {
	key := func(f Finding) int {
		name := f.Key
		if i := strings.IndexAny(name, "[."); i >= 0 {
			name = name[:i]
		}
		return slices.Index(order, name)
	}
	return cmp.Or(cmp.Compare(slices.Index(order, a.List), slices.Index(order, b.List)), cmp.Compare(a.Place, b.Place),
		cmp.Compare(key(a), key(b)),
		cmp.Compare(a.Key, b.Key), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
		cmp.Compare(a.Code, b.Code), cmp.Compare(a.Server, b.Server), cmp.Compare(a.Tool, b.Tool),
		cmp.Compare(a.Problem, b.Problem))
}
