package prove

import (
	"strconv"

	"pgfsm/internal/canonical"
)

// A kind is the JSON type of a value.
type kind uint8

const (
	absent kind = iota // the member is not there
	null
	boolean
	number
	text
	list
	object
)

// A value is a JSON value that stands for those of its cell.
type value struct {
	kind    kind
	literal string // the JSON of a null, boolean, number or text
	names   []string
	parts   []value // the members that names names, or the elements
}

func textValue(s string) value {
	return value{kind: text, literal: string(canonical.AppendText(nil, s))}
}

func numberValue(literal string) value { return value{kind: number, literal: literal} }

func boolValue(b bool) value { return value{kind: boolean, literal: strconv.FormatBool(b)} }

var nullValue = value{kind: null, literal: "null"}

// objectOf returns an object with the members that are not absent.
func objectOf(names []string, parts []value) value {
	o := value{kind: object}
	for i := range parts {
		if parts[i].kind != absent {
			o.names, o.parts = append(o.names, names[i]), append(o.parts, parts[i])
		}
	}
	return o
}

func listOf(parts ...value) value { return value{kind: list, parts: parts} }

// appendJSON appends the JSON of a value that is not absent.
func (v *value) appendJSON(b []byte) []byte {
	switch v.kind {
	case list:
		b = append(b, '[')
		for i := range v.parts {
			if i > 0 {
				b = append(b, ',')
			}
			b = v.parts[i].appendJSON(b)
		}
		return append(b, ']')
	case object:
		b = append(b, '{')
		for i := range v.parts {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(canonical.AppendText(b, v.names[i]), ':')
			b = v.parts[i].appendJSON(b)
		}
		return append(b, '}')
	}
	return append(b, v.literal...)
}

// follow returns the value at a path of members; absent if there is none.
func (v *value) follow(path []string) *value {
	for _, name := range path {
		next := &value{}
		for i := range v.names {
			if v.kind == object && v.names[i] == name {
				next = &v.parts[i]
			}
		}
		v = next
	}
	return v
}
