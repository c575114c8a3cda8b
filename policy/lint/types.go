package lint

import (
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/policy/condition"
	"pgfsm/policy/schema"
)

// A misuse is a use of an argument that its schema rules out.
type misuse struct {
	unknown         bool // there is no such argument; otherwise it has another type
	line, column    int  // the position within the expression, from 1
	problem, remedy string
}

// argumentTypes describes the arguments of tools to CEL's checker. It is a provider of types: an
// object of the schemas is a type whose fields are the members that it has for one tool at least.
type argumentTypes struct {
	types.Provider
	base    *condition.Env
	env     *cel.Env         // checks expressions; nil until it is needed
	objects [][]schema.Shape // of each, one for each tool
	number  *types.Type
	members map[string][]string // the members of an object, by a field that it lacks
}

// objectPrefix begins the names of the types of objects; behind it is their index. The first are
// the arguments.
const objectPrefix = "arguments."

// maxListDepth bounds lists in lists, which a schema can nest without end.
const maxListDepth = 8

// findMisuses checks an expression with the arguments of some tools. CEL has several types for the
// numbers of JSON, so a misuse counts only if it is one for each of them.
func (t *argumentTypes) findMisuses(src string, arguments []schema.Shape) (common []misuse) {
	if t.env == nil {
		var err error
		if t.env, err = t.base.Typed(t, cel.ObjectType(objectPrefix+"0")); err != nil {
			return nil
		}
	}

	for i, number := range []*types.Type{types.IntType, types.DoubleType, types.UintType} {
		t.number, t.objects, t.members = number, [][]schema.Shape{arguments}, map[string][]string{}
		parsed, issues := t.env.Parse(src)
		if issues.Err() != nil {
			return nil
		}
		selectMembers(parsed.NativeRep())
		if _, issues = t.env.Check(parsed); issues.Err() == nil {
			return nil
		}
		found := t.readFaults(src, issues)
		if i == 0 {
			common = found
			continue
		}
		common = slices.DeleteFunc(common, func(m misuse) bool {
			return !slices.ContainsFunc(found,
				func(n misuse) bool { return m.line == n.line && m.column == n.column && m.unknown == n.unknown })
		})
	}
	return common
}

// selectMembers writes args["x"] as args.x and "x" in args as has(args.x), because CEL knows only
// the types of selected fields.
func selectMembers(of *ast.AST) {
	make := ast.NewExprFactory()
	ast.PostOrderVisit(of.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Index:
			if name, ok := condition.LiteralText(args[1]); ok {
				e.SetKindCase(make.NewSelect(e.ID(), args[0], name))
			}
		case operators.In:
			if name, ok := condition.LiteralText(args[0]); ok && args[1].Kind() == ast.IdentKind &&
				args[1].AsIdent() == "args" {
				e.SetKindCase(make.NewPresenceTest(e.ID(), args[1], name))
			}
		}
	}))
}

// readFaults reads the findings of CEL's checker. A finding about an object as a whole is no fault:
// CEL takes it for a message, and it is a map.
func (t *argumentTypes) readFaults(src string, issues *cel.Issues) (found []misuse) {
	lines := strings.Split(src, "\n")
	for _, e := range issues.Errors() {
		place := e.Location
		if strings.Contains(e.Message, objectPrefix) || place.Line() < 1 || place.Line() > len(lines) {
			continue
		}
		m := misuse{line: place.Line(), column: place.Column() + 1, problem: e.Message}
		if field, ok := strings.CutPrefix(e.Message, "undefined field '"); ok {
			field = strings.TrimSuffix(field, "'")
			if line := []rune(lines[m.line-1]); m.column <= len(line) && line[m.column-1] == '.' {
				m.column++
			}
			m.unknown, m.remedy = true, listConfigured("arguments there", t.members[field])
			m.problem = fmt.Sprintf("no tool that this is about has an argument %q there", clip(field))
		}
		found = append(found, m)
	}
	return found
}

// FindStructType implements [types.Provider].
func (t *argumentTypes) FindStructType(name string) (*types.Type, bool) {
	if strings.HasPrefix(name, objectPrefix) {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return t.Provider.FindStructType(name)
}

// FindStructFieldType implements [types.Provider].
func (t *argumentTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	var index int
	if _, err := fmt.Sscanf(name, objectPrefix+"%d", &index); err != nil || index >= len(t.objects) {
		return t.Provider.FindStructFieldType(name, field)
	}

	alternatives := t.objects[index]
	var members []schema.Shape
	for _, alternative := range alternatives {
		if slices.Contains(alternative.Names(), field) {
			if member, possible := alternative.Member(field); possible {
				members = append(members, member)
			}
		} else if isOpen(alternative) {
			return &types.FieldType{Type: types.DynType}, true
		}
	}
	if len(members) > 0 {
		return &types.FieldType{Type: t.typeOf(members, 0)}, true
	}
	t.members[field] = namesIn(alternatives)
	return nil, false
}

// typeOf returns the type of a value that has one of several shapes.
func (t *argumentTypes) typeOf(alternatives []schema.Shape, depth int) *types.Type {
	kinds := alternatives[0].Kinds()
	if len(kinds) != 1 || slices.ContainsFunc(alternatives, func(s schema.Shape) bool { return !slices.Equal(s.Kinds(), kinds) }) {
		return types.DynType
	}

	switch kinds[0] {
	case "null":
		return types.NullType
	case "boolean":
		return types.BoolType
	case "number":
		return t.number
	case "string":
		return types.StringType
	case "array":
		var elements []schema.Shape
		for _, alternative := range alternatives {
			elements = append(elements, alternative.Element())
		}
		if depth == maxListDepth {
			return types.NewListType(types.DynType)
		}
		return types.NewListType(t.typeOf(elements, depth+1))
	}

	// An object.
	if len(namesIn(alternatives)) == 0 && slices.ContainsFunc(alternatives, isOpen) {
		return types.NewMapType(types.StringType, types.DynType)
	}
	t.objects = append(t.objects, alternatives)
	return types.NewObjectType(fmt.Sprint(objectPrefix, len(t.objects)-1))
}

func namesIn(alternatives []schema.Shape) (names []string) {
	for _, alternative := range alternatives {
		names = append(names, alternative.Names()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isOpen reports whether an object can have members that the schemas do not name. In doubt it can.
func isOpen(s schema.Shape) bool {
	shut := false
	for _, n := range s.All {
		if len(n.PatternProperties)+len(n.AnyOf)+len(n.OneOf)+len(n.DependentSchemas)+len(n.Dependencies) > 0 ||
			n.If != nil || n.RecursiveRef != nil || n.DynamicRef != nil {
			return true
		}
		for _, other := range []any{n.AdditionalProperties, n.UnevaluatedProperties} {
			one, isSchema := other.(*jsonschema.Schema)
			none := other == false || one != nil && one.Bool != nil && !*one.Bool
			if other != nil && !none && (!isSchema || one != nil) {
				return true
			}
			shut = shut || none
		}
	}
	return !shut
}
