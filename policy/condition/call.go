package condition

import (
	"regexp"
	"strings"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// operands holds the operands of a call: first the target, if the call is a method, then the
// arguments, then nil.
type operands [4]ref.Val

// A function carries out a call on its operands, none of which is an error or unknown.
type function func(m meter, args operands) ref.Val

// exact are the functions that take the place of CEL's, by number of operands.
var exact = map[string]map[int]function{
	operators.Less:          {2: orderTest(func(n types.Int) bool { return n < 0 })},
	operators.LessEquals:    {2: orderTest(func(n types.Int) bool { return n <= 0 })},
	operators.Greater:       {2: orderTest(func(n types.Int) bool { return n > 0 })},
	operators.GreaterEquals: {2: orderTest(func(n types.Int) bool { return n >= 0 })},
	operators.Equals:        {2: equalOperands},
	operators.NotEquals:     {2: unequalOperands},
	operators.In:            {2: isMember},
	mathMax:                 {1: extremeOf(1), 2: extremeOf(1)},
	mathMin:                 {1: extremeOf(-1), 2: extremeOf(-1)},
	"double":                {1: toDouble},
}

// What CEL calls math.greatest and math.least once it has read them.
const (
	mathMax = "math.@max"
	mathMin = "math.@min"
)

// replaceCall replaces the calls that CEL would make inexactly, or would charge too late.
func replaceCall(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	c, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	name, args := c.Function(), c.Args()
	if f := exact[name][len(args)]; f != nil {
		return &call{c.ID(), args, f}, nil
	}
	switch name {
	case "matches":
		return newMatchCall(c)
	case operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
		return finiteCall{c}, nil
	case foundFunction, originFunction:
		return originCall{c}, nil
	}
	switch {
	case strings.HasPrefix(name, "math."):
		return finiteCall{c}, nil
	case strings.HasPrefix(name, historyPrefix):
		return replaceHistoryCall(c)
	}
	return i, nil
}

// A call evaluates its operands and then makes its function of them.
type call struct {
	id   int64
	args []interpreter.InterpretableV2
	f    function
}

// ID implements [interpreter.InterpretableV2].
func (c *call) ID() int64 { return c.id }

// Eval implements [interpreter.InterpretableV2].
func (c *call) Eval(activation interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(activation, c.Exec)
}

// Exec implements [interpreter.InterpretableV2].
func (c *call) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	var args operands
	// An error wins over an unknown, as in CEL.
	var unknown *types.Unknown
	for i, arg := range c.args {
		v := arg.Exec(frame)
		if types.IsError(v) {
			return v
		}
		if u, ok := v.(*types.Unknown); ok {
			unknown = types.MergeUnknowns(unknown, u)
		}
		args[i] = v
	}
	if unknown != nil {
		return unknown
	}
	return c.f(meter{frame.CostTracker()}, args)
}

// newMatchCall compiles the pattern of a call of matches, which is written out. CEL charges by the
// length of the pattern; what a match takes depends on the size of its program.
func newMatchCall(c interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	pattern, ok := c.Args()[1].(interpreter.InterpretableConst)
	if !ok {
		return c, nil // checkSubset rejects the expression
	}
	source, _ := pattern.Value().(types.String)
	program, err := regexp.Compile(string(source))
	if err != nil {
		return nil, err
	}
	size, err := types.RegexProgramSize(string(source))
	if err != nil {
		return nil, err
	}
	return &call{c.ID(), c.Args()[:1],
		func(m meter, args operands) ref.Val { return matchText(m, program, size, args[0]) }}, nil
}

// matchText searches a text for a pattern that has a program of some size.
func matchText(m meter, pattern *regexp.Regexp, size int, v ref.Val) ref.Val {
	text, ok := v.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	m.spend(1 + uint64(len(text))*uint64(size)/instPerUnit)
	return types.Bool(pattern.MatchString(string(text)))
}

// A finiteCall is a call whose result must be a finite number, if it is a double.
type finiteCall struct{ interpreter.InterpretableCall }

// Exec implements [interpreter.InterpretableV2].
func (c finiteCall) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := c.InterpretableCall.Exec(frame)
	if err := checkFinite(v); err != nil {
		return err
	}
	return v
}

// Eval implements [interpreter.InterpretableV2].
func (c finiteCall) Eval(activation interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(activation, c.Exec)
}
