package config

import (
	"github.com/go-json-experiment/json/jsontext"
)

// place is a position in a source: line and column, both from 1, columns in characters. The zero place is nowhere.
type place struct{ line, col int }

type kind uint8

const (
	isNull kind = iota
	isBool
	isNumber
	isText
	isList
	isMap
)

// node is one value of a YAML or JSON file, with its place.
type node struct {
	kind    kind
	at      place
	until   place  // where the token behind a scalar begins; zero at the end of the file
	text    string // content of a text, literal of a number or boolean
	items   []*node
	members []member // in the order of the file
}

type member struct {
	key   string
	at    place
	value *node
}

// get returns the value of a key, or nil. It may be called on nil.
func (n *node) get(key string) *node {
	if m := n.member(key); m != nil {
		return m.value
	}
	return nil
}

func (n *node) member(key string) *member {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].key == key {
			return &n.members[i]
		}
	}
	return nil
}

// str returns the text of a key's value; empty when there is none.
func (n *node) str(key string) string {
	if v := n.get(key); v != nil && v.kind == isText {
		return v.text
	}
	return ""
}

// list returns the items of a key's value.
func (n *node) list(key string) []*node {
	if v := n.get(key); v != nil {
		return v.items
	}
	return nil
}

// fields returns the members of a key's value.
func (n *node) fields(key string) []member {
	if v := n.get(key); v != nil {
		return v.members
	}
	return nil
}

// texts returns the texts of a key's list.
func (n *node) texts(key string) []string {
	var out []string
	for _, item := range n.list(key) {
		out = append(out, item.text)
	}
	return out
}

// leaves calls f with every scalar below n, and n itself if it is one.
func (n *node) leaves(f func(*node)) {
	for _, item := range n.items {
		item.leaves(f)
	}
	for _, m := range n.members {
		m.value.leaves(f)
	}
	if n.kind != isList && n.kind != isMap {
		f(n)
	}
}

// writeJSON writes n as JSON, members in the order of the file, numbers by their literal.
func (n *node) writeJSON(enc *jsontext.Encoder) error {
	switch n.kind {
	case isNull:
		return enc.WriteToken(jsontext.Null)
	case isText:
		return enc.WriteToken(jsontext.String(n.text))
	case isBool, isNumber:
		return enc.WriteValue(jsontext.Value(n.text))
	case isList:
		if err := enc.WriteToken(jsontext.BeginArray); err != nil {
			return err
		}
		for _, item := range n.items {
			if err := item.writeJSON(enc); err != nil {
				return err
			}
		}
		return enc.WriteToken(jsontext.EndArray)
	}
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range n.members {
		if err := enc.WriteToken(jsontext.String(m.key)); err != nil {
			return err
		}
		if err := m.value.writeJSON(enc); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}
