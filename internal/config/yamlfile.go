package config

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"pgfsm/internal/visible"
)

// Bounds of the files that this package reads.
const (
	MaxFileBytes = 1 << 20
	MaxDepth     = 64 // levels of nesting

	// Bound of a file of risk rules or policies: room for the largest accepted number.
	MaxPolicyFileBytes = 4 << 20
	MaxTestsFileBytes  = 8 << 20 // bound of a file of policy tests, likewise
)

// jsonNumber matches a number in the grammar of RFC 8259, the only accepted spelling.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// maxNumberBytes bounds the literal of a number.
const maxNumberBytes = 64

// openFile refuses a text that is too long or has forbidden characters. It returns the text with
// line ends as LF; nil if there is a fault.
func openFile(name string, text []byte, most int) (*file, []byte) {
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	f := &file{name: name, lines: strings.Split(string(text), "\n")}
	if len(text) > most {
		f.addFaultAt(place{}, "", "", "the file has %d bytes; at most %d are read", len(text), most)
		return f, nil
	}
	if bytes.HasPrefix(text, []byte("\uFEFF")) {
		f.addFaultAt(place{1, 1}, "", "save the file as UTF-8 without one", "the file begins with a byte order mark")
		return f, nil
	}

	position := place{1, 1}
	for i, r := range string(text) {
		switch {
		case r == utf8.RuneError && !bytes.HasPrefix(text[i:], []byte("\uFFFD")):
			f.addFaultAt(position, "", "save the file as UTF-8", "byte 0x%02X is not UTF-8", text[i])
			return f, nil
		case r == '\n':
			position = place{position.line + 1, 0}
		case r == '\t':
		case r < 0x20, r >= 0x7F && r <= 0x9F, r == 0xFEFF, r == 0x2028, r == 0x2029:
			f.addFaultAt(position, "", "remove it", "the character U+%04X is not allowed in a configuration", r)
			return f, nil
		}
		position.col++
	}

	return f, text
}

// readYAML reads one YAML document. It returns nil if there is a fault. hint is the remedy for an
// empty file.
func (f *file) readYAML(text []byte, hint string) *node {
	for i, line := range f.lines {
		// YAML gives tabs a meaning in some places only.
		if prefix, _, found := strings.Cut(line, "\t"); found {
			f.addFaultAt(place{i + 1, utf8.RuneCountInString(prefix) + 1}, "", `write spaces, or \t in double quotes`, "tabs are not accepted")
			return nil
		}
		if strings.HasPrefix(line, "%") {
			f.addFaultAt(place{i + 1, 1}, "", "remove it; quote a text that begins with %",
				"directives (%%) are not accepted")
			return nil
		}
	}

	docs, err := parseYAML(text)
	switch {
	case err != nil:
		f.yamlFault(err)
		return nil
	case len(docs) == 0 || len(docs) == 1 && docs[0].ShortTag() == "!!null" && docs[0].Value == "":
		f.addFaultAt(place{1, 1}, "", hint, "the file is empty")
		return nil
	case len(docs) > 1:
		f.addFaultAt(place{docs[1].Line, docs[1].Column}, "", "keep one document in the file",
			"a second YAML document begins here")
		return nil
	}

	r := yamlReader{f}
	root := r.convertNode(docs[0], place{1, 1}, 1)
	if len(f.faults) > 0 {
		return nil
	}

	return root
}

// parseYAML returns the documents of a text. It turns a panic of the library into an error: a
// reload must not end the gateway.
func parseYAML(text []byte) (docs []*yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("it cannot be read")
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return docs, nil
		} else if err != nil {
			return nil, err
		}
		docs = append(docs, doc.Content[0])
	}
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// fromZero is the prefix of the errors for which the YAML library counts lines from 0.
const fromZero = "did not find expected "

