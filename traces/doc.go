// Package traces writes the record of a run, detects changes to it, and replays it.
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
// A [Recorder] writes each step to trace_<run id>.partial, which it locks, and flushes the steps
// that fire dispatch or hold to disk before it returns. [Recorder.Finish] replaces the partial file
// by the finished document atomically. [Replayer.Recover] ends the runs of processes that died.
//
// # Executing again
//
// [Replayer.Replay] runs the same machine, stages and loop as a live run, with a handler that only
// reads the trace. Every command, event, fact and transition must be byte for byte as recorded; the
// first difference is a [DivergenceError]. Replay opens no socket and writes no file.
package traces
