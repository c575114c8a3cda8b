// Package traces keeps the record of a run: writing it while the run goes on, finding out whether anything in it was
// changed, and executing it again.
//
// # The document
//
// A trace is one JSON document, trace_<run id>.json, with the members format, run_id, machine, bundle, request, steps,
// outcome and head; docs/reference/trace-format.md describes it well enough to write a verifier from. Every value is in the
// canonical form of package canonical. Steps are chained: a step's prev is the hash of the step before it, or the
// digest of the header (everything before steps) for step 0; its hash covers all its other members; head covers the
// last hash and the outcome. So changing, dropping, adding or reordering any value anywhere is detected, and [Read]
// names the first bad place, unless the whole chain was recomputed; for that, head is printed by the run and can be
// compared.
//
// # Writing
//
// A [Recorder] writes each step to trace_<run id>.partial, which it holds locked, and flushes the steps that fire
// dispatch or hold to disk before it returns. [Recorder.Finish] puts the finished document in its place atomically.
// [Recover] ends what a process that is gone left behind.
//
// # Executing again
//
// [Replay] runs the same machine, stages and loop as a live run, behind a door that can only read the trace. Every
// command, event, fact and transition must come out byte for byte as recorded; the first that does not is a
// [DivergenceError]. It opens no socket and writes no file.
package traces
