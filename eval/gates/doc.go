// Package gates measures the gates alone: without a model, without servers and without a network. Each suite holds one of
// them, or the whole machine around them, to cases whose right answer is known beforehand, and counts what slips.
//
// A slip is a case with another answer than the right one, in either direction: what must be refused and is not, and what
// must pass and does not. Where the answer is known from a table, the table was written by hand. Where cases are generated,
// the generator knows by construction what it makes, and a second reader that shares no code with the gates (the standard
// library's lenient decoder, with everything that makes JSON strict checked by hand) judges every case as well.
//
// A slip is shrunk before it is shown: pieces are taken out of its input as long as the wrong answer stays the same and the
// right answer to what is left is still known.
//
// The result holds no time and no order of maps or goroutines: the same seed gives the same bytes, on any machine and with
// any number of jobs.
package gates
