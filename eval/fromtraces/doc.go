// Package fromtraces makes a regression suite of stored traces: requests, plans and decisions as
// cases of package eval. The suite shows whether another bundle or another version of pgfsm decides
// the recorded calls differently.
//
// # What becomes a case
//
// The package reads each trace strictly, checks its chain and replays it. It omits a trace that
// diverges, and names it. Each other trace becomes one case with its request, its actor and time,
// the call that the planner proposed, and the decision:
//
//   - A call that was made is in needs, and expect is [eval.Made].
//   - A call that a gate refused is in wants, as the attack "refused", and expect is the code.
//   - A call that was held for approvers is in wants, as the attack "held", whatever they decided. The approver of package
//     eval/attack denies it; expect is the code of that denial, so the expectation breaks if the call is allowed, or refused
//     without asking.
//   - A request that the input policy refused has no plan. Its call is an empty plan.
//   - Three kinds of runs become no case, and are only named: runs that end with the planner's question, runs that failed before a decision, and agents'
//     calls that answer a server's questions.
//
// The id of a case is the tool, or the code that stopped a request without a plan, and the run's
// id.
//
// # Files
//
// cases.jsonl has the cases. Each different catalog is written once: tools-DIGEST.json. The last
// grant of a bundle is the case's own, because a run's --grant comes last: grants/DIGEST.json. The
// package judges every case once by the bundle of its trace. If the outcome differs from the
// record, because the case depends on earlier calls, the package omits the case and names it.
//
// The same traces give the same bytes: a suite has no time, and does not depend on the order of
// traces.
package fromtraces
