// Package traces writes the trace of a run, detects changes to it, and replays it.
//
// # The document
//
// A trace is one JSON document, trace_<run id>.json, with the members format, run_id, machine,
// bundle, request, steps, outcome and head; docs/reference/trace-format.md describes it in enough
// detail to write a verifier. Every value is in the canonical form of package canonical. Steps are
// chained: a step's prev is the hash of the step before it, or the digest of the header (everything
// before steps) for step 0; its hash covers all its other members; head covers the last hash and
// the outcome. So [Read] detects every changed, missing, additional or reordered value, and names
// the first one. It does not detect a recomputed chain; to detect this, compare the head with the
// one that the run printed.
//
// # Writing
//
// Runs are recorded in a ledger (package ledger), which derives the trace of a run that has ended: a
// [Chain] links the steps, and [Document] writes them. A trace can be derived again, so deleting a
// file does not delete a run.
//
// # Executing again
//
// [Replayer.Replay] runs the same machine, stages and loop as a live run, with a handler that only
// reads the trace. Every command, event, fact and transition must be byte for byte as recorded; the
// first difference is a [DivergenceError]. Replay opens no socket and writes no file.
package traces
