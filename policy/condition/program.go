package condition

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/common/cost"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"pgfsm/internal/visible"
)

// A Program is an expression that was read and checked. It is safe for concurrent use; a nil one
// fails.
type Program struct {
	source  string
	program cel.Program
	tracker *cost.Tracker // the environment's tracker
	queries []Query
	isQuery bool     // the expression is a single query
	uses    []string // the names of the actor's identity
}

// Bool compiles a condition. Its type must be bool: Bool refuses a dynamic type (args.x alone),
// because a value other than true or false would have no meaning. The error is an [*Error].
func (e *Env) Bool(src string) (*Program, error) {
	return e.compileTyped(src, func(t *cel.Type) (string, string) {
		switch t.Kind() {
		case types.BoolKind:
			return "", ""
		case types.DynKind:
			return "the type is not known before the call", "compare it: … == true"
		}
		return "this is a " + cel.FormatCELType(t) + ", not a bool", "compare it with something"
	})
}

// Number compiles an expression whose value is a number: int, uint, double, or a dynamic type,
// which fails at run time if it is no number. The error is an [*Error].
func (e *Env) Number(src string) (*Program, error) {
	return e.compileTyped(src, func(t *cel.Type) (string, string) {
		switch t.Kind() {
		case types.IntKind, types.UintKind, types.DoubleKind, types.DynKind:
			return "", ""
		case types.BoolKind:
			return "this is a bool, not a number", "choose: … ? 10 : 0"
		}
		return "this is a " + cel.FormatCELType(t) + ", not a number", ""
	})
}

// Uses reports whether the expression reads one of actor.groups and actor.claims.NAME.
func (p *Program) Uses(name string) bool { return p != nil && slices.Contains(p.uses, name) }

// ReadsSession reports whether the expression reads the session of the call. Where arguments come from is not of it.
func (p *Program) ReadsSession() bool {
	return p != nil && slices.ContainsFunc(p.uses, func(name string) bool {
		return strings.HasPrefix(name, sessionPrefix) && !slices.Contains(readsOrigins, name)
	})
}

// lookedUpNames returns those names that an expression reads whose values are looked up only if one does:
// actor.groups, the claims, those of the session, and the functions about origins.
func lookedUpNames(a *ast.AST) (found []string) {
	for _, e := range ast.MatchDescendants(ast.NavigateAST(a), ast.AllMatcher()) {
		name := ""
		switch e.Kind() {
		case ast.IdentKind:
			name = e.AsIdent()
		case ast.CallKind:
			name = e.AsCall().FunctionName()
		}
		if name == nameGroups || slices.Contains(readsOrigins, name) || strings.HasPrefix(name, ClaimPrefix) ||
			strings.HasPrefix(name, sessionPrefix) {
			found = append(found, name)
		}
	}
	return found
}

// Source returns the expression as it was written.
func (p *Program) Source() string { return p.source }

func (e *Env) compileTyped(src string, fits func(*cel.Type) (problem, remedy string)) (p *Program, err error) {
	defer recoverUnreadable(&err)
	checked, refused := e.parseAndCheck(src)
	if refused != nil {
		return nil, refused
	}
	if problem, remedy := fits(checked.OutputType()); problem != "" {
		return nil, errorAt(nil, problem, remedy)
	}

	// The types are right; now the parts of CEL that this subset leaves out.
	a := checked.NativeRep()
	if refused := checkSubset(src, a); refused != nil {
		return nil, refused
	}

	program, err := e.planProgram(a)
	if err != nil {
		return nil, errorAt(nil, err.Error(), "")
	}

	return &Program{
		source:  src,
		program: program,
		tracker: e.tracker,
		queries: queriesOf(a),
		isQuery: isQuery(a.Expr()),
		uses:    lookedUpNames(a),
	}, nil
}

// parseAndCheck parses an expression and checks its types.
func (e *Env) parseAndCheck(src string) (*cel.Ast, *Error) {
	if len(src) > MaxSource {
		return nil, errorAt(nil, fmt.Sprintf("it has %d bytes, more than %d", len(src), MaxSource),
			"split it into several policies or variables")
	}
	checked, issues := e.cel.Compile(src)
	if issues.Err() != nil {
		return nil, e.firstIssue(issues)
	}
	return checked, nil
}

// recoverUnreadable turns a panic of CEL's parser or checker into an error.
func recoverUnreadable(err *error) {
	if r := recover(); r != nil {
		*err = errorAt(nil, fmt.Sprintf("it cannot be read: %v", r), "")
	}
}

var errNoProgram = errors.New("there is no expression")

// True reports whether the condition is true for s. An error means that the evaluation failed, and
// never comes with true. It is [ErrSpent] if the budget of s is spent.
func (p *Program) True(s *Subject) (bool, error) {
	v, err := p.eval(s)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the result is a %s, not a bool", v.Type().TypeName())
	}
	return bool(b), nil
}

// Value returns the number that the expression gives for s. It is finite. Errors are as with
// [Program.True].
func (p *Program) Value(s *Subject) (float64, error) {
	v, err := p.eval(s)
	if err != nil {
		return 0, err
	}
	if !isNumber(v) {
		return 0, fmt.Errorf("the result is a %s, not a number", v.Type().TypeName())
	}
	f := toDouble(meter{}, operands{v})
	if err, ok := f.(*types.Err); ok {
		return 0, fmt.Errorf("the result: %w", err)
	}
	return float64(f.(types.Double)), nil
}

// eval evaluates at the cost of s. It never panics: CEL catches what its functions throw.
func (p *Program) eval(s *Subject) (ref.Val, error) {
	if p == nil || s == nil {
		return nil, errNoProgram
	}
	b := s.chargedBudget()
	if b.isSpent() {
		return nil, ErrSpent
	}
	frame, err := interpreter.NewExecutionFrame((*view)(s))
	if err != nil {
		return nil, err
	}
	defer frame.Close()
	frame.SetCostTracker(b.trackerFrom(p.tracker))
	v, _, err := p.program.Eval(frame)

	switch {
	// The budget comes first: a spent one makes CEL fail, or stop without a result.
	case b.isSpent():
		return nil, ErrSpent
	case err != nil && err.Error() == "no such overload":
		return nil, errors.New("no such overload: a value has another type than the expression expects")
	case err != nil:
		return nil, errors.New(visible.Clip(err.Error(), maxMessage))
	case v == nil:
		return nil, errors.New("there is no result")
	}

	return v, nil
}
