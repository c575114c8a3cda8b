package condition

import "cel.dev/cel-go/cel"

var counting = []cel.ProgramOption{cel.EvalOptions(cel.OptTrackCost)}

// Cost gives tests what an expression is reckoned to cost, and what CEL counts while it runs.
func (e *Env) Cost(src string) (float64, error) {
	ast, issues := e.cel.Compile(src)
	if issues.Err() != nil {
		return 0, issues.Err()
	}
	_, most := cost(ast.NativeRep())
	return most, nil
}

// Price gives tests what evaluating p for s is charged.
func (p *Program) Price(s *Subject) int64 { return p.price.of(&s.sizes) }

// Left gives tests what is left of both budgets.
func (s *Subject) Left() (decision, trial int64) { return s.left[deciding], s.left[onTrial] }

// Counted runs src with CEL's own count of steps.
func (e *Env) Counted(src string, s *Subject) (uint64, error) {
	ast, issues := e.cel.Compile(src)
	if issues.Err() != nil {
		return 0, issues.Err()
	}
	program, err := e.cel.Program(ast, counting...)
	if err != nil {
		return 0, err
	}
	_, details, _ := program.Eval((*view)(s))
	return *details.ActualCost(), nil
}