// yamlFault notes an error of the YAML library, which knows only the line.
func (f *file) yamlFault(err error) {
	position, line := place{1, 1}, ""
	found := yamlLine.FindStringSubmatch(err.Error())
	problem := yamlLine.ReplaceAllString(err.Error(), "")
	if n, err := strconv.Atoi(found[1]); err == nil {
		position.line = n
		if strings.HasPrefix(problem, fromZero) {
			position.line++
		}
	}
	// The fault may be at the end of the file.
	for position.line = min(position.line, len(f.lines)); position.line > 1 && f.lines[position.line-1] == ""; {
		position.line--
	}
	line = f.lines[position.line-1]
	remedy := `indent values below their key, and quote a text with a colon and a space in it`
	if strings.ContainsAny(line, "{}[]@`*&!%#|>") {
		remedy = `values with signs like { } [ ] , # : @ must be quoted, as in "${env:NAME}"`
	}
	f.addFaultAt(position, "", remedy, "not YAML: %s", visible.Text(problem))
}

type yamlReader struct{ file *file }

// convertNode converts n, whose key is at key. It notes a fault where n is not strict YAML, and
// reads that part as null.
func (r *yamlReader) convertNode(n *yaml.Node, key place, depth int) *node {
	out := &node{kind: isNull, at: place{n.Line, n.Column}}
	if n.Kind == yaml.ScalarNode && n.Style == 0 && n.Value == "" {
		out.at = key
	}

	if depth > MaxDepth {
		r.file.addFaultAt(out.at, "", "", "the file nests deeper than %d levels", MaxDepth)
		return out
	}

	switch {
	case n.Kind == yaml.AliasNode:
		return r.refuse(out, "write the value itself; quote a text that begins with *", "aliases (*) are not accepted")
	case n.Anchor != "":
		return r.refuse(out, "write the value itself; quote a text that begins with &", "anchors (&) are not accepted")
	case n.Style&yaml.TaggedStyle != 0:
		return r.refuse(out, "remove it; quote a text that begins with !", "tags (!) are not accepted")
	}

	switch n.Kind {
	case yaml.MappingNode:
		out.kind = isMap
		r.convertMapping(n, out, depth)
	case yaml.SequenceNode:
		out.kind = isList
		for _, item := range n.Content {
			value := r.convertNode(item, out.at, depth+1)
			out.members = append(out.members, member{"", value.at, value})
		}
	default:
		r.convertScalar(n, out)
	}

	return out
}

func (r *yamlReader) refuse(out *node, remedy, problem string) *node {
	r.file.addFaultAt(out.at, "", remedy, "%s", problem)
	return out
}

func (r *yamlReader) convertMapping(n *yaml.Node, out *node, depth int) {
	places := make(map[string]place, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := r.convertNode(n.Content[i], out.at, depth+1)
		value := r.convertNode(n.Content[i+1], key.at, depth+1)
		switch {
		case n.Content[i].ShortTag() == "!!merge":
			r.refuse(key, "write the keys where they are used", "merge keys (<<) are not accepted")
		case strings.HasSuffix(strings.TrimRight(string([]rune(r.file.lines[key.at.line-1])[:key.at.col-1]), " "), "?"):
			r.refuse(key, "write key: value; quote a text that begins with ?", "complex keys (?) are not accepted")
		case key.kind != isText:
			r.refuse(key, "quote it", "a key must be plain text")
		case r.file.checkUnseen(places, key.text, key.at):
			out.members = append(out.members, member{key.text, key.at, value})
		}
	}
}

// convertScalar reads a value by its spelling. A plain JSON number, true, false or null has that
// type. scalar refuses every other spelling that YAML reads as one of these. The rest is text.
func (r *yamlReader) convertScalar(n *yaml.Node, out *node) {
	out.kind, out.text = isText, n.Value
	if n.Style != 0 {
		if !utf8.ValidString(n.Value) {
			r.refuse(out, "", "the text is not UTF-8 when its escapes are read")
			out.kind = isNull
		}
		return
	}
	switch tag := n.ShortTag(); {
	case n.Value == "", n.Value == "null":
		out.kind, out.text = isNull, ""
	case n.Value == "true", n.Value == "false":
		out.kind = isBool
	case jsonNumber.MatchString(n.Value) && len(n.Value) <= maxNumberBytes:
		out.kind = isNumber
	case tag == "!!int", tag == "!!float", tag == "!!bool", tag == "!!null":
		r.refuse(out, "write numbers as in JSON, true, false, null; quote it if it is text",
			"this spelling of a number, true, false or null is not accepted")
	}
}
