package condition

import "cel.dev/cel-go/cel"

var counting = []cel.ProgramOption{cel.EvalOptions(cel.OptTrackCost)}

// Cost gives tests what an expression is reckoned to cost, and what CEL counts while it runs.
func (e *Env) Cost(src string) (float64, error) {
	ast, issues := e.cel.Compile(src)
	if issues.Err() != nil {
		return 0, issues.Err()
	}
	return cost(ast.NativeRep()), nil
}

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
