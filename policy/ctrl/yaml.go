package ctrl

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"pgfsm/policy/visible"
)

// Limits of a file.
const (
	MaxFile  = 1 << 20 // bytes
	MaxDepth = 16      // levels
)

// maxTokens bounds the work of the YAML parser. There is room for [rules.MaxPolicies] policies with everything written.
const maxTokens = 1 << 19

type nodeKind uint8

const (
	isNull nodeKind = iota
	isBool
	isNumber
	isText
	isList
	isMap
)

var kindNames = [...]string{"nothing", "true or false", "a number", "a text", "a list", "a mapping"}

// A node is one value of a file with where it stands.
type node struct {
	kind      nodeKind
	line, col int
	text      string // of a text; the literal of a number or of true and false
	items     []*node
	members   []member
}

type member struct {
	key   string
	value *node
}

// get returns the value of a key, or nil. It may be called on nil.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// A file is one file of the bundle that is being read.
type file struct {
	name   string
	faults *Faults
}

func (f *file) fault(n *node, format string, args ...any) {
	*f.faults = append(*f.faults, Fault{f.name, n.line, n.col, visible.Text(fmt.Sprintf(format, args...))})
}

// parse reads text. It returns nil if there is nothing to go on with.
func (f *file) parse(text []byte) *node {
	top := &node{}
	if len(text) > MaxFile {
		f.fault(top, "it has %d bytes, more than %d", len(text), MaxFile)
		return nil
	}
	if !utf8.Valid(text) || strings.ContainsRune(string(text), 0) {
		f.fault(top, "it is not text in UTF-8")
		return nil
	}
	if before, _, found := bytes.Cut(text, []byte("\t")); found { // the YAML library drops them from plain text
		top.line, top.col = bytes.Count(before, []byte("\n"))+1, 1
		f.fault(top, "it holds a tab; write spaces, or \\t in double quotes")
		return nil
	}
	docs, err := parseYAML(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
	if deep := (*tooDeep)(nil); errors.As(err, &deep) {
		top.line, top.col = deep.token.Position.Line, max(1, deep.token.Position.Column)
		f.fault(top, "%s", deep.what)
		return nil
	}
	if err != nil {
		if y := yaml.Error(nil); errors.As(err, &y) {
			if t := y.GetToken(); t != nil && t.Position != nil {
				top.line, top.col = t.Position.Line, max(1, t.Position.Column)
			}
			f.fault(top, "not YAML: %s", y.GetMessage())
		} else {
			f.fault(top, "not YAML: %s", err)
		}
		return nil
	}
	if len(docs) != 1 || docs[0].Body == nil {
		f.fault(top, "it must hold one YAML document")
		return nil
	}
	root := f.node(docs[0].Body, 0)
	if root.kind != isMap {
		f.fault(root, "it must be a mapping")
		return nil
	}
	return root
}

// parseYAML takes a panic of the YAML library for what it is: a file that cannot be read.
func parseYAML(text []byte) (docs []*ast.DocumentNode, err error) {
	defer func() {
		if r := recover(); r != nil {
			docs, err = nil, fmt.Errorf("%v", r)
		}
	}()
	tokens := lexer.Tokenize(string(text))
	if err := tooMuch(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, err
	}
	return file.Docs, nil
}

// A tooDeep is a place at which a file is refused before it is parsed.
type tooDeep struct {
	token *token.Token
	what  string
}

func (e *tooDeep) Error() string { return e.what }

// tooMuch refuses what would make the parser recurse deep or work long: it needs memory by the square of the depth.
// Indentation alone gets no further than the square root of [MaxFile].
func tooMuch(tokens token.Tokens) error {
	if len(tokens) > maxTokens {
		return fmt.Errorf("it has %d words and signs, more than %d", len(tokens), maxTokens)
	}
	brackets, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType: // the one way to open many levels on one line without brackets
			dashes++
		case token.MappingKeyType:
			return &tooDeep{t, "complex keys (?) are not read; write key: value"}
		}
		if brackets > MaxDepth || dashes > MaxDepth {
			return &tooDeep{t, fmt.Sprintf("it nests deeper than %d levels", MaxDepth)}
		}
	}
	return nil
}

