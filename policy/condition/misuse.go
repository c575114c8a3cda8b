package condition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"pgfsm/internal/visible"
)

// Kinds are the kinds that a value can be of.
type Kinds uint16

// The kinds of JSON values, and those that only CEL has.
const (
	KindNull Kinds = 1 << iota
	KindBool
	KindNumber
	KindText
	KindList
	KindObject
	kindOther // bytes, times, types

	KindsJSON = KindNull | KindBool | KindNumber | KindText | KindList | KindObject
	kindsAll  = KindsJSON | kindOther
)

var kindWords = []string{"null", "a bool", "a number", "a text", "a list", "an object", "a time or bytes"}

// String lists the kinds.
func (k Kinds) String() string {
	if k&KindsJSON == KindsJSON {
		return "anything"
	}
	var words []string
	for i, word := range kindWords {
		if k&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}

// A Shape describes the possible JSON values of an argument. A nil Shape is any value.
type Shape struct {
	Kinds   Kinds
	Members map[string]*Shape // if it is an object: the members that it can have
	Open    bool              // it can have others too
	Items   *Shape            // if it is a list: what each item is
}

// kinds of a shape that may be nil.
func (s *Shape) kinds() Kinds {
	if s == nil {
		return KindsJSON
	}
	return s.Kinds
}

// Member returns the shape of a member, and whether there can be one of that name.
func (s *Shape) Member(name string) (*Shape, bool) {
	switch {
	case s == nil:
		return nil, true
	case s.Kinds&KindObject == 0:
		return nil, false
	}
	m, ok := s.Members[name]
	return m, ok || s.Open
}

// Names returns the members that a shape names, in order.
func (s *Shape) Names() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.Members))
}

// A Misuse is a use of an argument that cannot be what its author meant.
type Misuse struct {
	Error
	Unknown bool // no such argument; otherwise it has another type
}

// Misuses checks the expression against the shape of the arguments. For uses that are wrong in every call, it returns each use of an argument that cannot
// exist, each operation that fails, and each comparison of values that are never equal. All numbers are one kind.
func (r *Reading) Misuses(args *Shape) []Misuse {
	t := typer{ast: r.ast, env: r, args: args}
	t.expr(r.ast.Expr())
	return t.found
}

// A typer walks one expression.
type typer struct {
	ast   *ast.AST
	env   *Reading
	args  *Shape
	scope []typedLocal // the innermost last
	found []Misuse
}

type typedLocal struct {
	name  string
	value typed
}

// typed describes the value of an expression.
type typed struct {
	kinds Kinds
	shape *Shape // if it is an argument or a part of one
	path  string // how a message names it; empty if it is no part of the arguments
}

func (t *typer) fault(e ast.Expr, unknown bool, remedy, format string, args ...any) typed {
	place := at(t.ast.SourceInfo().GetStartLocation(e.ID()), fmt.Sprintf(format, args...), remedy)
	if e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() {
		place.Column++ // CEL's place is the dot
	}
	t.found = append(t.found, Misuse{*place, unknown})
	return typed{kinds: kindsAll}
}

// checked is the type from CEL's checker.
func (t *typer) checked(e ast.Expr) typed { return typed{kinds: kindsOf(t.ast.GetType(e.ID()))} }

func kindsOf(of *types.Type) Kinds {
	switch of.Kind() {
	case types.NullTypeKind:
		return KindNull
	case types.BoolKind:
		return KindBool
	case types.IntKind, types.UintKind, types.DoubleKind:
		return KindNumber
	case types.StringKind:
		return KindText
	case types.ListKind:
		return KindList
	case types.MapKind:
		return KindObject
	case types.BytesKind, types.TimestampKind, types.DurationKind, types.TypeKind:
		return kindOther
	}
	return kindsAll
}

func (t *typer) expr(e ast.Expr) typed {
	switch e.Kind() {
	case ast.IdentKind:
		for i := len(t.scope) - 1; i >= 0; i-- {
			if t.scope[i].name == e.AsIdent() {
				return t.scope[i].value
			}
		}
		if e.AsIdent() == names[nameArgs].Name {
			return typed{KindObject, t.args, e.AsIdent()}
		}
	case ast.SelectKind:
		s := e.AsSelect()
		of := t.expr(s.Operand())
		part := t.member(e, of, s.FieldName())
		if s.IsTestOnly() {
			return typed{kinds: KindBool}
		}
		if of.path == "" {
			return t.checked(e)
		}
		return part
	case ast.ListKind:
		for _, one := range e.AsList().Elements() {
			t.expr(one)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			t.expr(entry.AsMapEntry().Key())
			t.expr(entry.AsMapEntry().Value())
		}
	case ast.CallKind:
		return t.call(e)
	case ast.ComprehensionKind:
		return t.loop(e)
	}
	return t.checked(e)
}

// member returns the member of an argument.
func (t *typer) member(e ast.Expr, of typed, name string) typed {
	switch {
	case of.path == "":
		return typed{kinds: kindsAll}
	case of.kinds&KindObject == 0:
		return t.fault(e, false, "", "%s has no member %s", describe(of), name)
	}
	part, ok := of.shape.Member(name)
	if ok {
		return typed{part.kinds(), part, of.path + "." + name}
	}
	return t.fault(e, true, known(of), "no tool that this is about has an argument %s.%s", of.path, name)
}

// known lists the members of an object. Their names come from a server.
func known(of typed) string {
	const most, longest = 12, 64
	names := of.shape.Names()
	if len(names) == 0 {
		return of.path + " has no members"
	}
	rest := ""
	if len(names) > most {
		names, rest = names[:most], ", …"
	}
	for i, name := range names {
		names[i] = visible.Clip(name, longest)
	}
	return of.path + " has " + strings.Join(names, ", ") + rest
}

