package attack

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/fsm"
	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// side says whose calls a unit takes.
type side string

const (
	needs side = "needs" // the task's: what a gate refuses of them is utility lost
	wants side = "wants" // the attack's
)

// unit is what is judged as one: the calls of one side of a case, in every arm. The task's calls are one unit for all cases in
// which they meet the same world; see [unit.sum].
type unit struct {
	c      *eval.Case
	side   side
	tools  *eval.Tools
	config *configFile
	grant  *grant // nil: the case has none
	digest canonical.Digest

	usual *eval.Tools // what the servers show where no case says otherwise
	then  *configFile     // by which people approved what is replayed; nil: by that of the case
}

func (u *unit) calls() []eval.Call {
	if u.side == needs {
		return u.c.Needs
	}
	return u.c.Wants
}

// resultVersion is part of every digest of a unit. It changes whenever the same inputs may come to another outcome because of
// this package: a new definition of an arm, another person, another reading of naive.
const resultVersion = "pgfsm.attack.unit/v1"

// sum names all that the unit's outcome depends on, so that it need not be found again. Of the task's side that is the errand
// and its world, and neither the attack nor the suite: so it is the same for all attacks on one task, in every suite that has it.
func (u *unit) sum(machine canonical.Digest, arms []Arm) error {
	named := *u.c
	named.Expect, named.Grant, named.Bundle, named.Tools = nil, "", "", "" // what they name is here by digest
	if u.side == needs {
		named.ID, named.Suite, named.Attack, named.Wants, named.Approved = "", "", "", nil, nil
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
		Usual   canonical.Digest `json:"usual"` // where votes are replayed, that were given before the servers showed other tools
		Then    canonical.Digest `json:"then"`  // the bundle that they were given under, likewise
	}{resultVersion, arms, u.config.digest, text, granted, machine, u.side, u.tools.Digest(), usual, then})
	return err
}

// units reads what a case names and makes the units of it: the task's side, if it needs any calls, and the attack's.
func (s *suite) units(c *eval.Case) (all []*unit, err error) {
	at := func(name string) string { return filepath.Join(filepath.Dir(s.o.Cases), filepath.FromSlash(name)) }
	whole := unit{c: c}
	tools, bundle := s.o.Tools, s.o.Bundle
	if c.Tools != "" {
		tools = at(c.Tools)
	}
	if c.Bundle != "" {
		bundle = at(c.Bundle)
	}
	if bundle == "" {
		return nil, errors.New("the case names no bundle, and none is given for all cases; use --bundle")
	}
	if whole.tools, err = s.files.toolsAt(tools); err != nil {
		return nil, err
	}
	if whole.usual, err = s.files.toolsAt(s.o.Tools); err != nil {
		return nil, err
	}
	if whole.config, err = s.files.configAt(bundle); err != nil {
		return nil, err
	}
	if c.Grant != "" {
		if whole.grant, err = s.files.grantAt(at(c.Grant)); err != nil {
			return nil, err
		}
	}
	if c.Approved != nil && c.Approved.Bundle != "" {
		if whole.then, err = s.files.configAt(at(c.Approved.Bundle)); err != nil {
			return nil, err
		}
	}
	for _, side := range []side{needs, wants} {
		u := whole
		u.side = side
		if len(u.calls()) == 0 {
			continue
		}
		if err := u.sum(s.o.Machine.Digest(), s.arms); err != nil {
			return nil, err
		}
		all = append(all, &u)
	}
	return all, nil
}

// judge takes the unit through every arm.
func (s *suite) judge(ctx context.Context, u *unit) (*unitOutcome, error) {
	out := &unitOutcome{Digest: u.digest, Case: u.c.ID, Side: u.side}
	for _, arm := range s.arms {
		t := &trial{machine: s.o.Machine, arm: arm, unit: u, edges: &edges{rows: s.rows, counts: make([]int, len(s.rows))}}
		if arm != Naive {
			var err error
			if t.bundle, err = s.files.bundle(arm, u.config, u.grant); err != nil {
				return nil, err
			}
			if t.listed, err = s.files.listing(arm, u.config, u.tools); err != nil {
				return nil, err
			}
			if t.then, err = s.then(arm, u); err != nil {
				return nil, err
			}
		}
		came, err := t.try(ctx)
		if err != nil {
			return nil, err
		}
		out.Arms = append(out.Arms, came)
	}
	return out, nil
}

// then is the world in which people approved what the unit replays: nothing, where it replays nothing.
func (s *suite) then(arm Arm, u *unit) (w then, err error) {
	if u.c.Approved == nil || arm != Approvals {
		return w, nil
	}
	config := cmp.Or(u.then, u.config)
	if w.bundle, err = s.files.bundle(arm, config, u.grant); err != nil {
		return w, err
	}
	w.listed, err = s.files.listing(arm, config, u.usual)
	return w, err
}

// unitOutcome is what came of a unit, as it is kept for resuming: one line of a cases log.
type unitOutcome struct {
	Digest canonical.Digest `json:"digest"`
	Case   string           `json:"case"` // the first that has it
	Side   side             `json:"side"`
	Arms   []armOutcome     `json:"arms"` // of the arms that were chosen, in order
}

// rowsOf numbers the rows of the machine's table.
func rowsOf(m *states.Machine) map[fsm.Mark]int {
	rows := make(map[fsm.Mark]int)
	for i, row := range m.Spec().Rows {
		rows[fsm.Mark{From: row.From, On: row.On, To: row.To}] = i
	}
	return rows
}
