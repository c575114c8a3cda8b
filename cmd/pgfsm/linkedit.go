package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
	"pgfsm/policy/canonical"
)

// jsonSpace is the white space of JSON. Other white space is none to a client.
const jsonSpace = " \t\r\n"

// What became of an entry.
const (
	linkNone     = "none" // it is there already
	linkAdded    = "added"
	linkReplaced = "replaced"
)

// A linkEdit is a client's file with the entry in it. Every byte besides the entry is as it was.
type linkEdit struct {
	text   []byte
	change string
	line   int // at which the entry begins, from 1
}

// A linkSpot is one member of an object in a file, by offsets into the file.
type linkSpot struct {
	name            string
	nameAt, at, end int // of the name, of the value, behind the value
}

// A linkObject is an object in a file: at is the offset of its first brace, end is behind its last.
type linkObject struct {
	at, end int
	members []linkSpot
}

func (o *linkObject) find(name string) *linkSpot {
	for i := range o.members {
		if o.members[i].name == name {
			return &o.members[i]
		}
	}
	return nil
}

// spliceEntry puts an entry into a client's file, under a name below a key. The errors do not repeat what the file says:
// secrets may stand anywhere in it.
func spliceEntry(text []byte, comments bool, key, name string, entry jsontext.Value) (linkEdit, error) {
	plain := text
	if comments {
		plain = withoutComments(text)
	}
	style := linkStyle{text: text, eol: "\n", unit: "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		style.eol = "\r\n"
	}
	if len(bytes.Trim(plain, jsonSpace)) == 0 { // empty, or comments alone
		before := bytes.Trim(text, jsonSpace)
		if len(before) > 0 {
			before = slices.Concat(before, []byte(style.eol))
		}
		inner := style.unit + style.unit
		head := fmt.Sprintf("%s{%s%s%s: {%s%s", before, style.eol, style.unit, wire.Quote(key), style.eol, inner)
		shown := style.member(name, entry, inner, true)
		return finished([]byte(head+shown+style.eol+style.unit+"}"+style.eol+"}"+style.eol), linkAdded, len(head)), nil
	}
	root, err := readLinkObject(plain, 0, len(plain))
	if err != nil {
		return linkEdit{}, err
	}
	style.lines = bytes.IndexByte(text[root.at:root.end], '\n') >= 0
	style.unit = style.unitOf(root)
	spot := root.find(key)
	if spot == nil {
		whole := jsontext.Value(slices.Concat([]byte("{"), wire.Quote(name), []byte(":"), entry, []byte("}")))
		return style.added(root, key, whole), nil
	}
	if plain[spot.at] != '{' {
		return linkEdit{}, linkFault(text, spot.at, fmt.Sprintf("%q is not an object", key))
	}
	inside, err := readLinkObject(plain, spot.at, spot.end)
	if err != nil {
		return linkEdit{}, err
	}
	if there := inside.find(name); there != nil {
		return style.replaced(plain, there, entry), nil
	}
	return style.added(inside, name, entry), nil
}

// finished is an edit whose entry begins at an offset.
func finished(text []byte, change string, at int) linkEdit {
	return linkEdit{text: text, change: change, line: 1 + bytes.Count(text[:at], []byte("\n"))}
}

// A linkStyle is how a file is laid out.
type linkStyle struct {
	text  []byte
	eol   string
	unit  string // of indentation
	lines bool   // the file has more than one line
}

// unitOf is what a member of the file's object is indented by.
func (s *linkStyle) unitOf(root linkObject) string {
	if len(root.members) == 0 {
		return s.unit
	}
	outer, _ := s.indent(root.at)
	inner, own := s.indent(root.members[0].nameAt)
	if unit, deeper := strings.CutPrefix(inner, outer); own && deeper && unit != "" {
		return unit
	}
	return s.unit
}

// indent is what the line of an offset begins with, and whether nothing else stands before the offset.
func (s *linkStyle) indent(at int) (blank string, own bool) {
	line := s.text[bytes.LastIndexByte(s.text[:at], '\n')+1 : at]
	rest := bytes.TrimLeft(line, " \t")
	return string(line[:len(line)-len(rest)]), len(rest) == 0
}

// member writes a member, over lines that begin with an indentation, or in one line.
func (s *linkStyle) member(name string, value jsontext.Value, indent string, lines bool) string {
	return string(wire.Quote(name)) + ": " + s.value(value, indent, lines)
}

func (s *linkStyle) value(value jsontext.Value, indent string, lines bool) string {
	v := value.Clone()
	options := []jsontext.Options{jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true)}
	if lines {
		options = []jsontext.Options{jsontext.WithIndentPrefix(indent), jsontext.WithIndent(s.unit)}
	}
	if err := v.Format(options...); err != nil {
		panic("the entry that was made is no JSON: " + err.Error())
	}
	return strings.ReplaceAll(string(v), "\n", s.eol)
}

// added puts a member behind the last of an object.
func (s *linkStyle) added(o linkObject, name string, value jsontext.Value) linkEdit {
	if len(o.members) > 0 {
		last := o.members[len(o.members)-1]
		indent, own := s.indent(last.nameAt)
		shown := s.member(name, value, indent, own)
		if !own {
			return s.spliced(last.end, last.end, ", ", shown, "")
		}
		between := s.eol + indent
		if remark, comma := s.remark(last.end); remark > 0 && comma {
			return s.spliced(last.end+remark, last.end+remark, between, shown, ",")
		} else if remark > 0 { // the comma belongs before the comment
			tail := string(s.text[last.end : last.end+remark])
			return s.spliced(last.end, last.end+remark, ","+tail+between, shown, "")
		}
		return s.spliced(last.end, last.end, ","+between, shown, "")
	}
	open, last := o.at+1, o.end-1
	blank := len(bytes.Trim(s.text[open:last], jsonSpace)) == 0
	if !s.lines && blank {
		return s.spliced(open, last, "", s.member(name, value, "", false), "")
	}
	outer, _ := s.indent(o.at)
	before, shown := s.eol+outer+s.unit, s.member(name, value, outer+s.unit, true)
	if !blank { // a comment, which stays
		return s.spliced(open, open, before, shown, "")
	}
	return s.spliced(open, last, before, shown, s.eol+outer)
}

