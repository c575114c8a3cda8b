package gates

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The answers to a plan.
const (
	permitted = "permitted"
	refused   = "refused"
	askedBack = "asked"
)

// The published limits, which the second reader applies too.
const (
	readBytes       = 64 << 10 // of a plan
	readDepth       = 64       // of its nesting
	readAnswer      = 500      // bytes of a question
	readNumberBytes = 256      // of a number literal in arguments
	readExponent    = 512      // of such a literal, either way
)

// A reading is the second reader's answer to a planner's output. The zero reading is refused.
type reading struct {
	want         string
	server, tool string
	args         map[string]any // numbers as literals
}

// read returns the right answer to a planner's output if every server is up and nothing has changed.
func read(doc []byte) reading {
	r := readShape(doc)
	if r.want == permitted && !(r.server == serverKB && r.tool == toolFetch && fetchFits(r.args) ||
		r.server == serverDesk && r.tool == toolSearch && searchFits(r.args)) {
		return reading{want: refused}
	}
	return r
}

// readShape reads the plan alone, and does not know which tools there are.
func readShape(doc []byte) reading {
	no := reading{want: refused}
	v, ok := decodeStrictly(doc, readBytes)
	top, isObject := v.(map[string]any)
	if !ok || !isObject {
		return no
	}
	switch top["type"] {
	case "final_answer":
		answer, _ := top["answer"].(string)
		if len(top) == 3 && top["needs_more_info"] == true && shows(answer) && len(answer) <= readAnswer {
			return reading{want: askedBack}
		}
	case "call_tool":
		server, _ := top["server"].(string)
		tool, _ := top["tool"].(string)
		if args, ok := top["args"].(map[string]any); ok && len(top) == 4 && server != "" && tool != "" {
			return reading{want: permitted, server: server, tool: tool, args: args}
		}
	}
	return no
}

// calls reports whether a recorded call is the plan's.
func (r *reading) calls(server, tool string, args []byte) bool {
	v, ok := decodeStrictly(args, readBytes)
	return ok && r.want == permitted && server == r.server && tool == r.tool && reflect.DeepEqual(v, any(r.args))
}

// shows reports whether a text has a visible character.
func shows(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) &&
			!unicode.Is(unicode.Variation_Selector, r) && r != '\u2800' && r != utf8.RuneError
	})
}

// fetchFits checks arguments against the schema of fetch_entry, by hand.
func fetchFits(args map[string]any) bool {
	id, ok := args["entry_id"].(string)
	digits, prefixed := strings.CutPrefix(id, "entry-")
	if !ok || !prefixed || len(digits) != 3 || strings.Trim(digits, "0123456789") != "" {
		return false
	}
	for name, v := range args { // every member is looked at, in any order
		fits := false
		switch name {
		case "entry_id":
			fits = true
		case "lang":
			fits = v == "en" || v == "de"
		case "version":
			fits = numberFits(v, 1, 9, true)
		case "weight":
			fits = numberFits(v, 0, 1, false)
		case "exact":
			_, fits = v.(bool)
		case "tags":
			fits = tagsFit(v)
		case "filter":
			fits = filterFits(v)
		}
		if !fits {
			return false
		}
	}
	return true
}

func tagsFit(v any) bool {
	tags, ok := v.([]any)
	if !ok || len(tags) > 4 {
		return false
	}
	for _, tag := range tags {
		if s, ok := tag.(string); !ok || utf8.RuneCountInString(s) > 12 {
			return false
		}
	}
	return true
}

func filterFits(v any) bool {
	filter, ok := v.(map[string]any)
	if !ok || len(filter) > 1 {
		return false
	}
	owner, has := filter["owner"]
	_, isText := owner.(string)
	return isText || !has && len(filter) == 0
}

// searchFits checks arguments against the schema of search_tickets, by hand.
func searchFits(args map[string]any) bool {
	query, ok := args["query"].(string)
	if n := utf8.RuneCountInString(query); !ok || n < 1 || n > 80 {
		return false
	}
	limit, limited := args["limit"]
	return len(args) == 1 || len(args) == 2 && limited && numberFits(limit, 1, 50, true)
}

// numberFits compares exactly.
func numberFits(v any, least, most int64, whole bool) bool {
	literal, ok := v.(json.Number)
	if !ok || len(literal) > readNumberBytes {
		return false
	}
	if at := strings.IndexAny(string(literal), "eE"); at >= 0 {
		exponent, err := strconv.Atoi(string(literal[at+1:]))
		if err != nil || exponent > readExponent || exponent < -readExponent {
			return false
		}
	}
	n, ok := new(big.Rat).SetString(string(literal))
	return ok && (!whole || n.IsInt()) && n.Cmp(big.NewRat(least, 1)) >= 0 && n.Cmp(big.NewRat(most, 1)) <= 0
}

// decodeStrictly reads one JSON value with the standard library's lenient decoder, and checks by hand what makes JSON strict:
// valid UTF-8, no lone surrogates, no duplicate members, bounded size and depth. The decoder keeps the last of two members of
// one name, so a value with duplicates has fewer members than the text has names.
func decodeStrictly(doc []byte, size int) (v any, ok bool) {
	if len(doc) > size || !utf8.Valid(doc) || !json.Valid(doc) {
		return nil, false
	}
	names, deep, whole := outline(doc)
	if !whole || deep > readDepth {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	if dec.Decode(&v) != nil || members(v) != names {
		return nil, false
	}
	return v, true
}

// members counts the members of all objects in a value.
func members(v any) (n int) {
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			n += members(element)
		}
	case map[string]any:
		for _, member := range v { // a sum, in any order
			n += 1 + members(member)
		}
	}
	return n
}

// outline scans a document that is valid JSON. It counts the members and the depth, and reports whether every escaped surrogate
// has its other half.
func outline(doc []byte) (names, deep int, whole bool) {
	depth, inText := 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == '"':
			inText = !inText
		case inText && c == '\\':
			i++
			if doc[i] != 'u' {
				continue
			}
			unit := escaped(doc, i-1)
			i += 4
			if unit < 0xD800 || unit > 0xDFFF {
				continue
			}
			if low := escaped(doc, i+1); unit > 0xDBFF || low < 0xDC00 || low > 0xDFFF {
				return names, deep, false
			}
			i += 6
		case inText:
		case c == ':':
			names++
		case c == '{' || c == '[':
			depth++
			deep = max(deep, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return names, deep, true
}

// escaped is the code unit of the escape \uXXXX at i, or 0 if there is none.
func escaped(doc []byte, i int) (unit rune) {
	if i+6 > len(doc) || doc[i] != '\\' || doc[i+1] != 'u' {
		return 0
	}
	for _, c := range doc[i+2 : i+6] {
		unit = unit<<4 | rune(strings.IndexByte("0123456789abcdef", c|0x20))
	}
	return unit
}
