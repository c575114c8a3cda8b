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

// examination is a proof before its faults are put into one line.
type examination struct {
	id, sentence, witness string
	faults                []string
}

// Prove examines a table and gives every proof in a fixed order, those that hold and those that do
// not. It takes any Spec, however broken; the empty one fails.
func Prove(s *Spec) []Proof {
	var proofs []Proof
	for _, v := range examineSpec(s) {
		p := Proof{ID: v.id, Sentence: v.sentence, Holds: len(v.faults) == 0, Witness: v.witness}
		if !p.Holds {
			p.Witness = strings.Join(v.faults, "; ")
		}
		proofs = append(proofs, p)
	}
	return proofs
}

func examineSpec(s *Spec) []examination {
	c := newChart(s)
	verdicts := []examination{
		c.proveWritten(), c.proveNamed(), c.proveDeclared(), c.proveUsed(), c.proveDeterministic(), c.proveOneMeaning(),
		c.proveAcyclic(), c.proveRanksRise(), c.proveTerminalsClosed(), c.proveReachesTerminal(), c.proveReachable(),
		c.proveOneEffect(),
	}
	for i := range s.Claims.Effects {
		e := &s.Claims.Effects[i]
		verdicts = append(verdicts, c.proveOneWayIn(e))
		for _, d := range e.Dominators {
			verdicts = append(verdicts, c.proveDominator(e, d))
		}
	}
	for _, b := range s.Claims.Between {
		verdicts = append(verdicts, c.proveBetween(b))
	}
	for i, e := range s.Claims.Exits {
		verdicts = append(verdicts, c.proveExits(i, e))
	}
	for _, e := range s.Claims.SoleEntry {
		verdicts = append(verdicts, c.proveSoleEntry(e))
	}
	return verdicts
}
