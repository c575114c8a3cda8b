package condition

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/visible"
)

// A Predicate tests one place in the arguments. It fails where its answer is unknown: if the
// argument is null, missing or of another type.
type Predicate struct {
	Path  string         `json:"path"` // a JSON pointer if it begins with "/", else the name of an argument
	Op    string         `json:"op"`
	Value jsontext.Value `json:"value"`
}

// The ops of a [Predicate].
const (
	OpEq       = "eq"
	OpNe       = "ne"
	OpGt       = "gt"
	OpGte      = "gte"
	OpLt       = "lt"
	OpLte      = "lte"
	OpIn       = "in"
	OpContains = "contains"
	OpMatches  = "matches"
	OpExists   = "exists"
)

// Ops returns every op, in the order of the manual.
func Ops() []string {
	return []string{OpEq, OpNe, OpGt, OpGte, OpLt, OpLte, OpIn, OpContains, OpMatches, OpExists}
}

// Limits of a [Predicate]. Sizes are in bytes.
const (
	MaxIn         = 1024 // elements of the value of in
	MaxValueBytes = 64 << 10
)

// foldedPerUnit is the number of bytes of text that one unit pays for in a comparison that ignores
// case.
const foldedPerUnit = 2

// Predicates compiles predicates into the condition that all of them hold. Without a predicate,
// there is no program. It reports a fault under args[INDEX].path, op or value.
func (e *Env) Predicates(predicates []Predicate, fault func(key string, err error)) *Program {
	var tests []test
	for i := range predicates {
		t, key, err := predicates[i].compile()
		if err != nil {
			fault(fmt.Sprintf("args[%d].%s", i, key), err)
			continue
		}
		tests = append(tests, t)
	}

	if len(tests) == 0 || len(tests) < len(predicates) {
		return nil
	}

	// The predicates become one expression, whose calls run the tests: so CEL counts their cost and
	// combines their failures.
	const function = "@predicate"
	make, id := ast.NewExprFactory(), int64(0)
	next := func() int64 { id++; return id }
	var whole ast.Expr

	for i := range tests {
		one := make.NewCall(next(), function, make.NewIdent(next(), nameArgs), make.NewLiteral(next(), types.Int(i)))
		if whole != nil {
			one = make.NewCall(next(), operators.LogicalAnd, whole, one)
		}
		whole = one
	}

	program, err := e.planProgram(ast.NewAST(whole, ast.NewSourceInfo(nil)), cel.CustomDecoratorV2(
		func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
			c, ok := i.(interpreter.InterpretableCall)
			if !ok || c.Function() != function {
				return i, nil
			}
			n := c.Args()[1].(interpreter.InterpretableConst).Value().(types.Int)
			return &call{c.ID(), c.Args()[:1], tests[n].eval}, nil
		}))
	if err != nil {
		fault("args", err)
		return nil
	}

	return &Program{program: program, tracker: e.tracker}
}

// A test is a compiled predicate.
type test struct {
	path, op string
	steps    []string
	want     bool                                 // the value of exists
	holds    func(m meter, place ref.Val) ref.Val // nil: the place has another type
}

// eval implements [function]. The operand is the arguments.
func (t *test) eval(m meter, args operands) ref.Val {
	m.spend(uint64(2 * (1 + len(t.steps))))
	place, found := followPath(args[0], t.steps)
	problem := ""
	switch {
	case found == unreachable:
		problem = "is in no object or list"
	case place == types.NullValue:
		problem = "is null"
	case t.op == OpExists:
		return types.Bool((found == present) == t.want)
	case found == missing:
		problem = "is missing"
	default:
		if v, ok := t.holds(m, place).(types.Bool); ok {
			return v
		}
		problem = "is " + describeType(place)
	}
	return types.NewErr("%q %s, so %s is unknown", visible.Cut(t.path, 80, "…"), problem, t.op)
}

