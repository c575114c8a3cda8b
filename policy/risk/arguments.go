package risk

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/policy/condition"
)

// A node is one value of the arguments. Numbers keep their literal, which is why conditions' view of the arguments does
// not serve here. The zero node is a value that cannot be used.
type node struct {
	kind  jsontext.Kind
	text  string // of a string, decoded; of a number, the literal
	items []node // of a list or an object
	names []string
	index map[string]int // of an object with many members
	size  int64          // the bytes that it takes in the arguments, with what stands before it
	dear  bool           // it is a number that is dear to compare, or holds one
}

// indexedFrom is how many members make an object worth an index.
const indexedFrom = 32

// readArgs reads the arguments. What is not one strict JSON object cannot be used.
func readArgs(args []byte) node {
	if len(args) > condition.MaxArgs || canonical.CheckDepth(args, condition.MaxArgsDepth) != nil {
		return node{}
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(args))
	if dec.PeekKind() != '{' {
		return node{}
	}
	n, err := readNode(dec)
	if err != nil {
		return node{}
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return node{}
	}
	return n
}

func readNode(dec *jsontext.Decoder) (node, error) {
	begin := dec.InputOffset()
	token, err := dec.ReadToken()
	if err != nil {
		return node{}, err
	}
	n := node{kind: token.Kind()}
	switch n.kind {
	case '"', '0':
		n.text = token.String()
		n.dear = n.kind == '0' && dearNumber(n.text)
	case '{', '[':
		err = n.readItems(dec)
	}
	n.size = dec.InputOffset() - begin
	return n, err
}

func (n *node) readItems(dec *jsontext.Decoder) error {
	for dec.PeekKind() != '}' && dec.PeekKind() != ']' {
		if n.kind == '{' {
			name, err := dec.ReadToken()
			if err != nil {
				return err
			}
			n.names = append(n.names, name.String())
		}
		item, err := readNode(dec)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
		n.dear = n.dear || item.dear
	}
	if len(n.names) >= indexedFrom {
		n.index = make(map[string]int, len(n.names))
		for i, name := range n.names {
			n.index[name] = i
		}
	}
	_, err := dec.ReadToken()
	return err
}

// presence is how a place was found. The zero presence is the one that nothing is known of.
type presence uint8

const (
	unreachable presence = iota // it would be inside of something that has no inside
	missing
	there
)

// find follows a path from n.
func (n *node) find(path []string) (*node, presence) {
	for _, step := range path {
		i := -1
		switch n.kind {
		case '{':
			i = n.member(step)
		case '[':
			var ok bool
			if i, ok = listIndex(step); !ok {
				return nil, unreachable
			}
		default:
			return nil, unreachable
		}
		if i < 0 || i >= len(n.items) {
			return nil, missing
		}
		n = &n.items[i]
	}
	return n, there
}

func (n *node) member(name string) int {
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range n.names {
		if n.names[i] == name {
			return i
		}
	}
	return -1
}

// listIndex reads an index as RFC 6901, section 4, spells it. One that is too large for any list is an index too.
func listIndex(step string) (int, bool) {
	if step == "" || strings.Trim(step, "0123456789") != "" || len(step) > 1 && step[0] == '0' {
		return 0, false
	}
	i, err := strconv.Atoi(step)
	if err != nil {
		return -1, true
	}
	return i, true
}

// splitPath returns the steps of a predicate's path.
func splitPath(path string) ([]string, error) {
	switch {
	case path == "":
		return nil, errors.New("it is empty; name an argument, or a place in the arguments as a JSON pointer")
	case len(path) > MaxPathBytes:
		return nil, tooLong(len(path), MaxPathBytes)
	case path[0] != '/':
		return []string{path}, nil
	}
	pointer := jsontext.Pointer(path)
	if !pointer.IsValid() {
		return nil, errors.New("it is not a JSON pointer: behind ~ stands 0 or 1")
	}
	var steps []string
	for step := range pointer.Tokens() {
		steps = append(steps, step)
	}
	return steps, nil
}
