// Package gates measures each gate alone, without a model, servers or a network. Each suite takes one gate, or the whole machine
// around it, through cases whose right answer is known, and counts wrong answers. A gate alone is called as a function; the machine
// is run by a [runner.Runner], which records nothing.
//
// A wrong answer is a slip: the gate allows what it must refuse, or refuses what it must allow. Tables of cases were written by
// hand. Where cases are generated, the generator knows the right answer by construction, and for plans a second reader judges
// every case as well. It shares no code with the gates: it is the standard library's lenient decoder, with checks by hand for
// everything that makes JSON strict.
//
// The result holds no time, and no order of maps or goroutines: the same seed gives the same bytes on any machine and with any
// number of jobs.
package gates
