package prove

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"pgfsm/policy/condition"
)

// Places of a call.
const (
	placeConstant    = ""            // server, tool, env and whether the tool is pinned
	placeAnnotations = "annotations" // the four hints together
	placeHistory     = "history"     // the prefix of a query
	placeArgs        = "args."       // the prefix of an argument
	placeRisk        = "risk"        // risk.*, computed from the other places
	placeActor       = "actor."      // the prefix of the places of the caller:
	placeCaller      = "actor.id"    // the name, the groups, and the roles that follow
	placeKind        = "actor.kind"
	placeClient      = "actor.client"
	placeBehalf      = "actor.on_behalf_of"
)

// placeOf returns the place of a name for which every form of an atom is analyzed.
func placeOf(name string) (place string, ok bool) {
	switch {
	case slices.Contains([]string{"server", "tool", "env", "pinned"}, name):
		return placeConstant, true
	case strings.HasPrefix(name, "tool_annotations."):
		return placeAnnotations, true
	case strings.HasPrefix(name, "risk."):
		return placeRisk, true
	case name == "actor.roles":
		return placeCaller, true
	}
	return name, name == placeKind
}

// classify finds the place that an atom asks about. Without one, the atom is free.
func (a *atom) classify(e ast.Expr) {
	f, places, whole := &former{atom: a}, []string(nil), true
	for _, name := range a.reads {
		place, ok := placeOf(name)
		whole = whole && ok
		if place != placeConstant {
			addTo(&places, place)
		}
	}
	accepted := f.accept(e)
	switch {
	case len(places) == 0:
		a.place, a.named = placeConstant, accepted || slices.Equal(a.reads, []string{"pinned"})
	case len(places) == 1 && whole:
		a.place = places[0]
	case !accepted:
		a.setFree("it has a form that is not analyzed")
	}
}

func (a *atom) setFree(why string) { a.place, a.path, a.features, a.free = "", nil, nil, why }

// A former reads the form of an atom and adds what it asks to the features.
type former struct {
	atom     *atom
	variable string // of the loop that is read
	over     location
}

// A location is a value: that of a place, a member below it, or such of a list's elements.
type location struct {
	place   string
	path    []string // from the arguments
	element bool
	below   []string // from the element
}

// tree returns the tree of the location below that of its place.
func (l location) tree(root *tree) *tree {
	if len(l.path) > 0 {
		root = root.descend(l.path[1:])
	}
	if l.element {
		root = root.elements().descend(l.below)
	}
	return root
}

// setPlace notes that the atom asks about a location. It is false if it asked about another place before.
func (f *former) setPlace(l location) bool {
	a := f.atom
	switch {
	case f.variable != "" && !l.element: // a loop that asks about more than its element
		return false
	case a.place == "":
		a.place, a.path = l.place, l.path
	case a.place != l.place || !slices.Equal(a.path, l.path):
		return false
	}
	f.ask(l, func(*tree) {})
	return true
}

// ask notes what the atom asks about a location.
func (f *former) ask(l location, what func(*tree)) {
	f.atom.features = append(f.atom.features, func(root *tree) { what(l.tree(root)) })
}

// locate returns the location that an expression names.
func (f *former) locate(e ast.Expr) (location, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		switch name := e.AsIdent(); {
		case f.variable != "" && name == f.variable:
			return f.over, true
		case slices.Contains([]string{"server", "tool", "env", placeCaller, placeClient, placeBehalf}, name),
			strings.HasPrefix(name, condition.ClaimPrefix):
			return location{place: name}, true
		}
	case ast.SelectKind:
		if !e.AsSelect().IsTestOnly() {
			return f.locateMember(e.AsSelect().Operand(), e.AsSelect().FieldName())
		}
	case ast.CallKind:
		if call := e.AsCall(); call.FunctionName() == operators.Index {
			if name, ok := condition.LiteralText(call.Args()[1]); ok {
				return f.locateMember(call.Args()[0], name)
			}
		}
	}
	return location{}, false
}

