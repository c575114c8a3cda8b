package condition

import (
	"math"
	"strings"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// A finiteCall is a call whose result must be a finite number, if it is a double. Nothing is greater than NaN and
// nothing is less, so double(args.amount) > 1000.0 would quietly be false for the text "NaN", and a denial would not
// deny. Here it is an error.
type finiteCall struct{ interpreter.InterpretableV2 }

// Exec implements [interpreter.InterpretableV2].
func (c finiteCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return c.checked(c.InterpretableV2.Exec(frame))
}

// Eval implements [interpreter.Interpretable].
func (c finiteCall) Eval(activation interpreter.Activation) ref.Val {
	return c.checked(c.InterpretableV2.Eval(activation))
}

func (c finiteCall) checked(v ref.Val) ref.Val {
	if d, ok := v.(types.Double); ok && (math.IsNaN(float64(d)) || math.IsInf(float64(d), 0)) {
		return types.NewErrWithNodeID(c.ID(), "not a finite number: %v", float64(d))
	}
	return v
}

// keepFinite wraps the calls that can make a number that is not finite of finite ones, or of text, and replaces those that
// would round; see [exactly].
func keepFinite(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	if exact := exactly(call); exact != nil {
		return exact, nil
	}
	switch name := call.Function(); name {
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
		return finiteCall{i}, nil
	default:
		if strings.HasPrefix(name, "math.") {
			return finiteCall{i}, nil
		}
	}
	return i, nil
}
