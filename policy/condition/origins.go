package condition

import (
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"pgfsm/policy/origin"
)

// The functions about origins, and the names beside them.
const (
	foundFunction  = "found"
	originFunction = "origin"
	nameUntrusted  = sessionPrefix + "untrusted"
	namePrivate    = sessionPrefix + "private"

	originsName = "@origins" // resolves to the *Origins of the input; no expression can write it
)

// readsOrigins are the names that need [Input.Origins].
var readsOrigins = []string{foundFunction, originFunction, nameUntrusted, namePrivate}

// originFunctions declares them; see [originCall].
func originFunctions() []cel.EnvOption {
	path := []*cel.Type{cel.StringType}
	return []cel.EnvOption{
		cel.Function(foundFunction, cel.Overload("found_targets", nil, cel.BoolType,
			// CEL plans no call without operands that has no implementation; originCall replaces it.
			cel.FunctionBinding(func(...ref.Val) ref.Val { return types.NewErr("no session is known") })),
			cel.Overload("found_string", path, cel.BoolType)),
		cel.Function(originFunction, cel.Overload("origin_string", path, cel.StringType)),
	}
}

// ReadsCall reports whether a function gives facts about the call, not about its operands: earlier
// calls, or origins.
func ReadsCall(function string) bool {
	return function == foundFunction || function == originFunction || strings.HasPrefix(function, historyPrefix)
}

// pathRefused returns the problem of the path in a call of found or origin.
func pathRefused(call ast.CallExpr) (id int64, problem, remedy string) {
	if len(call.Args()) == 0 {
		return 0, "", ""
	}
	arg := call.Args()[0]
	path, ok := LiteralText(arg)
	if !ok {
		return arg.ID(), "the argument of " + call.FunctionName() + " must be written out", `as in found("to")`
	}
	problem, remedy = origin.CheckPath(path)
	return arg.ID(), problem, remedy
}

// An originCall is a call of found or origin.
type originCall struct{ interpreter.InterpretableCall }

// Eval implements [interpreter.InterpretableV2].
func (c originCall) Eval(activation interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(activation, c.Exec)
}

// Exec implements [interpreter.InterpretableV2]. Without a [Subject], the value is unknown.
func (c originCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v, _ := frame.ResolveName(originsName)
	origins, ok := v.(*Origins)
	if !ok {
		return types.NewUnknown(c.ID(), nil)
	}

	var paths []string
	for _, arg := range c.Args() {
		constant, _ := arg.(interpreter.InterpretableConst)
		path, ok := constant.Value().(types.String)
		if !ok {
			return types.NewErr("the argument of %s is no text", c.Function())
		}
		paths = append(paths, string(path))
	}

	if origins == nil { // no session is known: nothing is found
		origins = &Origins{}
	}
	meter{frame.CostTracker()}.spend(uint64(1 + len(origins.Leaves)))
	weakest := origin.Weakest(origins.Leaves, paths...)
	if c.Function() == foundFunction {
		return types.Bool(weakest != origin.None)
	}
	return types.String(weakest)
}

// ReadsOrigins reports whether the expression reads where arguments come from.
func (p *Program) ReadsOrigins() bool {
	return p != nil && slices.ContainsFunc(p.uses, func(name string) bool { return slices.Contains(readsOrigins, name) })
}