func (f *former) locateMember(of ast.Expr, name string) (location, bool) {
	if of.Kind() == ast.IdentKind && of.AsIdent() == "args" {
		return location{place: placeArgs + name, path: []string{name}}, true
	}
	l, ok := f.locate(of)
	switch {
	case !ok || !strings.HasPrefix(l.place, placeArgs):
		return location{}, false
	case l.element:
		l.below = append(slices.Clone(l.below), name)
	default:
		l.path = append(slices.Clone(l.path), name)
	}
	return l, true
}

// accept reports whether the form of an expression is one whose result is the same for all values
// of a cell.
func (f *former) accept(e ast.Expr) bool {
	switch e.Kind() {
	case ast.SelectKind:
		if s := e.AsSelect(); s.IsTestOnly() {
			l, ok := f.locateMember(s.Operand(), s.FieldName())
			return ok && f.setPlace(l)
		}
	case ast.ComprehensionKind:
		return f.acceptLoop(e.AsComprehension())
	case ast.CallKind:
		if e.AsCall().FunctionName() != operators.Index {
			return f.acceptCall(e.AsCall())
		}
	case ast.LiteralKind:
		return f.variable != "" // in the body of a loop
	}
	l, ok := f.locate(e)
	return ok && f.setPlace(l)
}

func (f *former) acceptCall(call ast.CallExpr) bool {
	args := call.Args()
	switch name := call.FunctionName(); name {
	case operators.Equals, operators.NotEquals:
		return f.acceptComparison(args[0], args[1], true) || f.acceptComparison(args[1], args[0], true)
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return f.acceptComparison(args[0], args[1], false) || f.acceptComparison(args[1], args[0], false)
	case operators.In:
		return f.acceptMembership(args[0], args[1])
	case "startsWith", "endsWith", "contains", "matches":
		target, pattern := call.Target(), args[len(args)-1]
		if !call.IsMemberFunction() {
			target = args[0]
		}
		source, ok := condition.LiteralText(pattern)
		l, found := f.locate(target)
		return ok && found && f.setPlace(l) && f.addSearch(l, name, source)
	}
	return false
}

// addSearch adds the pattern of a function that searches a text.
func (f *former) addSearch(l location, function, source string) bool {
	switch function {
	case "startsWith":
		source = `\A` + regexp.QuoteMeta(source)
	case "endsWith":
		source = regexp.QuoteMeta(source) + `\z`
	case "contains":
		source = regexp.QuoteMeta(source)
	}
	if _, err := compilePattern(source); err != nil {
		return false
	}
	f.ask(l, func(t *tree) { addTo(&t.patterns, source) })
	return true
}

func literalOf(e ast.Expr) ref.Val {
	if e.Kind() != ast.LiteralKind {
		return nil
	}
	return e.AsLiteral()
}

// acceptComparison reads a comparison of a value, its size, or the answer to a query, with a
// literal.
func (f *former) acceptComparison(e, with ast.Expr, equality bool) bool {
	literal := literalOf(with)
	if literal == nil {
		return false
	}
	if e.Kind() == ast.CallKind {
		call := e.AsCall()
		switch {
		case call.FunctionName() == "size":
			operand := call.Target()
			if !call.IsMemberFunction() {
				operand = call.Args()[0]
			}
			l, ok := f.locate(operand)
			return ok && f.setPlace(l) && f.addSize(l, literal)
		case strings.HasPrefix(call.FunctionName(), "history.") && len(f.atom.program.Queries()) == 1:
			l := location{place: placeHistory + ":" + f.atom.program.Queries()[0].String()}
			return ratOf(literal) != nil && f.setPlace(l) && f.addLiteral(l, literal)
		}
	}
	if _, isText := literal.(types.String); isText && !equality {
		return false // the order of texts divides them endlessly
	}
	l, ok := f.locate(e)
	return ok && f.setPlace(l) && f.addLiteral(l, literal)
}

// addLiteral adds a literal that a value is compared with.
func (f *former) addLiteral(l location, literal ref.Val) bool {
	switch literal := literal.(type) {
	case types.String:
		f.ask(l, func(t *tree) { addTo(&t.literals, string(literal)) })
	case types.Int, types.Uint, types.Double:
		n := ratOf(literal)
		if n == nil {
			return false
		}
		f.ask(l, func(t *tree) { t.numbers = append(t.numbers, n) })
	case types.Bool, types.Null:
	default:
		return false
	}
	return true
}

