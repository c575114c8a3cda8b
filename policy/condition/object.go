package condition

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// An object is a JSON object as a CEL map. CEL's maps are Go maps with random iteration order; an
// object iterates in the order of its names, so that a condition has one result.
//
// A member that is a number which neither int nor double holds is an error value: whatever uses it
// fails.
type object struct {
	names   []string
	members map[string]ref.Val
}

var _ traits.Mapper = (*object)(nil)

// FindStringKey returns the member with a name. CEL calls it for args.x and has(args.x).
func (o *object) FindStringKey(name string) (any, bool) {
	v, ok := o.members[name]
	return v, ok
}

// Find implements [traits.Mapper].
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return nil, false
	}
	v, ok := o.members[string(name)]
	return v, ok
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
	_, ok := o.Find(key)
	return types.Bool(ok)
}

// Equal implements [ref.Val].
func (o *object) Equal(other ref.Val) ref.Val {
	if m, ok := other.(traits.Mapper); ok {
		return equalMaps(meter{}, o, m)
	}
	return types.False
}

// Size implements [traits.Sizer].
func (o *object) Size() ref.Val { return types.Int(len(o.names)) }

// IsZeroValue implements [traits.Zeroer].
func (o *object) IsZeroValue() bool { return len(o.names) == 0 }

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

// ConvertToNative implements [ref.Val]. Only a bool or a number leaves a condition.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a map does not convert to %v", t)
}

// Iterator implements [traits.Iterable]: over the names, in order.
func (o *object) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, o.names).Iterator()
}
