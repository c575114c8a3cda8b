// Package rules decides by an operator's policies whether a call is allowed, denied, or held for
// approvers. It is pure: the same policies and the same call give the same decision, at any time
// and on any machine. docs/reference/policy-language.md is the manual of policy.yaml.
//
// Policies are an ordered list. The first policy whose globs match and whose `when` is true
// decides: `deny` denies, `require_approval_if` holds, and otherwise `effect` decides. If none
// matches, the call is denied. The zero [Set] denies every call.
//
// A failing condition counts against the call. If `when` fails, a policy that could deny or hold
// denies, and a policy that can only allow does not match. If `deny` or `require_approval_if`
// fails, the call is denied. Failed of the [Decision] then has [CodeFailed] and the reason.
//
// All conditions share the budget of the decision ([condition.MaxDecision]), which risk rules use
// first. When it is spent, the call is denied, and Failed has [CodeSpent]. Policies in shadow have
// a budget of their own ([condition.MaxTrial]) and decide nothing: what they would have decided is
// recorded.
//
// These properties hold for every list of policies and every call, and tests check them:
//
//   - A policy added below the one that decides changes nothing.
//   - Two neighbours whose globs cannot both match one call can swap places.
//   - A shadow policy, at any place, never changes effect, policy or reason.
//   - Replacing any condition by one that fails never turns a denial or a hold into an allow.
//   - With a smaller budget, the decision is the same or a denial.
package rules
