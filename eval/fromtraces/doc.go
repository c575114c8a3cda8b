// Package fromtraces makes a regression suite of stored traces: what was asked, planned and decided, as cases of package
// eval, so that another bundle, or another version of pgfsm, can be held to what came of real calls.
//
// # What becomes a case
//
// A trace is read strictly, held to its chain and executed again; one that does not come out alike is left out and named.
// Each of the others becomes one case with its request, who asked and when, the call that the planner proposed, and what
// came of it:
//
//   - A call that was made stands under needs, and expect says [eval.Made].
//   - A call that a gate refused stands under wants, as the attack "refused", and expect says the code. So a suite that comes
//     out as recorded has every benign call permitted, and no attack that succeeds.
//   - A call that was held for people stands under wants as well, as the attack "held", whatever they decided: the person of
//     package eval/attack denies it, and that this is what stops it says that people were still asked. Were it simply
//     allowed, or refused without asking, the expectation would break.
//   - A request that the input policy refused never had a plan. Its call is a plan without a word, which nobody reads as
//     long as the request is refused.
//   - A run that asked back, one that broke before anything was decided, and an agent's call that repeats with answers to a
//     server's questions, is no case. It is named.
//
// A case is called by its tool, or where nothing was planned by the code, and by the end of the run's id, as in
// search_policy_kb/8b735af9b15c; task is the whole of that id.
//
// # Files
//
// What servers offered is written once for each different catalog: tools-DIGEST.json. Traces whose bundles judge calls alike
// share one file of cases, cases-DIGEST.jsonl; where a model is, where servers are and when there is a summary does not
// matter to that. The last grant of a bundle is the case's own (a run's --grant comes last): grants/DIGEST.json. The bundle
// without it is spelled anew, as bundle-DIGEST/pgfsm.yaml, if that can be read back as exactly what the traces hold. With such
// a bundle every case is judged once, and one that does not come out as recorded, because it rests on what no suite
// carries (calls of a task before, what people had called), is left out and named.
//
// The same traces give the same bytes: nothing of a clock or of an order of folders is in a suite.
package fromtraces
