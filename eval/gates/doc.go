// Package gates measures each gate alone, without a model, servers or a network. Each suite takes one gate, or the whole machine
// around it, through cases whose right answer is known, and counts wrong answers. A gate alone is called as a function; the machine
// is run by a [runner.Runner], which records nothing.
//
// A wrong answer is a slip: the gate allows what it must refuse, or refuses what it must allow. The tables of cases are hand-written. For generated cases,
// the generator knows the right answer by construction. Generated plans have a second oracle that shares no code with the gates: the standard library's
// lenient decoder, with hand-written checks for strict JSON.
//
// The result holds no time, and no order of maps or goroutines: the same seed gives the same bytes on any machine and with any
// number of jobs.
package gates
