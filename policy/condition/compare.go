package condition

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// The comparisons of CEL are replaced for two reasons: CEL rounds integers to compare them with
// doubles, and charges a comparison only after it.

// compareValues returns the order of two values as an int, or an error.
func compareValues(m meter, a, b ref.Val) ref.Val {
	if isNumber(a) && isNumber(b) {
		if err := checkComparable(a, b); err != nil {
			return err
		}
	}
	m.spend(1 + min(textSize(a), textSize(b))/textPerUnit)
	if c, ok := a.(traits.Comparer); ok {
		return c.Compare(b)
	}
	return types.MaybeNoSuchOverloadErr(a)
}

// orderTest implements < <= > >=.
func orderTest(holds func(order types.Int) bool) function {
	return func(m meter, args operands) ref.Val {
		order := compareValues(m, args[0], args[1])
		if n, ok := order.(types.Int); ok {
			return types.Bool(holds(n))
		}
		return order
	}
}

// equalValues returns whether two values are equal all the way down. A number that could not be
// held is an error where it is compared.
func equalValues(m meter, a, b ref.Val) ref.Val {
	m.spend(1 + min(textSize(a), textSize(b))/textPerUnit)
	for _, v := range [...]ref.Val{a, b} {
		if types.IsError(v) {
			return v
		}
	}
	switch x := a.(type) {
	case traits.Lister:
		if y, ok := b.(traits.Lister); ok {
			return equalLists(m, x, y)
		}
	case traits.Mapper:
		if y, ok := b.(traits.Mapper); ok {
			return equalMaps(m, x, y)
		}
	}
	if err := checkComparable(a, b); err != nil {
		return err
	}
	return types.Equal(a, b)
}

// firstError returns the first element of a list that is an error: a number that could not be held.
func firstError(m meter, l traits.Lister) ref.Val {
	size := l.Size().(types.Int)
	m.spend(1 + uint64(size))
	for i := range size {
		if v := l.Get(i); types.IsError(v) {
			return v
		}
	}
	return nil
}

func equalLists(m meter, a, b traits.Lister) ref.Val {
	for _, l := range [...]traits.Lister{a, b} {
		if err := firstError(m, l); err != nil {
			return err
		}
	}
	// An error in either list counts, whatever their sizes are; it was looked for above.
	if a.Size() != b.Size() {
		return types.False
	}
	for i := range a.Size().(types.Int) {
		if eq := equalValues(m, a.Get(i), b.Get(i)); eq != types.True {
			return eq
		}
	}
	return types.True
}

// equalMaps compares all members: an error counts although another member differs.
func equalMaps(m meter, a, b traits.Mapper) ref.Val {
	if a.Size() != b.Size() {
		return types.False
	}
	result := ref.Val(types.True)
	for it := a.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		eq := ref.Val(types.False)
		if other, found := b.Find(key); found {
			eq = equalValues(m, a.Get(key), other)
		}
		if types.IsError(eq) {
			return eq
		}
		if eq != types.True {
			result = types.False
		}
	}
	return result
}

func equalOperands(m meter, args operands) ref.Val { return equalValues(m, args[0], args[1]) }

func unequalOperands(m meter, args operands) ref.Val {
	eq := equalValues(m, args[0], args[1])
	if yes, ok := eq.(types.Bool); ok {
		return !yes
	}
	return eq
}

// isMember implements x in list and key in map.
func isMember(m meter, args operands) ref.Val {
	l, ok := args[1].(traits.Lister)
	if !ok {
		if c, ok := args[1].(traits.Container); ok {
			return c.Contains(args[0])
		}
		return types.MaybeNoSuchOverloadErr(args[1])
	}
	if err := firstError(m, l); err != nil {
		return err
	}
	return containsValue(m, args[0], l)
}

func containsValue(m meter, x ref.Val, l traits.Lister) ref.Val {
	for i := range l.Size().(types.Int) {
		if eq := equalValues(m, x, l.Get(i)); eq != types.False {
			return eq
		}
	}
	return types.False
}