// describeType names the type of a value for a sentence.
func describeType(v ref.Val) string {
	switch v := v.(type) {
	case types.String:
		return "a text"
	case types.Int, types.Double:
		return "the number " + clipNumber(fmt.Sprint(v.Value()))
	case *types.Err:
		return "unusable: " + v.Error()
	case types.Bool:
		return "true or false"
	case traits.Lister:
		return "a list"
	}
	return "an object"
}

// presence says whether a place exists.
type presence uint8

const (
	unreachable presence = iota // the parent is a scalar or null
	missing
	present
)

// followPath follows a path from the arguments.
func followPath(v ref.Val, path []string) (ref.Val, presence) {
	for _, step := range path {
		switch parent := v.(type) {
		case traits.Mapper:
			member, ok := parent.Find(types.String(step))
			if !ok {
				return nil, missing
			}
			v = member
		case traits.Lister:
			// RFC 6901, section 4.
			if strings.Trim(step, "0123456789") != "" || step == "" || len(step) > 1 && step[0] == '0' {
				return nil, unreachable
			}
			i, err := strconv.Atoi(step)
			if err != nil || i >= int(parent.Size().(types.Int)) {
				return nil, missing
			}
			v = parent.Get(types.Int(i))
		default:
			return nil, unreachable
		}
	}
	return v, present
}

// compile checks a predicate. The key is the one at fault.
func (p *Predicate) compile() (t test, key string, err error) {
	t = test{path: p.Path, op: p.Op, steps: []string{p.Path}}
	pointer := jsontext.Pointer(p.Path)
	switch {
	case p.Path == "":
		return t, "path", errors.New("it is empty; name an argument, or a place in the arguments as a JSON pointer")
	case p.Path[0] == '/' && !pointer.IsValid():
		return t, "path", errors.New("it is not a JSON pointer: behind ~ stands 0 or 1")
	case p.Path[0] == '/':
		t.steps = slices.Collect(pointer.Tokens())
	}
	if !slices.Contains(Ops(), p.Op) {
		return t, "op", fmt.Errorf("there is no op %q; the ops are %s", clipNumber(p.Op), strings.Join(Ops(), ", "))
	}
	if len(p.Value) > MaxValueBytes {
		return t, "value", fmt.Errorf("it has %d bytes, more than %d", len(p.Value), MaxValueBytes)
	}
	if err := canonical.Check(p.Value, 1); err != nil {
		return t, "value", err
	}
	return t, "value", t.compileValue(p.Value)
}

func (t *test) compileValue(value jsontext.Value) (err error) {
	if t.op == OpIn {
		t.holds, err = inTest(value)
		return err
	}
	scalar, err := readScalar(value)
	if err != nil {
		return err
	}

	// Each op but exists judges the value at the place; nil stands for another type.
	switch t.op {
	case OpEq:
		t.holds = func(m meter, place ref.Val) ref.Val { return sameType(m, place, scalar) }
	case OpNe:
		t.holds = func(m meter, place ref.Val) ref.Val {
			if isEqual, ok := sameType(m, place, scalar).(types.Bool); ok {
				return !isEqual
			}
			return nil
		}
	case OpContains:
		t.holds, err = containsTest(scalar)
	case OpMatches:
		t.holds, err = matchesTest(scalar)
	case OpExists:
		want, ok := scalar.(types.Bool)
		if t.want = bool(want); !ok {
			return errors.New("exists takes true or false")
		}
	default:
		if !isNumber(scalar) {
			return fmt.Errorf("%s takes a number", t.op)
		}
		function := map[string]string{OpGt: operators.Greater, OpGte: operators.GreaterEquals, OpLt: operators.Less,
			OpLte: operators.LessEquals}[t.op]
		t.holds = func(m meter, place ref.Val) ref.Val { return exact[function][2](m, operands{place, scalar}) }
	}

	return err
}

