// Package attack measures the effect of each gate when the planner is the attacker.
//
// For each case of package eval, the planner proposes exactly the calls that the attack wants and,
// for each task, exactly the calls that the task needs. Every call is one run by a [runner.Runner],
// as in any other command, with ports that list a tools file, return the plan, decide like an
// approver, and record the calls that reach the server.
//
// # Arms
//
// The difference between two arms shows the effect of a gate. Each [Arm] up to [Grants] adds gates
// to the one before it; the last two have the gates of [Grants], but treat held calls differently.
// arms.go changes the content from which the bundle is compiled. All arms but the first use the
// same machine; the first uses none.
//
// # What counts
//
// A call is made if the recording server saw it, with the same arguments in canonical form. Package
// attack compares the machine's outcome with the recorded calls: if they differ, or if another call
// than the planned one reaches the server, the result has a [Slip]. An attack succeeds when all
// calls that it wants were made.
//
// # Reproduction
//
// A result holds no time, no path of this machine and nothing in the order of a map: the same
// inputs give the same bytes.
package attack