// remark is the length of what stands behind a member up to the end of its line, if that is a comment to the line's end, and
// whether a comma stands before that.
func (s *linkStyle) remark(end int) (length int, comma bool) {
	line := s.text[end : end+lineLength(s.text[end:])]
	rest := bytes.TrimLeft(line, " \t")
	rest, comma = bytes.CutPrefix(rest, []byte(","))
	if !bytes.HasPrefix(bytes.TrimLeft(rest, " \t"), []byte("//")) {
		return 0, false
	}
	return len(line), comma
}

// spliced replaces what stands from one offset to another.
func (s *linkStyle) spliced(from, to int, before, shown, behind string) linkEdit {
	out := slices.Concat(s.text[:from], []byte(before+shown+behind), s.text[to:])
	return finished(out, linkAdded, from+len(before))
}

// replaced puts another value into the place of an entry's, unless it says the same.
func (s *linkStyle) replaced(plain []byte, there *linkSpot, value jsontext.Value) linkEdit {
	was, err := canonical.JSON(plain[there.at:there.end])
	if now, failed := canonical.JSON(value); err == nil && failed == nil && bytes.Equal(was, now) {
		return finished(s.text, linkNone, there.nameAt)
	}
	indent, own := s.indent(there.nameAt)
	lines := own || bytes.IndexByte(s.text[there.at:there.end], '\n') >= 0
	out := slices.Concat(s.text[:there.at], []byte(s.value(value, indent, lines)), s.text[there.end:])
	return finished(out, linkReplaced, there.nameAt)
}

// readLinkObject reads the one object that stands from one offset to another, strictly: no name twice at any depth, no text
// behind it.
func readLinkObject(doc []byte, from, to int) (o linkObject, err error) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc[from:to:to]))
	at := func() int { return from + int(dec.InputOffset()) }
	faulty := func(err error) error {
		var syntax *jsontext.SyntacticError
		switch {
		case !errors.As(err, &syntax):
			return linkFault(doc, at(), "the JSON ends too early")
		case errors.Is(err, jsontext.ErrDuplicateName):
			return linkFault(doc, from+int(syntax.ByteOffset), "a name stands twice")
		}
		return linkFault(doc, from+int(syntax.ByteOffset), "this is not JSON")
	}
	if kind := dec.PeekKind(); kind != '{' && kind != 0 {
		return o, linkFault(doc, from, "the file is not a JSON object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return o, faulty(err)
	}
	o.at = at() - 1
	for dec.PeekKind() != '}' {
		name, err := dec.ReadValue()
		if err != nil {
			return o, faulty(err)
		}
		m := linkSpot{nameAt: at() - len(name)}
		if m.name, err = wire.Text(name); err != nil {
			return o, faulty(err)
		}
		value, err := dec.ReadValue()
		if err != nil {
			return o, faulty(err)
		}
		m.at, m.end = at()-len(value), at()
		o.members = append(o.members, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return o, faulty(err)
	}
	o.end = at()
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return o, linkFault(doc, o.end, "text stands behind the JSON object")
	}
	return o, nil
}

// A linkFaultError is what is wrong with a client's file, and where.
type linkFaultError struct {
	line, col int // from 1; columns in characters
	problem   string
}

func (e *linkFaultError) Error() string { return fmt.Sprintf("%d:%d: %s", e.line, e.col, e.problem) }

func linkFault(doc []byte, at int, problem string) error {
	at = min(max(0, at), len(doc))
	start := bytes.LastIndexByte(doc[:at], '\n') + 1
	return &linkFaultError{1 + bytes.Count(doc[:start], []byte("\n")), 1 + utf8.RuneCount(doc[start:at]), problem}
}

// withoutComments is a text with spaces in the place of comments and of a comma behind the last member or item, so that
// what is left is JSON with every byte where it was. What is broken stays broken.
func withoutComments(text []byte) []byte {
	out := bytes.Clone(text)
	comma, before := -1, byte('{') // a comma with nothing behind it yet; the last byte that is no space
	for i := 0; i < len(out); i++ {
		c := out[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case c == '/' && i+1 < len(out) && (out[i+1] == '/' || out[i+1] == '*'):
			end := commentEnd(out, i)
			if end < 0 {
				return out
			}
			for ; i < end; i++ {
				if out[i] != '\n' && out[i] != '\r' {
					out[i] = ' '
				}
			}
			i--
			continue
		case c == '"':
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
			comma = -1
		case c == ',':
			if comma = i; before == '{' || before == '[' || before == ',' || before == ':' {
				comma = -1
			}
		case (c == '}' || c == ']') && comma >= 0:
			out[comma], comma = ' ', -1
		default:
			comma = -1
		}
		before = c
	}
	return out
}

// lineLength is the length of a text up to where its line ends, as those who read comments see it.
func lineLength(text []byte) int {
	if n := bytes.IndexAny(text, "\r\n"); n >= 0 {
		return n
	}
	return len(text)
}

// commentEnd is the offset behind a comment; negative if it never ends.
func commentEnd(text []byte, at int) int {
	if text[at+1] == '/' {
		return at + lineLength(text[at:])
	}
	if n := bytes.Index(text[at+2:], []byte("*/")); n >= 0 {
		return at + 2 + n + len("*/")
	}
	return -1
}
