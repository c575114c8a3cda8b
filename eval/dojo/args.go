package dojo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
)

// exprStart begins a part of an argument that only the environment resolves: <expr:…>.
const exprStart = "<expr:"

// Notes count what an import changed and left out.
type Notes struct {
	OlderVersions   int `json:"older_versions"`    // tasks of which a later version is there
	WithoutCalls    int `json:"without_calls"`     // tasks of attackers that want no call
	Constants       int `json:"constants"`         // expressions of numbers alone: they are computed
	TextsKept       int `json:"texts_kept"`        // parts that only the environment resolves, in texts: they stay as they are
	NumbersReplaced int `json:"numbers_replaced"`  // numbers and truth values that only the environment resolves: 1, and true
	ListsReplaced   int `json:"lists_replaced"`    // lists that only the environment resolves: a list of the one text
	EnumMembers     int `json:"enumeration_words"` // members of enumerations: their own name
	NullsLeftOut    int `json:"nulls_left_out"`    // optional arguments that are null
}

// add counts what another import changed.
func (n *Notes) add(m Notes) {
	n.OlderVersions += m.OlderVersions
	n.WithoutCalls += m.WithoutCalls
	n.Constants += m.Constants
	n.TextsKept += m.TextsKept
	n.NumbersReplaced += m.NumbersReplaced
	n.ListsReplaced += m.ListsReplaced
	n.EnumMembers += m.EnumMembers
	n.NullsLeftOut += m.NullsLeftOut
}

// convert makes the calls of a task calls of the suite's server.
func (c *catalog) convert(t *task, notes *Notes) ([]eval.Call, error) {
	calls := []eval.Call{}
	for i, from := range t.GroundTruth {
		described, ok := c.Tools[from.Function]
		if !ok {
			return nil, fmt.Errorf("call %d is of %q, which no tool is called", i+1, from.Function)
		}
		all, err := described.arguments()
		if err != nil {
			return nil, fmt.Errorf("call %d, %s: %w", i+1, from.Function, err)
		}
		args, unresolved, err := convertArgs(from.Args, all, notes)
		if err != nil {
			return nil, fmt.Errorf("call %d, %s: %w", i+1, from.Function, err)
		}
		calls = append(calls, eval.Call{Server: t.Suite, Tool: from.Function, Args: args, Unresolved: unresolved})
	}
	return calls, nil
}

// convertArgs checks arguments against the parameters, and returns those that only the environment resolves. Arguments by position
// are refused.
func convertArgs(from jsontext.Value, all []*argument, notes *Notes) (args jsontext.Value, unresolved []string, err error) {
	if from.Kind() != '{' {
		return nil, nil, errors.New("its arguments are no object with a name for each")
	}
	whole, err := canonical.JSON(from)
	if err != nil {
		return nil, nil, err
	}
	to := make(map[string]jsontext.Value)
	for name, value := range canonical.Members(whole) {
		var param *argument
		for _, a := range all {
			if a.name == name {
				param = a
			}
		}
		if param == nil {
			return nil, nil, fmt.Errorf("the argument %q is none of its parameters", name)
		}
		if value.Kind() == 'n' && !param.required {
			notes.NullsLeftOut++
			continue
		}
		resolved := true
		if to[name], resolved, err = param.resolve(value, notes); err != nil {
			return nil, nil, fmt.Errorf("the argument %q: %w", name, err)
		}
		if !resolved {
			unresolved = append(unresolved, string(jsontext.Pointer("").AppendToken(name)))
		}
	}
	args, err = canonical.Marshal(to)
	return args, unresolved, err
}

// resolve puts something of the parameter's kind where only the environment knows the value; false where it did.
func (a *argument) resolve(value jsontext.Value, notes *Notes) (jsontext.Value, bool, error) {
	if value.Kind() != '"' {
		if strings.Contains(string(value), exprStart) {
			notes.TextsKept++
			return value, false, nil
		}
		return value, true, nil
	}
	text, err := canonical.Unquote(value)
	if err != nil || !strings.Contains(text, exprStart) {
		return value, true, err
	}
	expr, whole := strings.CutPrefix(text, exprStart)
	expr, closed := strings.CutSuffix(expr, ">")
	whole = whole && closed
	if member, ok := strings.CutPrefix(expr, a.enum+"."); a.enum != "" && ok && whole {
		notes.EnumMembers++
		made, err := canonical.Marshal(member)
		return made, true, err
	}
	if a.form == formText {
		notes.TextsKept++
		return value, false, nil
	}
	if !whole {
		return nil, false, fmt.Errorf("%q is in the place of a %s", text, a.form)
	}
	return a.placeholder(text, expr, notes)
}

// placeholder is a value of the parameter's kind for an expression: what it comes to if it is one of numbers alone.
func (a *argument) placeholder(text, expr string, notes *Notes) (jsontext.Value, bool, error) {
	switch a.form {
	case formWhole, formNumber:
		if digits, ok := constant(expr); ok && (a.form == formNumber || !strings.Contains(digits, ".")) {
			notes.Constants++
			return jsontext.Value(digits), true, nil
		}
		notes.NumbersReplaced++
		return jsontext.Value("1"), false, nil
	case formTruth:
		notes.NumbersReplaced++
		return jsontext.Value("true"), false, nil
	case formItems:
		return nil, false, fmt.Errorf("%q is in the place of a list of objects, whose members are unknown", text)
	}
	notes.ListsReplaced++
	list, err := canonical.Marshal([]string{text})
	return list, false, err
}
