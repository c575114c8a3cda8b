package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// place is a position in a file: line and column, both from 1, columns in characters. The zero
// value is no position.
type place struct{ line, col int }

// kind is the type of a value, as JSON Schema calls it.
type kind string

const (
	isNull   kind = "null"
	isBool   kind = "boolean"
	isNumber kind = "number"
	isText   kind = "string"
	isList   kind = "array"
	isMap    kind = "object"
)

// node is one value of a YAML or JSON file, with its place.
type node struct {
	kind    kind
	at      place
	text    string   // content of a text, literal of a number or boolean
	members []member // members of an object or a list, in the order of the file
}

// member is a value in an object, or in a list, where it has no key.
type member struct {
	key   string
	at    place // place of the key
	value *node
}

// member returns the member with a key, or nil. It may be called on nil.
func (n *node) member(key string) *member {
	if n == nil || n.kind != isMap {
		return nil
	}
	i := slices.IndexFunc(n.members, func(m member) bool { return m.key == key })
	if i < 0 {
		return nil
	}
	return &n.members[i]
}

// get returns the value of a key, or nil. It may be called on nil.
func (n *node) get(key string) *node {
	if m := n.member(key); m != nil {
		return m.value
	}
	return nil
}

// membersOf returns the members of a key's value.
func (n *node) membersOf(key string) []member {
	if v := n.get(key); v != nil {
		return v.members
	}
	return nil
}

// textOf returns the text of a key's value; empty if there is none.
func (n *node) textOf(key string) string {
	if v := n.get(key); v != nil {
		return v.text
	}
	return ""
}

// forEachLeaf calls f with every scalar below n, and with n itself if it is one.
func (n *node) forEachLeaf(f func(*node)) {
	for _, m := range n.members {
		m.value.forEachLeaf(f)
	}
	if n.kind != isList && n.kind != isMap {
		f(n)
	}
}

// copyAt returns a copy of n with all values at one place.
func (n *node) copyAt(at place) *node {
	out := &node{kind: n.kind, at: at, text: n.text}
	for _, m := range n.members {
		out.members = append(out.members, member{m.key, at, m.value.copyAt(at)})
	}
	return out
}

// json writes n as JSON: members in the order of the file, numbers by their literal.
func (n *node) json() jsontext.Value { return n.appendJSON(nil) }

func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case isNull:
		return append(b, "null"...)
	case isText:
		return appendQuote(b, n.text)
	case isBool, isNumber:
		return append(b, n.text...)
	}

	brackets := "[]"
	if n.kind == isMap {
		brackets = "{}"
	}

	b = append(b, brackets[0])
	for i, m := range n.members {
		if i > 0 {
			b = append(b, ',')
		}
		if n.kind == isMap {
			b = append(appendQuote(b, m.key), ':')
		}
		b = m.value.appendJSON(b)
	}

	return append(b, brackets[1])
}

// appendQuote quotes a text. It cannot fail, because the readers refuse text that is not UTF-8.
func appendQuote(b []byte, s string) []byte {
	out, err := jsontext.AppendQuote(b, s)
	if err != nil {
		panic("config: a text that was read is not UTF-8: " + err.Error())
	}
	return out
}

// plainText matches a JSON string that YAML reads as the same text without quotation marks.
var plainText = regexp.MustCompile(`"([A-Za-z.][A-Za-z0-9./_-]*)"`)

// exampleText writes an example as a person would write it into a file.
func (n *node) exampleText() string { return plainText.ReplaceAllString(n.spacedJSON(), "$1") }

// spacedJSON writes n as JSON in one line, with spaces.
func (n *node) spacedJSON() string {
	doc := n.json()
	if err := doc.Format(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true)); err != nil {
		panic("config: a value does not format: " + err.Error())
	}
	return string(doc)
}

// A path leads to a value in a file: names of keys, and indexes of lists as "[0]".
type path []string

func (p path) child(names ...string) path { return slices.Concat(p, names) }

func (p path) item(i int) path { return p.child("[" + strconv.Itoa(i) + "]") }

func (p path) String() string {
	var b strings.Builder
	for i, name := range p {
		if i > 0 && name[:min(1, len(name))] != "[" {
			b.WriteByte('.')
		}
		b.WriteString(clipText(name))
	}
	return b.String()
}

// child returns the member that a part of a path names, or nil.
func (n *node) child(name string) *member {
	if n.kind != isList {
		return n.member(name)
	}
	i, err := strconv.Atoi(strings.Trim(name, "[]"))
	if err != nil || i < 0 || i >= len(n.members) {
		return nil
	}
	return &n.members[i]
}
