package condition

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// An object is a JSON object as a CEL map. CEL's own maps are Go maps, which are walked in another order each time;
// this one is walked in the order of its names, so that a condition has one answer.
//
// A member that is a number which neither int nor double holds is kept as an error. [object.FindStringKey], which CEL
// asks for args.x, returns it; the ways that CEL asks when it compares whole maps would take an error for an equal
// value, so there it is thrown (see [whole]).
type object struct {
	members []member
	byName  map[types.String]int // only if there are many
}

type member struct {
	name  types.String
	value ref.Val
}

// fewMembers is how many members are searched one by one.
const fewMembers = 8

var _ traits.Mapper = (*object)(nil)

// index makes large objects quick to search.
func (o *object) index() {
	if len(o.members) <= fewMembers {
		return
	}
	o.byName = make(map[types.String]int, len(o.members))
	for i := range o.members {
		o.byName[o.members[i].name] = i
	}
}

func (o *object) at(name types.String) int {
	if o.byName != nil {
		if i, ok := o.byName[name]; ok {
			return i
		}
		return -1
	}
	return slices.IndexFunc(o.members, func(m member) bool { return m.name == name })
}

// FindStringKey is what CEL asks for args.x and has(args.x).
func (o *object) FindStringKey(name string) (any, bool) {
	if i := o.at(types.String(name)); i >= 0 {
		return o.members[i].value, true
	}
	return nil, false
}

// Find implements [traits.Mapper].
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	if i := o.at(name); i >= 0 {
		return whole(o.members[i].value), true
	}
	return nil, false
}

// Get implements [traits.Indexer].
func (o *object) Get(key ref.Val) ref.Val {
	if v, ok := o.Find(key); ok {
		return v
	}
	return types.NewErr("no such key: %v", key)
}

// Contains implements [traits.Container].
func (o *object) Contains(key ref.Val) ref.Val {
	name, ok := key.(types.String)
	return types.Bool(ok && o.at(name) >= 0)
}

// Equal implements [ref.Val].
func (o *object) Equal(other ref.Val) ref.Val {
	that, ok := other.(traits.Mapper)
	if !ok || that.Size() != o.Size() {
		return types.False
	}
	for _, m := range o.members {
		v, found := that.Find(m.name)
		if !found {
			return types.False
		}
		if eq := types.Equal(whole(m.value), v); eq != types.True {
			return eq
		}
	}
	return types.True
}

// Size implements [traits.Sizer].
func (o *object) Size() ref.Val { return types.Int(len(o.members)) }

// IsZeroValue implements [traits.Zeroer].
func (o *object) IsZeroValue() bool { return len(o.members) == 0 }

// Type implements [ref.Val].
func (o *object) Type() ref.Type { return types.MapType }

// Value implements [ref.Val].
func (o *object) Value() any { return o.members }

// ConvertToType implements [ref.Val].
func (o *object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", types.MapType, t)
}

// ConvertToNative implements [ref.Val]. Nothing asks for it: what leaves a condition is a bool or a number.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a map does not convert to %v", t)
}

// String lists the names, in order.
func (o *object) String() string {
	said := make([]string, len(o.members))
	for i, m := range o.members {
		said[i] = string(m.name)
	}
	return "{" + strings.Join(said, ", ") + "}"
}

// Iterator implements [traits.Iterable]: over the names, in order.
func (o *object) Iterator() traits.Iterator {
	keys := make([]ref.Val, len(o.members))
	for i := range o.members {
		keys[i] = o.members[i].name
	}
	return types.NewRefValList(types.DefaultTypeAdapter, keys).Iterator()
}

// holed is a list in which some number is held by neither int nor double.
type holed struct {
	traits.Lister
	hole *types.Err
}

// Get implements [traits.Indexer].
func (l *holed) Get(index ref.Val) ref.Val { return whole(l.Lister.Get(index)) }

// Equal implements [ref.Val].
func (l *holed) Equal(ref.Val) ref.Val { return whole(l.hole) }

// Contains implements [traits.Container].
func (l *holed) Contains(ref.Val) ref.Val { return whole(l.hole) }

// Add implements [traits.Adder].
func (l *holed) Add(ref.Val) ref.Val { return whole(l.hole) }

// whole returns v, or throws it if it is a number that could not be held. CEL catches that and ends the evaluation with
// the error.
func whole(v ref.Val) ref.Val {
	if e, ok := v.(*types.Err); ok {
		panic(interpreter.EvalCancelledError{Message: e.Error()})
	}
	return v
}
