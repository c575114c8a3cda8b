package fsm

import "strings"

// Proof is one sentence about a table and whether it holds. Witness is something to check it by:
// for a true sentence the order, number or list that shows it, for a false one the rows, places or
// path that break it.
type Proof struct {
	ID       string `json:"id"`
	Sentence string `json:"sentence"`
	Holds    bool   `json:"holds"`
	Witness  string `json:"witness"`
}

// verdict is a proof before its faults are put into one line.
type verdict struct {
	id, sentence, witness string
	faults                []string
}

// Prove examines a table and gives every proof in a fixed order, those that hold and those that do
// not. It takes any Spec, however broken; the empty one fails.
func Prove(s *Spec) []Proof {
	var proofs []Proof
	for _, v := range examine(s) {
		p := Proof{ID: v.id, Sentence: v.sentence, Holds: len(v.faults) == 0, Witness: v.witness}
		if !p.Holds {
			p.Witness = strings.Join(v.faults, "; ")
		}
		proofs = append(proofs, p)
	}
	return proofs
}

func examine(s *Spec) []verdict {
	c := newChart(s)
	verdicts := []verdict{
		c.written(), c.named(), c.declared(), c.used(), c.deterministic(), c.oneMeaning(),
		c.acyclic(), c.ranksRise(), c.terminalsClosed(), c.reachesTerminal(), c.reachable(),
		c.oneEffect(), c.oneWayIn(),
	}
	for _, d := range s.Claims.Dominators {
		verdicts = append(verdicts, c.dominates(d))
	}
	for _, b := range s.Claims.Between {
		verdicts = append(verdicts, c.between(b))
	}
	for i, e := range s.Claims.Exits {
		verdicts = append(verdicts, c.exits(i, e))
	}
	for _, e := range s.Claims.SoleEntry {
		verdicts = append(verdicts, c.soleEntry(e))
	}
	return verdicts
}
