package api

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// Bounds of the table of arguments. The page has the whole JSON below it.
const (
	maxValues     = 500
	maxValueBytes = 256 << 10
)

// A value is one value in the arguments without values below it.
type value struct {
	Pointer string // RFC 6901
	Kind    string // text, number, …
	Text    string // content of a string
}

// listValues returns the values of a JSON document in order. more reports whether there are further
// values.
func listValues(doc jsontext.Value) (all []value, more bool, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(doc))
	bytes := 0

	for {
		t, err := dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return all, false, nil
		}
		if err != nil {
			return all, false, err
		}

		// Empty objects and lists are values. The others appear as the values that they contain.
		kind, text := "", t.String()
		switch t.Kind() {
		case '{', '[':
			next := dec.PeekKind()
			switch {
			case t.Kind() == '{' && next == '}':
				kind, text = "empty object", "{}"
			case t.Kind() == '[' && next == ']':
				kind, text = "empty list", "[]"
			default:
				continue
			}
		case '}', ']':
			continue
		case '"':
			if isName(dec) {
				continue
			}
			kind = "text"
		case '0':
			kind = "number"
		case 't', 'f':
			kind = "yes or no"
		case 'n':
			kind = "null"
		}

		v := value{string(dec.StackPointer()), kind, text}
		if bytes += len(v.Pointer) + len(v.Text); len(all) == maxValues || bytes > maxValueBytes {
			return all, true, nil
		}

		all = append(all, v)
	}
}

// isName reports whether the last token is the name of a member.
func isName(dec *jsontext.Decoder) bool {
	container, n := dec.StackIndex(dec.StackDepth())
	return container == '{' && n%2 == 1
}

// A change is one difference between the arguments of two calls.
type change struct {
	Pointer  string
	Old, New *value // nil if the call has no such value
}

// compareValues compares the arguments of two calls.
func compareValues(old, now []value) (all []change) {
	unmatched := make(map[string]*value, len(old))
	for i := range old {
		unmatched[old[i].Pointer] = &old[i]
	}
	for i := range now {
		v := &now[i]
		o := unmatched[v.Pointer]
		delete(unmatched, v.Pointer)
		if o == nil || *o != *v {
			all = append(all, change{v.Pointer, o, v})
		}
	}
	// What is still unmatched is missing in the later call.
	for i := range old {
		if o := unmatched[old[i].Pointer]; o != nil {
			all = append(all, change{o.Pointer, o, nil})
		}
	}
	return all
}

// An argumentsView shows arguments, and their differences from those of another call.
type argumentsView struct {
	Values   []value
	More     bool   // there are more values
	Raw      string // indented
	Digest   canonical.Digest
	Compared string // run with which the arguments are compared; empty: none
	Same     bool
	Changes  []change
	Partial  bool // not all values were compared
}

func newArguments(doc jsontext.Value) (a argumentsView, err error) {
	if a.Values, a.More, err = listValues(doc); err != nil {
		return a, err
	}
	a.Raw = indentJSON(doc)
	return a, nil
}

// addChanges adds the differences from the arguments of an earlier run.
func (a *argumentsView) addChanges(run string, same bool, doc jsontext.Value) error {
	old, more, err := listValues(doc)
	if err != nil {
		return err
	}
	a.Compared, a.Same, a.Changes, a.Partial = run, same, compareValues(old, a.Values), more || a.More
	return nil
}
