package lint

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/condition"
	"pgfsm/policy/risk"
)

// predicate holds one predicate of a risk rule against what the arguments can be.
func (l *linter) predicate(p place, i int, from *risk.Predicate, args *condition.Shape) {
	key := fmt.Sprintf("args[%d]", i)
	steps := []string{from.Path}
	if strings.HasPrefix(from.Path, "/") {
		steps = strings.Split(from.Path[1:], "/")
		for k, step := range steps {
			steps[k] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		}
	}
	at := args
	for _, step := range steps {
		if at == nil {
			return
		}
		next, ok := into(at, step)
		if !ok {
			l.add(p, key+".path", ArgumentUnknown, "", "no tool that this rule is about has an argument %q", clip(from.Path))
			return
		}
		at = next
	}
	if at == nil {
		return
	}
	if takes := taken(from); at.Kinds&takes == 0 {
		l.add(p, key+".value", ArgumentType, "",
			"%q is %s, and %s with this value is about %s, so the answer is never known and the rule counts as matched",
			clip(from.Path), at.Kinds, from.Op, takes)
	}
}

// into returns what stands under a name or, in a list, at an index.
func into(s *condition.Shape, step string) (*condition.Shape, bool) {
	member, ok := s.Member(step)
	if s.Kinds&condition.KindList == 0 {
		return member, ok
	}
	if _, err := strconv.ParseUint(step, 10, 31); err != nil {
		return member, ok
	}
	if ok {
		return nil, true // it depends on which of both it is
	}
	return s.Items, true
}

// taken returns the kinds of arguments that a predicate has an answer for.
func taken(p *risk.Predicate) condition.Kinds {
	value := kindOf(p.Value)
	switch p.Op {
	case risk.OpEq, risk.OpNe:
		return value
	case risk.OpGt, risk.OpGte, risk.OpLt, risk.OpLte:
		return condition.KindNumber
	case risk.OpIn:
		var list []jsontext.Value
		var kinds condition.Kinds
		if json.Unmarshal(p.Value, &list) == nil {
			for _, v := range list {
				kinds |= kindOf(v)
			}
		}
		return kinds
	case risk.OpContains:
		if value == condition.KindText {
			return condition.KindText | condition.KindList
		}
		return condition.KindList
	case risk.OpMatches:
		return condition.KindText
	}
	return condition.KindsJSON // exists
}

func kindOf(v jsontext.Value) condition.Kinds {
	switch v.Kind() {
	case 'n':
		return condition.KindNull
	case 't', 'f':
		return condition.KindBool
	case '0':
		return condition.KindNumber
	case '"':
		return condition.KindText
	case '[':
		return condition.KindList
	case '{':
		return condition.KindObject
	}
	return condition.KindsJSON
}
