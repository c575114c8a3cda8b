// Package fromtraces makes a regression suite of stored traces: requests, plans and decisions as cases of package eval. With the
// suite, another bundle or another version of pgfsm is compared with the decisions about real calls.
//
// # What becomes a case
//
// A trace is read strictly, checked against its chain and executed again; a trace that diverges is left out and named. Each other
// trace becomes one case with its request, its actor and time, the call that the planner proposed, and the decision:
//
//   - A call that was made is in needs, and expect is [eval.Made].
//   - A call that a gate refused is in wants, as the attack "refused", and expect is the code.
//   - A call that was held for approvers is in wants, as the attack "held", whatever they decided. The approver of package
//     eval/attack denies it; expect is the code of that denial, so the expectation breaks if the call is allowed, or refused
//     without asking.
//   - A request that the input policy refused has no plan. Its call is an empty plan.
//   - A run that asked back, a run that failed before a decision, and an agent's call that repeats with answers to a server's
//     questions, are no cases. They are named.
//
// The id of a case is the tool, or the code that stopped a request without a plan, and the run's id.
//
// # Files
//
// Each different catalog is written once: tools-DIGEST.json. Traces whose bundles judge calls alike share one file of cases,
// cases-DIGEST.jsonl; the model, the servers' addresses and the mode of summaries do not matter for that. The last grant of a
// bundle is the case's own, because a run's --grant comes last: grants/DIGEST.json. Every case is judged once by the bundle of its
// trace. A case that does not come out as recorded, because it depends on earlier calls that no suite has, is left out and named.
//
// The same traces give the same bytes: a suite has no time, and does not depend on the order of traces.
package fromtraces
