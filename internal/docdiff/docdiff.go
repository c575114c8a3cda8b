// Package docdiff shows the changes between two documents or texts, for people who decide about
// them.
package docdiff

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// Kinds of [Change].
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// A Change is one difference between two documents. At points into the new one, and for what was
// removed into the old.
type Change struct {
	At   jsontext.Pointer `json:"at"`
	Kind string           `json:"kind"`
	Old  jsontext.Value   `json:"old,omitzero"`
	New  jsontext.Value   `json:"new,omitzero"`
}

// JSON returns the changes between two documents in canonical form; at is their place in a larger
// one. The result is empty exactly if their bytes are equal, so every change of a digest is shown.
func JSON(at jsontext.Pointer, before, now jsontext.Value) []Change {
	switch {
	case bytes.Equal(before, now):
		return nil
	case before.Kind() == '{' && now.Kind() == '{':
		return memberDifferences(at, before, now)
	case before.Kind() == '[' && now.Kind() == '[':
		return itemDifferences(at, before, now)
	}
	return []Change{{At: at, Kind: Changed, Old: before, New: now}}
}

func memberDifferences(at jsontext.Pointer, before, now jsontext.Value) (changes []Change) {
	oldMembers, newMembers := maps.Collect(canonical.Members(before)), maps.Collect(canonical.Members(now))
	names := slices.Concat(slices.Collect(maps.Keys(oldMembers)), slices.Collect(maps.Keys(newMembers)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		place := at.AppendToken(name)
		o, inOld := oldMembers[name]
		n, inNew := newMembers[name]
		switch {
		case !inNew:
			changes = append(changes, Change{At: place, Kind: Removed, Old: o})
		case !inOld:
			changes = append(changes, Change{At: place, Kind: Added, New: n})
		default:
			changes = append(changes, JSON(place, o, n)...)
		}
	}
	return changes
}

// itemDifferences compares two lists from both ends, so that an item put in between moves no other.
func itemDifferences(at jsontext.Pointer, before, now jsontext.Value) (changes []Change) {
	oldItems, newItems := itemsOf(before), itemsOf(now)
	front, back := commonEnds(oldItems, newItems)
	oldItems, newItems = oldItems[front:len(oldItems)-back], newItems[front:len(newItems)-back]
	for i := range max(len(oldItems), len(newItems)) {
		place := at.AppendToken(fmt.Sprint(front + i))
		switch {
		case i >= len(newItems):
			changes = append(changes, Change{At: place, Kind: Removed, Old: oldItems[i]})
		case i >= len(oldItems):
			changes = append(changes, Change{At: place, Kind: Added, New: newItems[i]})
		default:
			changes = append(changes, JSON(place, oldItems[i], newItems[i])...)
		}
	}
	return changes
}

func itemsOf(list jsontext.Value) (values []jsontext.Value) {
	if err := json.Unmarshal(list, &values); err != nil {
		panic("a list in canonical form cannot be read: " + err.Error())
	}
	return values
}

// commonEnds counts the common items of two lists at their beginnings, and of the rest at their
// ends.
func commonEnds(a, b []jsontext.Value) (front, back int) {
	for front < min(len(a), len(b)) && bytes.Equal(a[front], b[front]) {
		front++
	}
	for back < min(len(a), len(b))-front && bytes.Equal(a[len(a)-1-back], b[len(b)-1-back]) {
		back++
	}
	return front, back
}
