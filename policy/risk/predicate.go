package risk

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/condition"
)

// An answer to a predicate. The zero answer is the one that counts as more risk.
type answer uint8

const (
	unknown answer = iota
	no
	yes
)

func known(b bool) answer {
	if b {
		return yes
	}
	return no
}

// predicate is a compiled [Predicate].
type predicate struct {
	path, op string
	steps    []string
	test     func(ref.Val) answer // of a place that is there; nil for exists
	want     bool                 // the value of exists
	weight   int64                // of matches the instructions of its pattern, of in the elements of its value, else 1
}

// ask evaluates p for the arguments; why says why the answer is unknown. It charges the subject first; if the budget is spent, the answer is unknown.
func (p *predicate) ask(subject *condition.Subject) (a answer, why string) {
	if !subject.Charge(p.lookup()) {
		return unknown, condition.ErrSpent.Error()
	}
	v, found := find(subject.Args(), p.steps)
	switch {
	case found == unreachable:
		why = "is in no object or list"
	case found == there && v == types.NullValue:
		why = "is null"
	case p.op == OpExists:
		return known((found == there) == p.want), ""
	case found == missing:
		why = "is missing"
	case !subject.Charge(p.price(v)):
		return unknown, condition.ErrSpent.Error()
	default:
		if a = p.test(v); a != unknown {
			return a, ""
		}
		why = "is " + describe(v)
	}
	return unknown, fmt.Sprintf("%q %s, so %s is unknown", clip(p.path), why, p.op)
}

// describe names the type of a value for a sentence.
func describe(v ref.Val) string {
	switch v := v.(type) {
	case types.String:
		return "a text"
	case types.Int, types.Double:
		return "the number " + clip(fmt.Sprint(v.Value()))
	case *types.Err:
		return "unusable: " + clip(v.Error())
	case types.Bool:
		return "true or false"
	case traits.Lister:
		return "a list"
	}
	return "an object"
}

// compilePredicate reads p. The key is the one at fault.
func compilePredicate(from *Predicate) (p predicate, key string, err error) {
	p = predicate{path: from.Path, op: from.Op, weight: 1}
	if p.steps, err = splitPath(from.Path); err != nil {
		return p, "path", err
	}
	if !slices.Contains(Ops(), p.op) {
		return p, "op", fmt.Errorf("there is no op %q; the ops are %s", clip(p.op), strings.Join(Ops(), ", "))
	}
	if len(from.Value) > MaxValueBytes {
		return p, "value", tooLong(len(from.Value), MaxValueBytes)
	}
	if err := canonical.Check(from.Value, 1); err != nil {
		return p, "value", err
	}
	return p, "value", p.compileValue(from.Value)
}

func (p *predicate) compileValue(value jsontext.Value) error {
	if p.op == OpIn {
		return p.compileIn(value)
	}
	scalar, err := readScalar(value)
	if err != nil {
		return err
	}
	switch p.op {
	case OpEq:
		p.test = func(v ref.Val) answer { return equals(scalar, v) }
	case OpNe:
		p.test = func(v ref.Val) answer { return not(equals(scalar, v)) }
	case OpGt, OpGte, OpLt, OpLte:
		return p.compileOrder(scalar)
	case OpContains:
		return p.compileContains(scalar)
	case OpMatches:
		return p.compileMatches(scalar)
	case OpExists:
		want, ok := scalar.(types.Bool)
		if p.want = bool(want); !ok {
			return errors.New("exists takes true or false")
		}
	}
	return nil
}

func not(a answer) answer {
	switch a {
	case yes:
		return no
	case no:
		return yes
	}
	return unknown
}