func (t *typer) call(e ast.Expr) typed {
	call := e.AsCall()
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	values := make([]typed, len(args))
	about := ""
	for i, arg := range args {
		values[i] = t.expr(arg)
		if about == "" {
			about = values[i].path
		}
	}
	switch call.FunctionName() {
	case operators.Conditional:
		if values[0].kinds&KindBool == 0 {
			t.fault(args[0], false, "", "%s decides nothing", describe(values[0]))
		}
		if values[1] == values[2] {
			return values[1]
		}
		return typed{values[1].kinds | values[2].kinds, nil, cmp.Or(values[1].path, values[2].path)}
	case operators.Index:
		return t.index(e, args[1], values)
	}
	if about == "" {
		return t.checked(e)
	}
	switch call.FunctionName() {
	case operators.Equals, operators.NotEquals:
		if values[0].kinds&values[1].kinds == 0 {
			t.fault(e, false, "", "%s never equals %s", describe(values[0]), describe(values[1]))
		}
	case operators.In:
		t.in(e, args, values)
	default:
		if !t.applies(call.FunctionName(), call.IsMemberFunction(), values) {
			operands := make([]string, len(values))
			for i, v := range values {
				operands[i] = describe(v)
			}
			t.fault(e, false, "", "%s does not go with %s", operator(call.FunctionName()), strings.Join(operands, " and "))
		}
	}
	return t.checked(e)
}

// describe names a value and its kinds.
func describe(v typed) string {
	if v.path == "" {
		return v.kinds.String()
	}
	return fmt.Sprintf("%s (%s)", v.path, v.kinds)
}

// operator returns a function as it is written.
func operator(function string) string {
	switch function {
	case mathMax:
		return "math.greatest"
	case mathMin:
		return "math.least"
	}
	if symbol, ok := operators.FindReverse(function); ok && symbol != "" {
		return symbol
	}
	return function
}

// applies reports whether a function has an overload that takes the kinds of the operands.
func (t *typer) applies(function string, member bool, values []typed) bool {
	f, ok := t.env.env.cel.Functions()[function]
	if !ok {
		return true
	}
	fits, seen := false, false
	for _, o := range f.OverloadDecls() {
		params := o.ArgTypes()
		if len(params) != len(values) || o.IsMemberFunction() != member {
			continue
		}
		seen = true
		all := true
		for i, p := range params {
			all = all && kindsOf(p)&values[i].kinds != 0
		}
		fits = fits || all
	}
	return fits || !seen
}

// in checks `x in list` and `'x' in args`.
func (t *typer) in(e ast.Expr, args []ast.Expr, values []typed) {
	x, where := values[0], values[1]
	if where.kinds&(KindList|KindObject) == 0 {
		t.fault(e, false, "", "nothing is in %s", describe(where))
		return
	}
	items := kindsAll
	switch {
	case where.kinds&KindObject != 0:
		if text, ok := literalText(args[0]); ok && where.kinds&KindList == 0 {
			t.member(args[0], where, text)
			return
		}
	case where.shape != nil:
		items = where.shape.Items.kinds()
	case args[1].Kind() == ast.ListKind:
		items = 0
		for _, one := range args[1].AsList().Elements() {
			items |= kindsOf(t.ast.GetType(one.ID()))
		}
	case where.path == "":
		if of := t.ast.GetType(args[1].ID()); of.Kind() == types.ListKind {
			items = kindsOf(of.Parameters()[0])
		}
	}
	if x.kinds&items == 0 {
		t.fault(e, false, "", "%s is never in a list of %s", describe(x), items)
	}
}

// index returns the element at a key or place.
func (t *typer) index(e, key ast.Expr, values []typed) typed {
	in, at := values[0], values[1]
	if in.path == "" {
		return t.checked(e)
	}
	if in.kinds&(KindList|KindObject) == 0 {
		return t.fault(e, false, "", "%s has no parts", describe(in))
	}
	if text, ok := literalText(key); ok && in.kinds&KindObject != 0 {
		return t.member(key, in, text)
	}
	if in.kinds&KindObject == 0 {
		if at.kinds&KindNumber == 0 {
			return t.fault(e, false, "", "%s is no place in %s", describe(at), describe(in))
		}
		if in.shape != nil {
			return typed{in.shape.Items.kinds(), in.shape.Items, in.path + "[]"}
		}
	}
	return typed{KindsJSON, nil, in.path + "[]"}
}

func (t *typer) loop(e ast.Expr) typed {
	c := e.AsComprehension()
	over := t.expr(c.IterRange())
	one := typed{kinds: kindsAll}
	if over.path != "" {
		switch {
		case over.kinds&(KindList|KindObject) == 0:
			t.fault(c.IterRange(), false, "", "there is nothing to loop over in %s", describe(over))
		case over.kinds&KindObject != 0:
			if over.kinds&KindList == 0 {
				one = typed{kinds: KindText}
			}
		case over.shape != nil:
			one = typed{over.shape.Items.kinds(), over.shape.Items, over.path + "[]"}
		}
	}
	accu := t.expr(c.AccuInit()) // of cel.bind the value
	t.scope = append(t.scope, typedLocal{c.AccuVar(), accu}, typedLocal{c.IterVar(), one})
	t.expr(c.LoopCondition())
	t.expr(c.LoopStep())
	t.scope = t.scope[:len(t.scope)-1]
	t.expr(c.Result())
	t.scope = t.scope[:len(t.scope)-1]
	return t.checked(e)
}