// addSize adds a size that a text, a list or an object is compared with.
func (f *former) addSize(l location, literal ref.Val) bool {
	n := ratOf(literal)
	if n == nil || n.Cmp(big.NewRat(maxSize, 1)) > 0 {
		return false
	}
	floor := int(new(big.Int).Div(n.Num(), n.Denom()).Int64())
	f.ask(l, func(t *tree) {
		addTo(&t.sizes, max(floor, 0))
		addTo(&t.sizes, max(floor+1, 0))
	})
	return true
}

// acceptMembership reads a value in a list of literals, or a literal among elements or members.
func (f *former) acceptMembership(e, in ast.Expr) bool {
	if in.Kind() == ast.ListKind {
		l, ok := f.locate(e)
		return ok && f.setPlace(l) && !slices.ContainsFunc(in.AsList().Elements(), func(one ast.Expr) bool {
			literal := literalOf(one)
			return literal == nil || !f.addLiteral(l, literal)
		})
	}

	literal, isText := condition.LiteralText(e)
	switch {
	case !isText || f.variable != "":
		return false
	case in.Kind() == ast.IdentKind && in.AsIdent() == "args": // as has(args.NAME)
		return f.setPlace(location{place: placeArgs + literal, path: []string{literal}})
	case in.Kind() == ast.IdentKind && in.AsIdent() == "actor.groups":
		f.ask(location{}, func(t *tree) { t.member(literal) })
		return f.setPlace(location{place: placeCaller})
	}
	l, ok := f.locate(in)
	if !ok || !f.setPlace(l) {
		return false
	}
	f.ask(l, func(t *tree) {
		t.member(literal)
		addTo(&t.elements().literals, literal)
	})
	return true
}

// acceptLoop reads a loop of exists or all, whose body asks about the element alone.
func (f *former) acceptLoop(loop ast.ComprehensionExpr) bool {
	body, ok := bodyOf(loop)
	if !ok || f.variable != "" {
		return false
	}
	l, ok := f.locate(loop.IterRange())
	if !ok || !strings.HasPrefix(l.place, placeArgs) || !f.setPlace(l) {
		return false
	}
	f.atom.loop = true
	// A loop over an empty text ends like one over an empty list; over any other text it fails.
	f.ask(l, func(t *tree) {
		addTo(&t.sizes, 0)
		t.elements()
		t.loops = true
	})
	l.element = true
	f.variable, f.over = loop.IterVar(), l
	return f.acceptBody(body)
}

func (f *former) acceptBody(e ast.Expr) bool {
	if e.Kind() == ast.CallKind && slices.Contains(connectives, e.AsCall().FunctionName()) {
		return !slices.ContainsFunc(e.AsCall().Args(), func(part ast.Expr) bool { return !f.acceptBody(part) })
	}
	return f.accept(e)
}

// bodyOf returns the test of a loop of exists or all. The macros make these loops: the accumulator
// begins with false or true, each step joins the test to it, and the result is the accumulator.
func bodyOf(loop ast.ComprehensionExpr) (ast.Expr, bool) {
	accumulator := func(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == loop.AccuVar() }
	start, step, stop := literalOf(loop.AccuInit()), loop.LoopStep(), loop.LoopCondition()
	if loop.HasIterVar2() || start == nil || step.Kind() != ast.CallKind || stop.Kind() != ast.CallKind ||
		!accumulator(loop.Result()) || stop.AsCall().FunctionName() != operators.NotStrictlyFalse {
		return nil, false
	}

	goesOn := stop.AsCall().Args()[0]
	joins := step.AsCall()
	switch {
	case start == types.False && joins.FunctionName() == operators.LogicalOr:
		if goesOn.Kind() != ast.CallKind || goesOn.AsCall().FunctionName() != operators.LogicalNot {
			return nil, false
		}
		goesOn = goesOn.AsCall().Args()[0]
	case start == types.True && joins.FunctionName() == operators.LogicalAnd:
	default:
		return nil, false
	}
	if !accumulator(goesOn) || !accumulator(joins.Args()[0]) {
		return nil, false
	}
	return joins.Args()[1], true
}
