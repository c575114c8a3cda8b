package condition

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// An object is a JSON object as a CEL map. CEL's own maps are Go maps, which are walked in another order each time;
// this one is walked in the order of its names, so that a condition has one answer.
//
// A member that is a number which neither int nor double holds is an error value: whatever uses it fails.
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
		return o.members[i].value, true
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
	if m, ok := other.(traits.Mapper); ok {
		return equalMaps(meter{}, o, m)
	}
	return types.False
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
