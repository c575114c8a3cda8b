package dojo

import (
	"errors"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
)

// exprStart begins a part of an argument that only the environment resolves: <expr:…>.
const exprStart = "<expr:"

// calls makes the calls of a task calls of the suite's server.
func (c *catalog) calls(t *task) ([]eval.Call, error) {
	calls := []eval.Call{}
	for i, from := range t.GroundTruth {
		described, ok := c.Tools[from.Function]
		if !ok {
			return nil, fmt.Errorf("call %d is of %q, which no tool is called", i+1, from.Function)
		}
		args, unresolved, err := described.convertArgs(from.Args)
		if err != nil {
			return nil, fmt.Errorf("call %d, %s: %w", i+1, from.Function, err)
		}
		calls = append(calls, eval.Call{Server: t.Suite, Tool: from.Function, Args: args, Unresolved: unresolved})
	}
	return calls, nil
}

// convertArgs checks arguments against the parameters, and returns those that only the environment resolves. Arguments by position
// are refused.
func (t *tool) convertArgs(from jsontext.Value) (args jsontext.Value, unresolved []string, err error) {
	if from.Kind() != '{' {
		return nil, nil, errors.New("its arguments are no object with a name for each")
	}
	whole, err := canonical.JSON(from)
	if err != nil {
		return nil, nil, err
	}
	to := make(map[string]jsontext.Value)
	for name, value := range canonical.Members(whole) {
		i := slices.IndexFunc(t.Params, func(p param) bool { return p.Name == name && !p.isEnvironment() })
		if i < 0 {
			return nil, nil, fmt.Errorf("the argument %q is none of its parameters", name)
		}
		if value.Kind() == 'n' && !t.Params[i].Required {
			continue // an optional argument that is null is left out
		}
		resolved := true
		if to[name], resolved, err = t.Params[i].resolve(value); err != nil {
			return nil, nil, fmt.Errorf("the argument %q: %w", name, err)
		}
		if !resolved {
			unresolved = append(unresolved, string(jsontext.Pointer("").AppendToken(name)))
		}
	}
	args, err = canonical.Marshal(to)
	return args, unresolved, err
}

// resolve replaces a value that only the environment knows by something of the parameter's kind; then it returns false.
func (p *param) resolve(value jsontext.Value) (jsontext.Value, bool, error) {
	if !strings.Contains(string(value), exprStart) {
		return value, true, nil
	}
	if value.Kind() != '"' {
		return value, false, nil
	}
	text, err := canonical.Unquote(value)
	if err != nil {
		return nil, false, err
	}
	expr, whole := strings.CutPrefix(text, exprStart)
	expr, closed := strings.CutSuffix(expr, ">")
	whole = whole && closed
	class, _ := strings.CutSuffix(p.Type, " | None")
	kind, _ := p.kind()
	switch member, isMember := strings.CutPrefix(expr, class+"."); {
	case kind == "member" && isMember && whole:
		made, err := canonical.Marshal(member)
		return made, true, err
	case kind == "member" || kind == "string":
		return value, false, nil
	case !whole || kind == "objects":
		return nil, false, fmt.Errorf("%q is in the place of a %s", text, kind)
	case kind == "texts":
		list, err := canonical.Marshal([]string{text})
		return list, false, err
	case kind == "boolean":
		return jsontext.Value("true"), false, nil
	}
	if digits, ok := compute(expr); ok && (kind == "number" || !strings.Contains(digits, ".")) {
		return jsontext.Value(digits), true, nil
	}
	return jsontext.Value("1"), false, nil
}

// compute computes an expression of decimal numbers, +, -, * and parentheses, which Python and Go parse alike.
func compute(expr string) (digits string, ok bool) {
	if strings.Trim(expr, "0123456789.+-*() ") != "" || strings.Contains(expr, "**") {
		return "", false
	}
	v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expr)
	if err != nil || v.Value == nil {
		return "", false
	}
	if i := constant.ToInt(v.Value); i.Kind() == constant.Int {
		return i.ExactString(), true
	}
	f, _ := constant.Float64Val(v.Value)
	return fmt.Sprint(f), true
}
