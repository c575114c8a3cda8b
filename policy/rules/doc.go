// Package rules decides by an operator's policies whether a call is allowed, denied, or held for approvers. It is pure: the same policies and the same call
// give the same decision, at any time and on any machine.
//
// # One decision
//
// Policies are an ordered list. The first policy that matches decides; the policies below it are not evaluated. If none matches, the call is denied. An
// empty list and the zero [Set] deny every call.
//
// A policy matches if its three globs match the server, the tool and the environment, and its condition `when` is true. A missing glob matches everything,
// and a missing `when` is true. Globs are those of package glob: `*` is any run of characters, `?` is one character, letter case matters. Server and
// environment have the names of the operator's configuration.
//
// The matching policy decides in this order:
//
//  1. `deny` is true: the call is denied.
//  2. `require_approval_if` is true: the call is held until approvers have decided.
//  3. Otherwise `effect` decides: allow, deny, or pending, which holds the call.
//
// `deny` and `require_approval_if` are allowed only with `effect: allow`, which they restrict. With another effect they would have no effect, so Compile
// refuses them.
//
// # Conditions
//
// Conditions are CEL; package condition says what they may name. Compile reads, checks and bounds them, and reports all faults of all policies together.
//
// A condition can still fail when it runs: it uses an argument that the call does not have, or compares a text with a number. has(args.amount) tests for
// the argument. A failing condition counts against the call:
//
//   - `when` fails, and the policy could deny or hold (its effect is deny or pending, or it has `deny` or
//     `require_approval_if`): the call is denied.
//   - `when` fails, and the policy can only allow: the policy does not match, and the next one is evaluated.
//   - `deny` or `require_approval_if` fails: the call is denied.
//
// So a condition that fails never turns a denial or a hold into an allow. If it denied the call, Failed of the [Decision] has [CodeFailed] and the reason.
//
// If `deny` is true, `require_approval_if` is not evaluated. If the policy does not match, neither is evaluated. As in CEL, a || b is true if one side is
// true, even if the other side fails.
//
// # The budget
//
// A decision has a budget ([condition.MaxDecision]), which risk rules use first. The costs of all conditions are added up while they run. When a condition
// exceeds the budget, the evaluation stops, and the call is denied. Failed of the [Decision] then has [CodeSpent]. So a spent budget never turns a denial
// or a hold into an allow, and it needs no clock: the same call is denied at the same condition on every machine.
//
// Policies in shadow have a budget of their own ([condition.MaxTrial]). When it is spent, the remaining shadow policies with conditions are recorded as
// [Unjudged].
//
// # Approvers
//
// A policy that can hold a call has four more keys: `approvers` (the roles that may decide; default: any approver), `quorum` (the number of people who
// must approve; default [DefaultQuorum], at most [MaxQuorum]) and `expires` (the time after which the call counts as denied; default [DefaultExpires],
// [MinExpires] to [MaxExpires]) and `fresh` (a vote counts only from a session of the console that began within that time; default: any vote, [MinFresh] to
// [MaxFresh]). The ledger checks `fresh` when it takes the vote. Compile refuses these keys in other policies.
//
// `reason` is the operator's sentence about the policy. It is the reason of every decision of the policy, except if a condition failed: then the reason
// names that condition.
//
// # Shadow
//
// A policy with `mode: shadow` never decides. If it matches (or its `when` fails and it would have denied), and no enforced policy above it has decided,
// the decision it would have made is recorded. So a shadow policy should be at its final place in the list. At most [MaxShadow] policies may be in shadow.
//
// # Properties
//
// These properties hold for every list of policies and every call, and tests check them:
//
//   - A policy added below the one that decides changes nothing.
//   - Two neighbours whose globs cannot both match one call can swap places.
//   - A shadow policy, at any place, never changes effect, policy or reason.
//   - Replacing any condition by one that fails never turns a denial or a hold into an allow.
//   - With a smaller budget, the decision is the same or a denial.
//
// # Speed
//
// A decision compares the globs of each policy from the first to the one that decides. Its allocations depend on the evaluated conditions and the recorded
// shadow policies, not on the number of policies.
package rules
