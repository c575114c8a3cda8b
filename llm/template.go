package llm

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// template is a route's args, compiled: canonical JSON text that is sent as it is, and between it string values whose
// content comes from the match.
type template struct {
	pieces []piece
	tail   []byte // the JSON text behind the last piece
}

// piece is JSON text and the string value that follows it.
type piece struct {
	before []byte
	value  []part
}

// part is literal text and, where group is not negative, the group that follows it. The text is decoded, not JSON.
type part struct {
	literal string
	group   int
}

const noGroup = -1

// compileTemplate reads args, which must be one strict JSON object, or absent for {}. Groups are those of re.
func compileTemplate(args []byte, re *regexp.Regexp) (*template, error) {
	if len(args) == 0 {
		args = []byte("{}")
	}
	doc, err := canonical.JSON(args)
	if err != nil {
		return nil, fmt.Errorf("args: %w", err)
	}
	if doc[0] != '{' {
		return nil, errors.New("args must be a JSON object")
	}
	var t template
	copied := 0
	dec := jsontext.NewDecoder(bytes.NewReader(doc))
	for int(dec.InputOffset()) < len(doc) {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, fmt.Errorf("args: %w", canonical.Explain(err))
		}
		if tok.Kind() != '"' || !strings.Contains(tok.String(), "${") {
			continue
		}
		pointer := dec.StackPointer()
		if isName(dec) {
			return nil, fmt.Errorf("args, at %s: a group can only stand in a value, not in a member's name", pointer)
		}
		value, err := parseValue(tok.String(), re)
		if err != nil {
			return nil, fmt.Errorf("args, at %s: %w", pointer, err)
		}
		end := int(dec.InputOffset())
		raw, err := jsontext.AppendQuote(nil, tok.String())
		if err != nil {
			return nil, fmt.Errorf("args, at %s: %w", pointer, err)
		}
		// Canonical JSON has one spelling of a string, so the token is as long as its content quoted again.
		t.pieces = append(t.pieces, piece{doc[copied : end-len(raw)], value})
		copied = end
	}
	t.tail = doc[copied:]
	return &t, nil
}

// isName reports whether the string just read was a member's name: in an object names are the odd ones.
func isName(dec *jsontext.Decoder) bool {
	kind, length := dec.StackIndex(dec.StackDepth())
	return kind == '{' && length%2 == 1
}

// parseValue splits the content of a string at its placeholders.
func parseValue(s string, re *regexp.Regexp) ([]part, error) {
	var parts []part
	var literal strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			literal.WriteString(s)
			return append(parts, part{literal.String(), noGroup}), nil
		}
		if i > 0 && s[i-1] == '$' {
			literal.WriteString(s[:i-1] + "${")
			s = s[i+len("${"):]
			continue
		}
		name, rest, closed := strings.Cut(s[i+len("${"):], "}")
		if !closed {
			return nil, errors.New("${ is never closed; $${ stands for the two characters")
		}
		group, err := groupOf(name, re)
		if err != nil {
			return nil, err
		}
		literal.WriteString(s[:i])
		parts = append(parts, part{literal.String(), group})
		literal.Reset()
		s = rest
	}
}

// groupOf finds a group by number or name.
func groupOf(name string, re *regexp.Regexp) (int, error) {
	if n, err := strconv.ParseUint(name, 10, 16); err == nil {
		if int(n) > re.NumSubexp() {
			return 0, fmt.Errorf("${%s}: the pattern has %d groups", name, re.NumSubexp())
		}
		return int(n), nil
	}
	// SubexpIndex would give "" and the unnamed groups a meaning.
	if n := re.SubexpIndex(name); name != "" && n >= 0 {
		return n, nil
	}
	return 0, fmt.Errorf("${%s}: the pattern has no group of that name", name)
}

// fill puts the groups of a match into the string values and returns one JSON object in canonical form. match is as of
// FindStringSubmatchIndex over request, which must be valid UTF-8. ok is false when a group that is used is absent or
// empty.
func (t *template) fill(request string, match []int) (args []byte, ok bool) {
	var value []byte
	for _, p := range t.pieces {
		value = value[:0]
		for _, part := range p.value {
			value = append(value, part.literal...)
			if part.group == noGroup {
				continue
			}
			start, end := match[2*part.group], match[2*part.group+1]
			if start == end { // both are -1 when the group took no part
				return nil, false
			}
			value = append(value, request[start:end]...)
		}
		quoted, err := jsontext.AppendQuote(append(args, p.before...), value)
		if err != nil {
			return nil, false
		}
		args = quoted
	}
	return append(args, t.tail...), true
}
