// Package rules decides from an operator's policies whether a call may run, must not, or needs a person. It is pure:
// the same policies and the same call give the same decision, at any time and on any machine.
//
// # One decision
//
// Policies are an ordered list. The first that matches decides; those below it are not asked. If none matches, the
// call is denied. No policies at all deny everything, and so does the zero [Set].
//
// A policy matches if its three globs fit the server, the tool and the environment, and its condition `when` is true.
// A glob that is not written fits everything, and so does a `when` that is not written. Globs are those of package
// glob: `*` is any run of characters, `?` is one, case counts. Server and environment have the names of the
// operator's configuration.
//
// The policy that matched is then read in this order:
//
//  1. `deny` is true: the call is denied.
//  2. `require_approval_if` is true: the call is held until people have decided.
//  3. Otherwise `effect` says: allow, deny, or pending, which holds.
//
// `deny` and `require_approval_if` are allowed only beside `effect: allow`, which they restrict. Beside another effect they
// are refused, as they could not change anything.
//
// # Conditions
//
// Conditions are CEL; package condition says what they may name. They are read, checked and bounded when the policies
// are compiled, and never again. Every fault of every policy is reported at once.
//
// A condition can still fail when it runs: it names an argument that the call does not have, or compares a text with
// a number. has(args.amount) asks first. What fails counts against the call:
//
//   - `when` fails, and the policy could deny or hold (its effect is deny or pending, or it has `deny` or
//     `require_approval_if`): the call is denied.
//   - `when` fails, and the policy can only allow: it does not match, and the next policy is asked.
//   - `deny` or `require_approval_if` fails: the call is denied.
//
// So a condition that fails never turns a denial or a hold into an allow, at any place. If it denied the call,
// Failed of the [Decision] holds [CodeFailed] and why.
//
// `require_approval_if` is not asked where `deny` is true, and neither is asked where the policy does not match.
// Within a condition CEL asks only as far as it must: a || b is true if one side is, although the other fails.
//
// # The budget
//
// A decision has a budget ([condition.MaxDecision]), of which risk rules take first. What the conditions cost is counted
// while they are evaluated and summed over the decision. When a condition exceeds the budget, its evaluation stops, nothing
// more is evaluated, and the call is denied, whatever its policy and the policies below are. Failed of
// the [Decision] holds [CodeSpent] then. So a spent budget never turns a denial or a hold into an allow, and it needs no
// clock: the same call is denied at the same condition on every machine.
//
// Policies in shadow have a budget of their own ([condition.MaxTrial]). When it is spent, those in shadow that have
// conditions are recorded as [Unjudged].
//
// # People
//
// Where a policy can hold, it says who decides: `approvers` (who may; without any, the approval gate decides),
// `quorum` (how many must agree, [DefaultQuorum] if not written, at most [MaxQuorum]) and `expires` (how long the
// call waits before it counts as denied, [DefaultExpires] if not written, [MinExpires] to [MaxExpires]). Elsewhere
// these three are refused.
//
// `reason` is the operator's sentence about the policy. It goes with every decision that the policy makes, whichever
// condition made it, except if a condition failed: then the reason names that condition.
//
// # Shadow
//
// A policy with `mode: shadow` is on trial. It is judged like any other, and what it would have decided is recorded
// beside the decision, which is made without it. It is recorded exactly if it would have decided
// as the only enforced policy: if it matches (or its `when` fails and it would have denied), and no enforced policy
// above it has decided. So a policy on trial has the place that it is going to have. At most [MaxShadow] policies are on
// trial at a time.
//
// # What order means
//
// These hold for every list of policies and every call, and tests hold the code to them:
//
//   - A policy added below the one that decides changes nothing.
//   - Two neighbours whose globs cannot both fit one call can change places.
//   - A shadow policy, at any place, never changes effect, policy or reason.
//   - Replacing any condition by one that fails never turns a denial or a hold into an allow.
//   - A smaller budget decides the same or denies.
//
// # Speed
//
// A decision compares the globs of each policy from the first to the one that decides. What it allocates depends on the
// conditions that it evaluates and on the shadow policies that it records, not on how many policies there are.
package rules
