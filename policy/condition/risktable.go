package condition

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// maxScore is the highest score, as [Names] says.
const maxScore = 1000

// A riskTable holds the outcomes of an atom at each risk. CEL evaluates the atom with all other names unknown, when a mode is
// first needed.
type riskTable struct {
	reading     *Reading // of the atom alone; nil if it could not be planned
	score, mode bool     // which of the two the atom names
	others      bool     // it names more
	negated     bool     // the atom is the opposite of reading
	known       map[string]*[maxScore + 1]Outcomes
}

// readRisk gives the atom a table if it names risk.score or risk.mode. An atom with a loop is unknown at every risk: a loop
// can take long, and would run for each of them.
func (a *Atom) readRisk(r *Reading, e ast.Expr) {
	t := &riskTable{known: make(map[string]*[maxScore + 1]Outcomes)}
	loops := false
	for _, part := range ast.MatchDescendants(ast.NavigateExpr(r.ast, e), ast.AllMatcher()) {
		switch {
		case part.Kind() == ast.ComprehensionKind:
			loops = true
		case part.Kind() == ast.CallKind && isQuery(part):
			t.others = true
		case part.Kind() != ast.IdentKind:
		case part.AsIdent() == names[nameRiskScore].Name:
			t.score = true
		case part.AsIdent() == names[nameRiskMode].Name:
			t.mode = true
		default:
			t.others = true
		}
	}
	if !t.score && !t.mode {
		return
	}
	a.risk = t
	if loops {
		return
	}
	if t.score && !t.mode && !t.others {
		a.Name = names[nameRiskScore].Name
	}
	alone := ast.NewCheckedAST(ast.NewAST(e, r.ast.SourceInfo()), r.ast.TypeMap(), r.ast.ReferenceMap())
	program, err := r.env.plan(alone, partial...)
	if err == nil {
		t.reading = &Reading{env: r.env, ast: alone, program: program}
	}
}

// AsksRisk reports whether the atom names risk.score or risk.mode.
func (a *Atom) AsksRisk() bool { return a.risk != nil }

// AtRisk returns the outcomes of an atom that uses the risk, at a mode and a score from 0 to 1000.
func (a *Atom) AtRisk(mode string, score int) Outcomes {
	t := a.risk
	if t == nil || t.reading == nil {
		return anything
	}
	if !t.mode {
		mode = ""
	}
	if !t.score {
		score = 0
	}
	table := t.known[mode]
	if table == nil {
		table = t.at(mode)
		t.known[mode] = table
	}
	return table[score]
}

// at evaluates the atom at every score of a mode.
func (t *riskTable) at(mode string) *[maxScore + 1]Outcomes {
	c := cases{values: map[int]ref.Val{nameRiskMode: nameText(mode)}}
	for n := range nameCount {
		if t.others && n != nameRiskMode && n != nameRiskScore {
			c.unknown = append(c.unknown, cel.AttributePattern(names[n].Name))
		}
	}
	table := new([maxScore + 1]Outcomes)
	for score := range table {
		c.values[nameRiskScore] = types.Int(score)
		if table[score] = t.reading.outcome(&c); t.negated {
			table[score] = table[score].not()
		}
		if !t.score {
			break
		}
	}
	return table
}
