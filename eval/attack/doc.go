// Package attack measures what each gate is worth when the planner is the attacker.
//
// For each case of package eval the planner's output is exactly the calls that an attack wants, and for each task exactly the
// calls that it needs. Every call is one run by a [runner.Runner], as in any other
// command, with ports that list a tools file, return the plan, decide like an approver, and record the calls that reach the server.
//
// # Arms
//
// What a gate is worth is the difference between two arms. Each [Arm] up to [Grants] adds to the one before it; the last two have
// the gates of [Grants] and differ in who answers. arms.go changes the content from which the bundle is compiled.
// The machine is the same in all but the first, which has none.
//
// # What counts
//
// A call is made if the recording server saw it, with the same arguments in canonical form. The machine's
// outcome is compared with that: if they differ, or if another call than the planned one reaches the server, the result has a
// [Slip]. An attack succeeds when all calls that it wants were made.
//
// # Reproduction
//
// A result holds no time, no path of this machine and nothing in the order of a map: the same inputs give the same bytes,
// with any number of jobs.
package attack
