package config

import (
	"path/filepath"
	"strconv"
	"strings"
)

// A File is one valid configuration file, with every default filled in, and with the places of its values.
type File struct {
	src  *source
	root *node
}

// Parse reads a configuration. It checks only the file, not the files that it names; see [Load]. name is the file's name in messages, and the base of
// relative paths. The error is of type [Errors].
func Parse(name string, text []byte) (*File, error) {
	src, text := checkText(name, text)
	if len(src.faults) > 0 {
		return nil, src.err()
	}
	root := readYAML(src, text, initRemedy)
	src.judge(root, configuration)
	if err := src.err(); err != nil {
		return nil, err
	}
	complete(root, configuration)
	return &File{src, root}, nil
}

// complete writes the initial values into n for missing keys.
func complete(n *node, s *shape) {
	for _, m := range n.members {
		if s.form == table {
			complete(m.value, s.each)
		}
	}
	for _, item := range n.items {
		if s.form == list {
			complete(item, s.each)
		}
	}
	if s.form != object {
		return
	}
	for _, k := range s.keys {
		if n.member(k.name) == nil {
			if v := k.start(n.at); v != nil {
				n.members = append(n.members, member{k.name, n.at, v})
			}
		}
		if v := n.get(k.name); v != nil {
			complete(v, k.shape)
		}
	}
}

// start is the value of a key that is not written, or nil if it has none.
func (k *key) start(at place) *node {
	switch {
	case k.shape.form == object && !k.required && !k.absent, k.shape.form == anything:
		return &node{kind: isMap, at: at}
	case k.initial == "":
		return nil
	case k.shape.form == integer:
		return &node{kind: isNumber, at: at, text: k.initial}
	case k.shape.form == boolean:
		return &node{kind: isBool, at: at, text: k.initial}
	case k.shape.form == list:
		all := &node{kind: isList, at: at}
		for _, word := range initialWords(k.initial) {
			all.items = append(all.items, &node{kind: isText, at: at, text: word})
		}
		return all
	}
	return &node{kind: isText, at: at, text: k.initial}
}

// initialWords are the words of a list as a default writes it: plain ones, in brackets.
func initialWords(initial string) []string { return strings.Split(strings.Trim(initial, "[]"), ", ") }

// resolve returns the path that a path in the file means.
func (f *File) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.src.name), path)
}

// integer returns the number of a key that was judged to be one.
func (n *node) integer(key string) int {
	v, err := strconv.Atoi(n.get(key).text)
	if err != nil {
		panic("settings: " + key + " was not judged: " + err.Error())
	}
	return v
}

// millis returns the duration of a key that was judged to be one.
func (n *node) millis(key string) int64 {
	ms, ok := parseDuration(n.get(key).text)
	if !ok {
		panic("settings: " + key + " was not judged")
	}
	return ms
}