// readScalar reads a text, a number, true or false that arguments are compared with.
func readScalar(value jsontext.Value) (ref.Val, error) {
	switch value.Kind() {
	case '"':
		text, err := canonical.Unquote(value)
		return types.String(text), err
	case '0':
		number := condition.Number(string(value))
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

// equals is unknown for values of another type.
func equals(scalar, v ref.Val) answer {
	if order, ok := condition.CompareNumbers(scalar, v); ok {
		return known(order == 0)
	}
	switch s := scalar.(type) {
	case types.String:
		if text, ok := v.(types.String); ok {
			return known(s == text)
		}
	case types.Bool:
		if b, ok := v.(types.Bool); ok {
			return known(s == b)
		}
	}
	return unknown
}

func (p *predicate) compileOrder(scalar ref.Val) error {
	if _, ok := condition.CompareNumbers(scalar, scalar); !ok {
		return fmt.Errorf("%s takes a number", p.op)
	}
	holds := map[string]func(int) bool{
		OpGt:  func(order int) bool { return order > 0 },
		OpGte: func(order int) bool { return order >= 0 },
		OpLt:  func(order int) bool { return order < 0 },
		OpLte: func(order int) bool { return order <= 0 },
	}[p.op]
	p.test = func(v ref.Val) answer {
		if order, ok := condition.CompareNumbers(v, scalar); ok {
			return known(holds(order))
		}
		return unknown
	}
	return nil
}

func (p *predicate) compileIn(value jsontext.Value) error {
	var list []jsontext.Value
	if value.Kind() != '[' {
		return errors.New("in takes a list")
	}
	if err := json.Unmarshal(value, &list); err != nil {
		return canonical.Explain(err)
	}
	if len(list) == 0 || len(list) > MaxIn {
		return fmt.Errorf("the list has %d elements; it must have 1 to %d", len(list), MaxIn)
	}
	p.weight = int64(len(list))
	those := make([]ref.Val, len(list))
	for i := range list {
		var err error
		if those[i], err = readScalar(list[i]); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	p.test = func(v ref.Val) answer {
		all := unknown
		for _, s := range those {
			all = max(all, equals(s, v)) // one that has the type is enough to know
		}
		return all
	}
	return nil
}

func (p *predicate) compileContains(scalar ref.Val) error {
	text, isText := scalar.(types.String)
	if isText && text == "" {
		return errors.New("every text contains the empty text")
	}
	folded := fold(string(text))
	p.test = func(v ref.Val) answer {
		switch v := v.(type) {
		case traits.Lister:
			return among(scalar, v)
		case types.String:
			if isText {
				return known(strings.Contains(fold(string(v)), folded))
			}
		}
		return unknown
	}
	return nil
}

// among reports whether an element of a list equals scalar, in any case. It is unknown if none does but one could not be
// compared.
func among(scalar ref.Val, l traits.Lister) answer {
	text, isText := scalar.(types.String)
	all := no
	for i := range l.Size().(types.Int) {
		v := l.Get(i)
		one := equals(scalar, v)
		if other, ok := v.(types.String); ok && isText {
			one = known(strings.EqualFold(string(text), string(other)))
		}
		switch one {
		case yes:
			return yes
		case unknown:
			all = unknown
		}
	}
	return all
}

func (p *predicate) compileMatches(scalar ref.Val) error {
	text, ok := scalar.(types.String)
	switch {
	case !ok || text == "":
		return errors.New("matches takes a pattern (RE2)")
	case len(text) > MaxPatternBytes:
		return tooLong(len(text), MaxPatternBytes)
	}
	pattern, err := regexp.Compile(string(text))
	if err != nil {
		return fmt.Errorf("not a pattern of RE2: %w", err)
	}
	steps, err := types.RegexProgramSize(string(text))
	if err != nil || steps > MaxPatternSteps {
		return fmt.Errorf("the pattern has %d instructions, more than %d; repeat less", steps, MaxPatternSteps)
	}
	p.weight = int64(steps)
	p.test = func(v ref.Val) answer {
		text, ok := v.(types.String)
		if !ok {
			return unknown
		}
		return known(pattern.MatchString(string(text)))
	}
	return nil
}

func tooLong(bytes, most int) error { return fmt.Errorf("it has %d bytes, more than %d", bytes, most) }