// readScalar reads a text, a number, true or false that arguments are compared with.
func readScalar(value jsontext.Value) (ref.Val, error) {
	switch value.Kind() {
	case '"':
		text, err := canonical.Unquote(value)
		return types.String(text), err
	case '0':
		number := Number(string(value))
		if err, ok := number.(*types.Err); ok {
			return nil, err
		}
		return number, nil
	case 't', 'f':
		return types.Bool(value.Kind() == 't'), nil
	case 'n':
		return nil, errors.New("null compares with nothing; ask with exists")
	}
	return nil, errors.New("it must be a text, a number, true or false")
}

// sameType compares two values of one type; numbers have one. Other values are not compared: the
// result is nil.
func sameType(m meter, a, b ref.Val) ref.Val {
	if isNumber(a) && isNumber(b) || a.Type() == b.Type() {
		return equalValues(m, a, b)
	}
	m.spend(1)
	return nil
}

// inTest compares with the elements that have the type of the place.
func inTest(value jsontext.Value) (func(m meter, place ref.Val) ref.Val, error) {
	var list []jsontext.Value
	if value.Kind() != '[' {
		return nil, errors.New("in takes a list")
	}
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, canonical.Explain(err)
	}
	if len(list) == 0 || len(list) > MaxIn {
		return nil, fmt.Errorf("the list has %d elements; it must have 1 to %d", len(list), MaxIn)
	}

	scalars := make([]ref.Val, len(list))
	for i := range list {
		var err error
		if scalars[i], err = readScalar(list[i]); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}

	return func(m meter, place ref.Val) (found ref.Val) {
		for _, scalar := range scalars {
			if isEqual, ok := sameType(m, place, scalar).(types.Bool); ok {
				if found = isEqual; isEqual {
					break
				}
			}
		}
		return found
	}, nil
}

// containsTest looks for a text in a text, or for a scalar in a list; letter case does not matter.
func containsTest(scalar ref.Val) (func(m meter, place ref.Val) ref.Val, error) {
	text, isText := scalar.(types.String)
	if isText && text == "" {
		return nil, errors.New("every text contains the empty text")
	}

	folded := types.String(FoldCase(string(text)))
	fold := func(m meter, v ref.Val) ref.Val {
		if s, ok := v.(types.String); ok && isText {
			m.spend(1 + uint64(len(s))/foldedPerUnit)
			return types.String(FoldCase(string(s)))
		}
		return v
	}

	return func(m meter, place ref.Val) ref.Val {
		switch place := fold(m, place).(type) {
		case types.String:
			if isText {
				return types.Bool(strings.Contains(string(place), string(folded)))
			}
		case traits.Lister:
			target := scalar
			if isText {
				target = folded
			}
			found := ref.Val(types.False) // nil if an element could not be compared
			for i := range place.Size().(types.Int) {
				isEqual, ok := sameType(m, fold(m, place.Get(i)), target).(types.Bool)
				switch {
				case bool(isEqual):
					return types.True
				case !ok:
					found = nil
				}
			}
			return found
		}
		return nil
	}, nil
}

// FoldCase returns s with each character replaced by the least of those that are the same but for
// case, by Unicode's simple folding: two texts fold to the same if [strings.EqualFold] says that
// they are equal.
func FoldCase(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 'A' {
			return r
		}
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, s)
}

func matchesTest(scalar ref.Val) (func(m meter, place ref.Val) ref.Val, error) {
	text, ok := scalar.(types.String)
	if !ok || text == "" {
		return nil, errors.New("matches takes a pattern (RE2)")
	}
	if problem, remedy := checkPattern(string(text)); problem != "" {
		return nil, fmt.Errorf("%s; %s", problem, remedy)
	}
	pattern := regexp.MustCompile(string(text))
	size, err := types.RegexProgramSize(string(text))
	return func(m meter, place ref.Val) ref.Val { return matchText(m, pattern, size, place) }, err
}
