package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"pgfsm/policy/condition"
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
	env     *cel.Env // checks expressions; nil until it is needed
	objects [][]conjunction
	number  *types.Type
	members map[string][]string // the members of an object, by a field that it lacks
}

// A conjunction is a list of schemas that a value conforms to all at once. Several of them are
// alternatives, one for each tool.
type conjunction []*jsonschema.Schema

// objectPrefix begins the names of the types of objects; behind it is their index. The first are
// the arguments.
const objectPrefix = "arguments."

// maxListDepth bounds lists in lists, which a schema can nest without end.
const maxListDepth = 8

// findMisuses checks an expression with the arguments of some tools. CEL has several types for the
// numbers of JSON, so a misuse counts only if it is one for each of them.
func (t *argumentTypes) findMisuses(src string, arguments []conjunction) (common []misuse) {
	if t.env == nil {
		var err error
		if t.env, err = t.base.Typed(t, cel.ObjectType(objectPrefix+"0")); err != nil {
			return nil
		}
	}

	for i, number := range []*types.Type{types.IntType, types.DoubleType, types.UintType} {
		t.number, t.objects, t.members = number, [][]conjunction{arguments}, map[string][]string{}
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
	var members []conjunction
	open := false

	for _, alternative := range alternatives {
		if member, ok := alternative.member(field); ok {
			members = append(members, member)
		} else {
			open = open || alternative.isOpen()
		}
	}

	switch {
	case open:
		return &types.FieldType{Type: types.DynType}, true
	case len(members) > 0:
		return &types.FieldType{Type: t.typeOf(members, 0)}, true
	}

	t.members[field] = namesIn(alternatives)
	return nil, false
}

// typeOf returns the type of a value that conforms to one of several conjunctions.
func (t *argumentTypes) typeOf(alternatives []conjunction, depth int) *types.Type {
	kind := alternatives[0].onlyKind()
	if slices.ContainsFunc(alternatives, func(c conjunction) bool { return c.onlyKind() != kind }) {
		return types.DynType
	}

	switch kind {
	case "null":
		return types.NullType
	case "boolean":
		return types.BoolType
	case "number":
		return t.number
	case "string":
		return types.StringType
	case "array":
		var items []conjunction
		for _, alternative := range alternatives {
			items = append(items, alternative.items())
		}
		if depth == maxListDepth || slices.ContainsFunc(items, func(c conjunction) bool { return c == nil }) {
			return types.NewListType(types.DynType)
		}
		return types.NewListType(t.typeOf(items, depth+1))
	case "object":
		if len(namesIn(alternatives)) == 0 && slices.ContainsFunc(alternatives, conjunction.isOpen) {
			return types.NewMapType(types.StringType, types.DynType)
		}
		t.objects = append(t.objects, alternatives)
		return types.NewObjectType(fmt.Sprint(objectPrefix, len(t.objects)-1))
	}

	return types.DynType
}

// conjunctionOf returns a schema and those that a value must conform to with it: $ref and allOf.
func conjunctionOf(n *jsonschema.Schema) conjunction {
	conjoined := conjunction{n}
	for i := 0; i < len(conjoined); i++ {
		for _, more := range append([]*jsonschema.Schema{conjoined[i].Ref}, conjoined[i].AllOf...) {
			if more != nil && !slices.Contains(conjoined, more) {
				conjoined = append(conjoined, more)
			}
		}
	}
	return conjoined
}

// member returns the type that a member in the schemas conforms to.
func (c conjunction) member(name string) (conjunction, bool) {
	for _, n := range c {
		if member, ok := n.Properties[name]; ok {
			return conjunctionOf(member), true
		}
	}
	return nil, false
}

// items returns the type that the items of a list conform to; nil if they can be anything.
func (c conjunction) items() conjunction {
	for _, n := range c {
		element := n.Items2020
		if element == nil {
			element, _ = n.Items.(*jsonschema.Schema)
		}
		if element != nil && len(n.PrefixItems) == 0 {
			return conjunctionOf(element)
		}
	}
	return nil
}

func namesIn(alternatives []conjunction) (names []string) {
	for _, n := range slices.Concat(alternatives...) {
		names = append(names, slices.Collect(maps.Keys(n.Properties))...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isOpen reports whether an object can have members that the schemas do not name. In doubt it can.
func (c conjunction) isOpen() bool {
	shut := false
	for _, n := range c {
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

// onlyKind returns the only kind of value that conforms to the schemas; empty if there are several.
func (c conjunction) onlyKind() string {
	kinds := []string{"null", "boolean", "number", "string", "array", "object"}
	keepOnly := func(some []string) {
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return !slices.Contains(some, kind) })
	}

	for _, n := range c {
		if n.Types != nil {
			some := n.Types.ToStrings()
			if slices.Contains(some, "integer") {
				some = append(some, "number")
			}
			keepOnly(some)
		}
		if n.Enum != nil {
			keepOnly(kindsOf(n.Enum.Values))
		}
		if n.Const != nil {
			keepOnly(kindsOf([]any{*n.Const}))
		}
	}

	if len(kinds) != 1 {
		return ""
	}

	return kinds[0]
}

// kindsOf returns the kinds of values as the schema's compiler holds them.
func kindsOf(values []any) (kinds []string) {
	for _, v := range values {
		switch v.(type) {
		case nil:
			kinds = append(kinds, "null")
		case bool:
			kinds = append(kinds, "boolean")
		case string:
			kinds = append(kinds, "string")
		case []any:
			kinds = append(kinds, "array")
		case map[string]any:
			kinds = append(kinds, "object")
		default:
			kinds = append(kinds, "number")
		}
	}
	return kinds
}