func (f *file) node(from ast.Node, depth int) *node {
	n := &node{}
	if t := from.GetToken(); t != nil && t.Position != nil {
		n.line, n.col = t.Position.Line, max(1, t.Position.Column)
	}
	if depth > MaxDepth {
		f.fault(n, "it nests deeper than %d levels", MaxDepth)
		return n
	}
	switch v := from.(type) {
	case *ast.MappingNode:
		f.mapping(n, v.Values, depth)
	case *ast.MappingValueNode:
		f.mapping(n, []*ast.MappingValueNode{v}, depth)
	case *ast.SequenceNode:
		n.kind = isList
		for _, item := range v.Values {
			n.items = append(n.items, f.node(item, depth+1))
		}
	case *ast.LiteralNode:
		n.kind, n.text = isText, v.Value.Value
	case *ast.NullNode, *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode,
		*ast.NanNode:
		f.scalar(n, from)
	default:
		f.fault(n, "anchors, aliases, tags and merged keys are not read; write it out")
	}
	return n
}

func (f *file) mapping(n *node, values []*ast.MappingValueNode, depth int) {
	n.kind = isMap
	for i, v := range values {
		key, ok := v.Key.(*ast.StringNode)
		at := &node{line: v.Key.GetToken().Position.Line, col: max(1, v.Key.GetToken().Position.Column)}
		if i == 0 {
			n.line, n.col = at.line, at.col
		}
		switch {
		case !ok || !isQuoted(key.Token) && strange(key.Value):
			f.fault(at, "a key must be plain text")
			continue
		case n.get(key.Value) != nil:
			f.fault(at, "the key %q stands twice", key.Value)
			continue
		}
		value := f.node(v.Value, depth+1)
		if value.kind == isNull {
			value.line, value.col = at.line, at.col
		}
		n.members = append(n.members, member{key.Value, value})
	}
}

var (
	jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	// oldWords are texts in YAML 1.2, and true or false in YAML 1.1, which ctrl's reader goes by.
	oldWords = []string{"yes", "no", "on", "off", "true", "false", "null", "~"}
)

func (f *file) scalar(n *node, from ast.Node) {
	t := from.GetToken()
	n.kind, n.text = isText, t.Value
	switch _, text := from.(*ast.StringNode); {
	case isQuoted(t):
	case t.Type == token.ImplicitNullType, t.Value == "null":
		n.kind = isNull
	case t.Value == "true", t.Value == "false":
		n.kind = isBool
	case jsonNumber.MatchString(t.Value):
		n.kind = isNumber
	case !text || strange(t.Value):
		f.fault(n, "%q is read differently by different readers; quote it, or write true, false, or a number as in JSON",
			visible.Clip(t.Value, maxShown))
	}
	if !utf8.ValidString(n.text) {
		f.fault(n, "it is not UTF-8 when its escapes are read")
		n.text = ""
	}
}

// maxShown is how many bytes of the bundle a message repeats.
const maxShown = 120

func isQuoted(t *token.Token) bool {
	return t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
}

// strange reports whether plain text may be something else to another reader: a word that was a bool once, a number in
// another spelling, the sign of something that is no text.
func strange(s string) bool {
	return slices.Contains(oldWords, strings.ToLower(s)) || s == "" ||
		strings.ContainsRune(",[]{}#&*!|>'\"%@`", rune(s[0])) ||
		strings.ContainsRune("+-.0123456789", rune(s[0])) && strings.Trim(s, "+-._:0123456789abcdefinoxtzABCDEFTZ") == "" ||
		strings.Contains(s, ": ") || strings.HasSuffix(s, ":") || strings.Contains(s, " #")
}
