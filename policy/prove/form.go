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
	placeOrigins     = "origins"     // found and origin, which are not divided
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

// isAboutTool reports whether a name has one value for all calls of a tool.
func isAboutTool(name string) bool {
	place, ok := placeOf(name)
	return ok && (place == placeConstant || place == placeAnnotations)
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
	switch name, call := e.AsIdent(), e.AsCall(); {
	case f.variable != "" && name == f.variable:
		return f.over, true
	case slices.Contains([]string{"server", "tool", "env", placeCaller, placeClient, placeBehalf}, name),
		strings.HasPrefix(name, condition.ClaimPrefix):
		return location{place: name}, true
	case e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly():
		return f.locateMember(e.AsSelect().Operand(), e.AsSelect().FieldName())
	case call.FunctionName() == operators.Index:
		if name, ok := condition.LiteralText(call.Args()[1]); ok {
			return f.locateMember(call.Args()[0], name)
		}
	}
	return location{}, false
}

func (f *former) locateMember(of ast.Expr, name string) (location, bool) {
	if of.AsIdent() == "args" {
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
	args := operandsOf(call)
	switch name := call.FunctionName(); name {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		isOrder := name != operators.Equals && name != operators.NotEquals
		return f.acceptComparison(args[0], args[1], isOrder) || f.acceptComparison(args[1], args[0], isOrder)
	case operators.In:
		return f.acceptMembership(args[0], args[1])
	case "startsWith", "endsWith", "contains", "matches":
		source, ok := condition.LiteralText(args[1])
		l, found := f.locate(args[0])
		return ok && found && f.setPlace(l) && f.addSearch(l, name, source)
	}
	return false
}

// operandsOf returns the operands of a call, written as f(a, b) or as a.f(b).
func operandsOf(call ast.CallExpr) []ast.Expr {
	if call.IsMemberFunction() {
		return append([]ast.Expr{call.Target()}, call.Args()...)
	}
	return call.Args()
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

// acceptComparison reads a comparison of a value, its size, or the answer to a query, with a
// literal.
func (f *former) acceptComparison(e, with ast.Expr, isOrder bool) bool {
	literal := with.AsLiteral()
	switch call := e.AsCall(); {
	case call.FunctionName() == "size":
		l, ok := f.locate(operandsOf(call)[0])
		return ok && f.setPlace(l) && f.addSize(l, literal)
	case strings.HasPrefix(call.FunctionName(), "history.") && len(f.atom.program.Queries()) == 1:
		l := location{place: placeHistory + ":" + f.atom.program.Queries()[0].String()}
		return ratOf(literal) != nil && f.setPlace(l) && f.addLiteral(l, literal)
	}
	if _, isText := literal.(types.String); isText && isOrder {
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
	case types.Bool, types.Null:
	default:
		n := ratOf(literal)
		if n == nil {
			return false
		}
		f.ask(l, func(t *tree) { t.numbers = append(t.numbers, n) })
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
		return ok && f.setPlace(l) &&
			!slices.ContainsFunc(in.AsList().Elements(), func(one ast.Expr) bool { return !f.addLiteral(l, one.AsLiteral()) })
	}

	literal, isText := condition.LiteralText(e)
	switch {
	case !isText || f.variable != "":
		return false
	case in.AsIdent() == "args": // as has(args.NAME)
		return f.setPlace(location{place: placeArgs + literal, path: []string{literal}})
	case in.AsIdent() == "actor.groups":
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
	if isConnective(e) {
		return !slices.ContainsFunc(e.AsCall().Args(), func(part ast.Expr) bool { return !f.acceptBody(part) })
	}
	return f.accept(e)
}

// bodyOf returns the test of a loop of exists or all: only these macros make loops whose steps join a
// test to the result before.
func bodyOf(loop ast.ComprehensionExpr) (body ast.Expr, ok bool) {
	step := loop.LoopStep()
	if loop.HasIterVar2() || !slices.Contains(connectives[:2], step.AsCall().FunctionName()) {
		return nil, false
	}
	return step.AsCall().Args()[1], true
}
