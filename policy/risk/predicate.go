package risk

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
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

// predicate is a [Predicate] ready to be asked.
type predicate struct {
	path, op string
	steps    []string
	test     func(*node) answer // of a place that is there; nil for exists
	want     bool               // the value of exists
	weight   int64              // of matches the instructions of its pattern, of in the elements of its value, else 1
}

// ask answers p for the arguments; why says what made the answer unknown. It charges the subject before it looks at
// anything; where the budget does not hold the price, nobody knows.
func (p *predicate) ask(args *node, subject *condition.Subject) (a answer, why string) {
	if !subject.Charge(p.lookup()) {
		return unknown, condition.ErrSpent.Error()
	}
	n, found := args.find(p.steps)
	switch {
	case found == unreachable:
		why = "is in no object or list"
	case found == there && n.kind == 'n':
		why = "is null"
	case p.op == OpExists:
		return known((found == there) == p.want), ""
	case found == missing:
		why = "is missing"
	case !subject.Charge(p.price(n)):
		return unknown, condition.ErrSpent.Error()
	default:
		if a = p.test(n); a != unknown {
			return a, ""
		}
		why = "is " + n.describe()
	}
	return unknown, fmt.Sprintf("%q %s, so %s is unknown", clip(p.path), why, p.op)
}

// describe names the type of a value for a sentence.
func (n *node) describe() string {
	switch n.kind {
	case '"':
		return "a text"
	case '0':
		return "the number " + clip(n.text)
	case 't', 'f':
		return "true or false"
	case '[':
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
	v, err := readScalar(value)
	if err != nil {
		return err
	}
	switch p.op {
	case OpEq:
		p.test = v.equals
	case OpNe:
		p.test = func(n *node) answer { return not(v.equals(n)) }
	case OpGt, OpGte, OpLt, OpLte:
		return p.compileOrder(v)
	case OpContains:
		return p.compileContains(v)
	case OpMatches:
		return p.compileMatches(v)
	case OpExists:
		if p.want = v.kind == 't'; v.kind != 't' && v.kind != 'f' {
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

// A scalar is a text, a number, true or false that arguments are compared with.
type scalar struct {
	node
	number number
}

func readScalar(value jsontext.Value) (*scalar, error) {
	s := &scalar{node: node{kind: value.Kind()}}
	switch s.kind {
	case '"':
		text, err := canonical.Unquote(value)
		s.text = text
		return s, err
	case '0':
		number, ok := readNumber(string(value))
		if !ok {
			return nil, fmt.Errorf("the number has more than %d bytes, or an exponent beyond ±%d",
				MaxNumberBytes, MaxExponent)
		}
		s.number = number
		return s, nil
	case 't', 'f':
		return s, nil
	case 'n':
		return nil, errors.New("null compares with nothing; ask with exists")
	}
	return nil, errors.New("it must be a text, a number, true or false")
}

// equals is unknown for values of another type.
func (s *scalar) equals(n *node) answer {
	switch {
	case s.kind == '"' && n.kind == '"':
		return known(s.text == n.text)
	case s.kind == '0' && n.kind == '0':
		if number, ok := readNumber(n.text); ok {
			return known(s.number.compare(number) == 0)
		}
	case (s.kind == 't' || s.kind == 'f') && (n.kind == 't' || n.kind == 'f'):
		return known(s.kind == n.kind)
	}
	return unknown
}

func (p *predicate) compileOrder(v *scalar) error {
	if v.kind != '0' {
		return fmt.Errorf("%s takes a number", p.op)
	}
	holds := map[string]func(int) bool{
		OpGt:  func(order int) bool { return order > 0 },
		OpGte: func(order int) bool { return order >= 0 },
		OpLt:  func(order int) bool { return order < 0 },
		OpLte: func(order int) bool { return order <= 0 },
	}[p.op]
	p.test = func(n *node) answer {
		if n.kind == '0' {
			if number, ok := readNumber(n.text); ok {
				return known(holds(number.compare(v.number)))
			}
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
	those := make([]*scalar, len(list))
	for i := range list {
		var err error
		if those[i], err = readScalar(list[i]); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	p.test = func(n *node) answer {
		all := unknown
		for _, s := range those {
			all = max(all, s.equals(n)) // one that has the type is enough to know
		}
		return all
	}
	return nil
}

func (p *predicate) compileContains(v *scalar) error {
	if v.kind == '"' && v.text == "" {
		return errors.New("every text contains the empty text")
	}
	folded := fold(v.text)
	p.test = func(n *node) answer {
		switch {
		case n.kind == '[':
			return v.among(n.items)
		case n.kind == '"' && v.kind == '"':
			return known(strings.Contains(fold(n.text), folded))
		}
		return unknown
	}
	return nil
}

// among reports whether an element of a list equals s, in any case. It is unknown if none does but one could not be
// compared.
func (s *scalar) among(items []node) answer {
	all := no
	for i := range items {
		one := s.equals(&items[i])
		if one == no && s.kind == '"' {
			one = known(strings.EqualFold(s.text, items[i].text))
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

func (p *predicate) compileMatches(v *scalar) error {
	switch {
	case v.kind != '"' || v.text == "":
		return errors.New("matches takes a pattern (RE2)")
	case len(v.text) > MaxPatternBytes:
		return tooLong(len(v.text), MaxPatternBytes)
	}
	tree, err := syntax.Parse(v.text, syntax.Perl)
	if err != nil {
		return fmt.Errorf("not a pattern of RE2: %w", err)
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return fmt.Errorf("not a pattern of RE2: %w", err)
	}
	if len(program.Inst) > MaxPatternSteps {
		return fmt.Errorf("the pattern has %d instructions, more than %d; repeat less",
			len(program.Inst), MaxPatternSteps)
	}
	p.weight = int64(len(program.Inst))
	pattern, err := regexp.Compile(v.text)
	p.test = func(n *node) answer {
		if n.kind != '"' {
			return unknown
		}
		return known(pattern.MatchString(n.text))
	}
	return err
}

func tooLong(bytes, most int) error { return fmt.Errorf("it has %d bytes, more than %d", bytes, most) }
