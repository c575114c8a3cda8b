package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"pgfsm/internal/visible"
)

// Bounds of every file that is read here.
const (
	MaxFileBytes = 1 << 20
	MaxDepth     = 64 // levels of nesting
	maxTokens    = 1 << 15
)

// MaxPolicyFileBytes is how long a file of risk rules, or of policies, may be: it has room for as many as are read.
const MaxPolicyFileBytes = 4 << 20

// size is how much of one file is read.
type size struct{ bytes, tokens int }

var (
	ordinary = size{MaxFileBytes, maxTokens}
	roomy    = size{MaxPolicyFileBytes, 1 << 19}
)

const initRemedy = "pgfsm init writes one to begin with"

// jsonNumber is RFC 8259's grammar of a number: the one spelling that a number may have.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// maxNumberBytes bounds the literal of a number.
const maxNumberBytes = 64

// checkText refuses what no file may hold. It returns the text with line ends as LF and the source to note faults in;
// the text is nil if a fault is noted already.
func checkText(name string, text []byte) (*source, []byte) { return checkSized(name, text, ordinary) }

func checkSized(name string, text []byte, most size) (*source, []byte) {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	src := newSource(name, text)
	src.most = most
	if len(text) > most.bytes {
		src.fault(place{}, "", "", "the file has %d bytes; at most %d are read", len(text), most.bytes)
		return src, nil
	}
	if bytes.HasPrefix(text, []byte("\uFEFF")) {
		src.fault(place{1, 1}, "", "save the file as UTF-8 without one", "the file begins with a byte order mark")
		return src, nil
	}
	at := place{1, 1}
	for rest := text; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			src.fault(at, "", "save the file as UTF-8", "byte 0x%02X is not UTF-8", rest[0])
			return src, nil
		case r == '\n':
			at = place{at.line + 1, 0}
		case r == '\t':
		case r < 0x20, r >= 0x7F && r <= 0x9F, r == 0xFEFF, r == 0x2028, r == 0x2029:
			src.fault(at, "", "remove it", "the character U+%04X cannot stand in a configuration", r)
			return src, nil
		}
		at.col++
		rest = rest[size:]
	}
	return src, text
}

// readEither reads strict JSON if the file's name ends in ".json", else strict YAML.
func readEither(src *source, text []byte, empty string) *node {
	if strings.HasSuffix(strings.ToLower(src.name), ".json") {
		return readJSON(src, text)
	}
	return readYAML(src, text, empty)
}

// readYAML reads one YAML document into nodes and notes faults in src. It returns nil if the document cannot be checked further. empty is the remedy for an
// empty file.
func readYAML(src *source, text []byte, empty string) *node {
	if before, _, found := bytes.Cut(text, []byte("\t")); found { // the YAML library drops them from plain text
		line := before[bytes.LastIndexByte(before, '\n')+1:]
		src.fault(place{bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(line) + 1}, "",
			`write spaces, or \t in double quotes`, "tabs are not accepted")
		return nil
	}
	tokens := lexer.Tokenize(string(text))
	if !checkTokens(src, tokens) {
		return nil
	}
	file, err := parseTokens(tokens)
	if err != nil {
		src.syntaxFault(err)
		return nil
	}
	for _, t := range tokens {
		if glued(t) {
			src.fault(place{t.Position.Line, t.Position.Column}, "", "write a space behind the colon",
				"to YAML, this colon is part of a text")
			return nil
		}
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			src.fault(placeOf(doc.Body), "", "keep one document in the file", "a second YAML document begins here")
			return nil
		}
		body = doc.Body
	}
	if body == nil {
		src.fault(place{1, 1}, "", empty, "the file is empty")
		return nil
	}
	r := yamlReader{src}
	return r.value(body, place{1, 1}, 1)
}

