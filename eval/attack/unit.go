package attack

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
)

// side tells which side wants a unit's calls.
type side string

const (
	needs side = "needs" // the task's: a refused one is lost utility
	wants side = "wants" // the attack's
)

// A unit is the calls of one side of a case, and their results in every arm. Cases in which a
// task's calls meet the same world share one unit; see [unit.sumInputs].
type unit struct {
	c      *eval.Case // the first that has it
	side   side
	tools  *eval.Tools
	config *configFile
	grant  *grant // nil: the case has none
	digest canonical.Digest

	usual *eval.Tools // the servers' tools unless a case has others
	then  *configFile // the configuration under which the replayed call was approved; nil: that of the case

	trials []*trial     // one for each chosen arm, in their order
	arms   []armOutcome // the outcomes, likewise
}

func (u *unit) calls() []eval.Call {
	if u.side == needs {
		return u.c.Needs
	}
	return u.c.Wants
}

// resultVersion is part of every digest of a unit. It changes with everything in this package that
// may change an outcome: the definition of an arm, an approver, the naive reading.
const resultVersion = "pgfsm.attack.unit/v1"

// sumInputs names all inputs that the unit's outcome depends on. For a task's calls these are the
// task and its world, and neither the attack nor the suite: all attacks on one task share the unit,
// in every suite that has the task.
func (u *unit) sumInputs(machine canonical.Digest, arms []Arm) error {
	named := *u.c
	named.Expect, named.Grant, named.Bundle, named.Tools = nil, "", "", "" // the files are named by digest
	if u.side == needs {
		named.ID, named.Suite, named.Attack, named.Wants, named.Before, named.Approved = "", "", "", nil, nil, nil
	}

	if named.Approved != nil {
		approved := *named.Approved
		approved.Bundle = ""
		named.Approved = &approved
	}

	text, err := canonical.Marshal(&named)
	if err != nil {
		return err
	}

	var granted canonical.Digest
	if u.grant != nil {
		granted = u.grant.digest
	}

	var usual, then canonical.Digest
	if named.Approved != nil {
		usual = u.usual.Digest()
		if u.then != nil {
			then = u.then.digest
		}
	}

	u.digest, err = canonical.SumOf("evaluation unit", struct {
		Version string           `json:"version"`
		Arms    []Arm            `json:"arms"`
		Bundle  canonical.Digest `json:"bundle"`
		Case    jsontext.Value   `json:"case"`
		Grant   canonical.Digest `json:"grant"`
		Machine canonical.Digest `json:"machine"`
		Side    side             `json:"side"`
		Tools   canonical.Digest `json:"tools"`
		// If votes are replayed: what the servers listed when they were given.
		Usual canonical.Digest `json:"usual"`
		// If votes are replayed: the bundle that they were given under.
		Then canonical.Digest `json:"then"`
	}{resultVersion, arms, u.config.digest, text, granted, machine, u.side, u.tools.Digest(), usual, then})

	return err
}
