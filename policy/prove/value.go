package prove

import (
	"encoding/json"
	"strconv"
	"strings"

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
	kind kind
	json string
}

func textValue(s string) value { return value{text, string(canonical.AppendText(nil, s))} }

func boolValue(b bool) value { return value{boolean, strconv.FormatBool(b)} }

var nullValue = value{null, "null"}

// members are the members of an object that is put together.
type members struct {
	names []string
	parts []value
}

// appendMember returns more members. An absent value adds none.
func (m members) appendMember(name string, part value) members {
	if part.kind == absent {
		return m
	}
	return members{append(m.names[:len(m.names):len(m.names)], name), append(m.parts[:len(m.parts):len(m.parts)], part)}
}

func (m members) value() value {
	written := make([]string, len(m.names))
	for i, name := range m.names {
		written[i] = string(canonical.AppendText(nil, name)) + ":" + m.parts[i].json
	}
	return value{object, "{" + strings.Join(written, ",") + "}"}
}

func listOf(parts ...value) value {
	written := make([]string, len(parts))
	for i := range parts {
		written[i] = parts[i].json
	}
	return value{list, "[" + strings.Join(written, ",") + "]"}
}

// isObjectAt reports whether a value has an object at a path of members.
func (v value) isObjectAt(path []string) bool {
	at, is := map[string]json.RawMessage{}, true
	text := []byte(v.json)
	for _, name := range append(path[:len(path):len(path)], "") {
		at = nil
		if is = text != nil && json.Unmarshal(text, &at) == nil && at != nil; !is {
			return false
		}
		text = at[name]
	}
	return is
}