// refusedTokens are the parts of YAML with hidden meaning.
var refusedTokens = map[token.Type][2]string{
	token.AnchorType:    {"anchors (&) are not accepted", "write the value itself; quote a text that begins with &"},
	token.AliasType:     {"aliases (*) are not accepted", "write the value itself; quote a text that begins with *"},
	token.TagType:       {"tags (!) are not accepted", "remove it; quote a text that begins with !"},
	token.MergeKeyType:  {"merge keys (<<) are not accepted", "write the keys where they are used"},
	token.DirectiveType: {"directives (%) are not accepted", "remove it; quote a text that begins with %"},
	token.MappingKeyType: {"complex keys (?) are not accepted",
		"write key: value; quote a text that begins with ?"},
}

// checkTokens refuses unsupported YAML, and YAML that would make the parser recurse deeply or run long.
func checkTokens(src *source, tokens token.Tokens) bool {
	if most := src.most.tokens; len(tokens) > most {
		src.fault(place{}, "", "", "the file has %d words and signs; at most %d are read", len(tokens), most)
		return false
	}
	brackets, compact, line := 0, 0, 0
	for _, t := range tokens {
		at := place{t.Position.Line, max(1, t.Position.Column)}
		if at.line != line {
			line, compact = at.line, 0
		}
		if why, refused := refusedTokens[t.Type]; refused {
			src.fault(at, "", why[1], "%s", why[0])
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType: // the one way to open many levels on one line without brackets
			compact++
		}
		if brackets > MaxDepth || compact > MaxDepth {
			src.fault(at, "", "", "the file nests deeper than %d levels", MaxDepth)
			return false
		}
	}
	return len(src.faults) == 0
}

// glued reports a colon behind a plain key with the value right behind it, as in {a:1}.
func glued(t *token.Token) bool {
	if t.Type != token.MappingValueType || t.Prev == nil || t.Next == nil || isQuoted(t.Prev) {
		return false
	}
	return t.Next.Position.Line == t.Position.Line && t.Next.Position.Column == t.Position.Column+1
}

func isQuoted(t *token.Token) bool {
	return t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
}

// parseTokens is the YAML library's parser; a panic in it is its way to say that it cannot read a text.
func parseTokens(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, fmt.Errorf("it cannot be read")
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// syntaxFault notes the error of the YAML parser without its excerpt, which may contain a secret.
func (s *source) syntaxFault(err error) {
	at, problem := place{1, 1}, "it cannot be read"
	if y, ok := err.(yaml.Error); ok {
		problem = y.GetMessage()
		if t := y.GetToken(); t != nil && t.Position != nil {
			at = place{max(1, t.Position.Line), max(1, t.Position.Column)}
		}
	}
	remedy, line := "", ""
	if at.line <= len(s.lines) {
		line = s.lines[at.line-1]
	}
	if strings.ContainsAny(line, "{}[]@`*&!%#|>") {
		remedy = `values with signs like { } [ ] , # : @ must be quoted, as in "${env:NAME}"`
	}
	s.fault(at, "", remedy, "not YAML: %s", visible.Text(problem))
}

// placeOf is where a node begins; for a mapping without braces, where its first key does.
func placeOf(n ast.Node) place {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && m.GetToken().Type != token.MappingStartType {
		n = m.Values[0].Key
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return place{1, 1}
	}
	return place{t.Position.Line, max(1, t.Position.Column)}
}

type yamlReader struct{ src *source }

// value converts n, which stands behind the key at key. Whatever is not strict is noted and read as null.
func (r yamlReader) value(n ast.Node, key place, depth int) *node {
	at := placeOf(n)
	if depth > MaxDepth {
		r.src.fault(at, "", "", "the file nests deeper than %d levels", MaxDepth)
		return &node{at: at}
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		return r.mapping(v.Values, at, depth)
	case *ast.MappingValueNode:
		return r.mapping([]*ast.MappingValueNode{v}, placeOf(v.Key), depth)
	case *ast.SequenceNode:
		out := &node{kind: isList, at: at}
		for _, item := range v.Values {
			out.items = append(out.items, r.value(item, at, depth+1))
		}
		return out
	case *ast.LiteralNode:
		return &node{kind: isText, at: at, until: behind(v.Value.GetToken()), text: v.Value.Value}
	case *ast.NullNode:
		if n.GetToken().Type == token.ImplicitNullType {
			at = key
		}
		return r.scalar(n, at)
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return r.scalar(n, at)
	}
	return r.refuse(at, "this YAML is not accepted here", "")
}

func (r yamlReader) refuse(at place, problem, remedy string) *node {
	r.src.fault(at, "", remedy, "%s", problem)
	return &node{at: at}
}

func (r yamlReader) mapping(values []*ast.MappingValueNode, at place, depth int) *node {
	out := &node{kind: isMap, at: at}
	seen := make(map[string]place, len(values))
	for _, v := range values {
		at := placeOf(v.Key)
		key, ok := r.key(v.Key, at)
		if !ok {
			continue
		}
		if first, twice := seen[key]; twice {
			r.src.fault(at, key, "keep one of them",
				"the key %s stands twice; first at %d:%d", quote(key), first.line, first.col)
			r.src.hide(r.value(v.Value, at, depth+1))
			continue
		}
		seen[key] = at
		value := r.value(v.Value, at, depth+1)
		if value.kind != isList && value.at.line > at.line && value.at.col <= at.col {
			r.refuse(value.at, "this value is not indented behind its key", "indent it")
		}
		out.members = append(out.members, member{key, at, value})
	}
	return out
}

func (r yamlReader) key(k ast.MapKeyNode, at place) (string, bool) {
	if s, ok := k.(*ast.StringNode); ok && utf8.ValidString(s.Value) {
		if isQuoted(s.Token) || !needsQuotes(s.Value) {
			return s.Value, true
		}
	}
	r.refuse(at, "a key must be plain text", "quote it")
	return "", false
}

// needsQuotes reports whether YAML 1.2 (section 7.3.3) gives a part of a plain text another meaning. The YAML library
// lets some of that pass as text, like a value and the next key with a comma forgotten between them.
func needsQuotes(s string) bool {
	if s == "" {
		return false
	}
	return strings.ContainsRune(",[]{}#&*!|>'\"%@`", rune(s[0])) ||
		strings.ContainsRune("-?:", rune(s[0])) && (len(s) == 1 || s[1] == ' ') ||
		strings.Contains(s, ": ") || strings.HasSuffix(s, ":") || strings.Contains(s, " #")
}

// scalar reads a value by its own spelling: a plain text that is a JSON number, true, false or null is that, every
// other spelling that YAML would take for one of them is refused, and the rest is text.
func (r yamlReader) scalar(n ast.Node, at place) *node {
	t := n.GetToken()
	out := &node{kind: isText, at: at, until: behind(t), text: t.Value}
	if isQuoted(t) {
		if !utf8.ValidString(t.Value) {
			r.src.fault(at, "", "", "the text is not UTF-8 when its escapes are read")
		}
		return out
	}
	if needsQuotes(t.Value) {
		return r.refuse(at, "this text means something else in YAML", "quote it; or is a comma or a line end missing?")
	}
	switch v := t.Value; {
	case t.Type == token.ImplicitNullType, v == "null":
		return &node{kind: isNull, at: at}
	case v == "true", v == "false":
		out.kind = isBool
	case jsonNumber.MatchString(v) && len(v) <= maxNumberBytes:
		out.kind = isNumber
	default:
		if _, text := n.(*ast.StringNode); !text {
			r.src.fault(at, "", "write numbers as in JSON, true, false, null; quote it if it is text",
				"this spelling of a number, true, false or null is not accepted")
		}
	}
	return out
}

func behind(t *token.Token) place {
	if t == nil || t.Next == nil || t.Next.Position == nil {
		return place{}
	}
	return place{t.Next.Position.Line, t.Next.Position.Column}
}
