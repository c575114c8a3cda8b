package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
	"github.com/go-json-experiment/json/jsontext"
)

// form is the kind of a value.
type form string

const (
	object   form = "object"   // keys that are known
	table    form = "table"    // keys that the operator chooses
	list     form = "list"     //
	text     form = "text"     //
	integer  form = "integer"  //
	boolean  form = "boolean"  //
	duration form = "duration" // text like 10s; the node's text becomes whole milliseconds
	anything form = "JSON object"
	anyJSON  form = "JSON value"
)

// shape says which values are accepted at one place.
type shape struct {
	form   form
	keys   []key              // of an object
	name   *shape             // of a table's keys
	each   *shape             // of a table's values, of a list's items
	alt    *shape             // what a list may be instead: a table, or a text; what a text may be instead: an object
	min    int64              // integer, duration in ms; items of a list, entries of a table
	max    int64              // the same; bytes of a text, maxTextBytes if 0
	enum   []string           // of a text
	match  *regexp.Regexp     // of a text; also an ECMA 262 pattern, for the schema
	empty  bool               // a text may be empty
	lines  bool               // a text may hold line ends and tabs
	secret bool               // values below are secrets, and may hold references
	unique string             // of a list: the key whose value is unique among items; "." the item itself
	what   string             // what a text is, or what a list's items and a table's entries are, for people
	check  func(string) fault // what else must hold of a text
	cross  func(*judge, *node, string)
	oneOf  jsontext.Value // for the schema: what cross holds to, as far as a schema can say it
}

// key is one row of the table of keys.
type key struct {
	name     string
	shape    *shape
	required bool
	absent   bool   // of an object: it is not filled in where it is not written, for its presence says something
	initial  string // what holds where nothing is written, as the file would write it
	doc      string // one sentence or two
	example  string
}

// fault is what is wrong with a text and what to do about it; the zero fault is none.
type fault struct{ problem, remedy string }

// maxTextBytes bounds a text where its shape says nothing else.
const maxTextBytes = 4096

// judge checks the nodes of one file against their shapes.
type judge struct{ src *source }

// judge judges a whole file, unless reading it failed.
func (s *source) judge(root *node, as *shape) {
	if root == nil {
		return
	}
	s.refuse()
	(&judge{s}).value(root, as, "")
	s.known = true
}

// value judges n and everything below it.
func (j *judge) value(n *node, s *shape, path string) {
	if s.secret {
		j.src.hide(n)
	}
	if s.alt != nil && (n.kind == isMap && (s.alt.form == table || s.alt.form == object) || n.kind == isText && s.alt.form == text) {
		s = s.alt
	}
	switch s.form {
	case object:
		j.object(n, s, path)
	case table:
		j.table(n, s, path)
	case list:
		j.list(n, s, path)
	case text:
		j.text(n, s, path)
	case integer:
		j.integer(n, s, path)
	case duration:
		j.duration(n, s, path)
	case boolean:
		j.is(n, isBool, path, "true or false", "")
	case anything:
		j.anything(n, path)
	case anyJSON:
		j.visible(n, path)
	}
	if s.cross != nil && (n.kind == isMap || n.kind == isList) {
		s.cross(j, n, path)
	}
}

// remedyReference is the remedy for a reference in a wrong place.
const remedyReference = "put the secret into headers, env or api_key"

var kindNames = map[kind]string{
	isNull: "nothing", isBool: "true or false", isNumber: "a number", isText: "text", isList: "a list", isMap: "an object",
}

// is reports whether n is of the kind that is wanted, and notes a fault if not.
func (j *judge) is(n *node, want kind, path, wanted, remedy string) bool {
	if n.kind == want {
		return true
	}
	j.src.fault(n.at, path, remedy, "%s must be %s, not %s", subject(path), wanted, kindNames[n.kind])
	return false
}

func subject(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}

func join(path, key string) string {
	key = clip(key)
	if path == "" {
		return key
	}
	return path + "." + key
}

func (j *judge) object(n *node, s *shape, path string) {
	if !j.is(n, isMap, path, "an object with keys", "") {
		return
	}
	var names []string
	for _, k := range s.keys {
		names = append(names, k.name)
	}
	for _, m := range n.members {
		i := slices.Index(names, m.key)
		if i < 0 {
			j.src.hide(m.value) // it may be a secret under a key with a typing mistake
			j.src.fault(m.at, join(path, m.key), cmp.Or(Nearest(m.key, names), "known here: "+strings.Join(names, ", ")),
				"unknown key %s in %s", quote(m.key), subject(path))
			continue
		}
		j.value(m.value, s.keys[i].shape, join(path, m.key))
	}
	for _, k := range s.keys {
		if k.required && n.member(k.name) == nil {
			remedy := ""
			if k.example != "" {
				remedy = "write " + k.name + ": " + k.example
			}
			j.src.fault(n.at, join(path, k.name), remedy, "%s has no %s", subject(path), k.name)
		}
	}
}

func (j *judge) table(n *node, s *shape, path string) {
	if !j.is(n, isMap, path, "an object of names and values", "") || !j.count(n, len(n.members), s, path) {
		return
	}
	for _, m := range n.members {
		name := &node{kind: isText, at: m.at, text: m.key}
		j.text(name, s.name, s.what+" name "+quote(m.key))
		j.value(m.value, s.each, join(path, m.key))
	}
}

func (j *judge) list(n *node, s *shape, path string) {
	wanted := "a list"
	switch {
	case s.alt != nil && s.alt.form == text:
		wanted = s.alt.what
	case s.alt != nil:
		wanted = "a list or an object"
	}
	if !j.is(n, isList, path, wanted, "") || !j.count(n, len(n.items), s, path) {
		return
	}
	seen := make(map[string]place)
	for i, item := range n.items {
		at := path + "[" + strconv.Itoa(i) + "]"
		j.value(item, s.each, at)
		id := item
		if s.unique != "." {
			id = item.get(s.unique)
		}
		if s.unique == "" || id == nil || id.kind != isText {
			continue
		}
		if first, twice := seen[id.text]; twice {
			j.src.fault(id.at, at, "keep one of them", "%s %s stands twice; first at %d:%d",
				s.what, quote(id.text), first.line, first.col)
		} else {
			seen[id.text] = id.at
		}
	}
}

// count bounds the entries of a table or list.
func (j *judge) count(n *node, have int, s *shape, path string) bool {
	switch {
	case int64(have) < s.min:
		j.src.fault(n.at, path, "", "%s has %d entries; it must have at least %d", subject(path), have, s.min)
	case s.max > 0 && int64(have) > s.max:
		j.src.fault(n.at, path, "", "%s has %d entries; at most %d are accepted", subject(path), have, s.max)
	default:
		return true
	}
	return false
}

// longest is how many bytes a text may have.
func (s *shape) longest() int64 {
	if s.max > 0 {
		return s.max
	}
	return maxTextBytes
}

func (j *judge) text(n *node, s *shape, path string) {
	remedy := ""
	if n.kind == isNumber || n.kind == isBool {
		remedy = "quote it"
	}
	what := "text"
	if s.what != "" {
		what = s.what
	}
	if !j.is(n, isText, path, what, remedy) {
		return
	}
	switch {
	case n.text == "" && !s.empty:
		j.src.fault(n.at, path, "", "%s is empty", path)
	case int64(len(n.text)) > s.longest():
		j.src.fault(n.at, path, "", "%s has %d bytes; at most %d are accepted", path, len(n.text), s.longest())
	case hasControl(n.text, s.lines):
		j.src.fault(n.at, path, "remove it", "%s holds a line end or another control character", path)
	case len(s.enum) > 0 && !slices.Contains(s.enum, n.text):
		j.src.fault(n.at, path, Nearest(n.text, s.enum), "%s is %s; it must be %s", path, quote(n.text), oneOf(s.enum))
	case s.match != nil && !s.match.MatchString(n.text):
		j.src.fault(n.at, path, "", "%s is not %s", path, what)
	case !s.secret && hasReference(n.text):
		j.src.fault(n.at, path, remedyReference,
			"%s holds a reference; only values of headers, env and api_key may", path)
	case s.check != nil:
		if f := s.check(n.text); f != (fault{}) {
			j.src.fault(n.at, path, f.remedy, "%s %s", path, f.problem)
		}
	}
}

func (j *judge) anything(n *node, path string) {
	if j.is(n, isMap, path, "an object", "") {
		j.visible(n, path)
	}
}

// visible refuses texts with deceptive characters.
func (j *judge) visible(n *node, path string) {
	n.leaves(func(leaf *node) {
		if leaf.kind == isText && hasControl(leaf.text, true) {
			j.src.fault(leaf.at, path, "remove it", "%s holds a control character", path)
		}
	})
}

func (j *judge) integer(n *node, s *shape, path string) {
	if !j.is(n, isNumber, path, "a whole number", "") {
		return
	}
	v, err := strconv.ParseInt(n.text, 10, 64)
	switch {
	case err != nil:
		j.src.fault(n.at, path, "", "%s must be a whole number in decimal digits", path)
	case v < s.min || v > s.max:
		j.src.fault(n.at, path, "", "%s is %d; it must be %s", path, v, between(s.min, s.max))
	}
}

func between(low, high int64) string {
	if low == high {
		return strconv.FormatInt(low, 10)
	}
	return fmt.Sprintf("%d to %d", low, high)
}

func (j *judge) duration(n *node, s *shape, path string) {
	remedy := ""
	if n.kind == isNumber {
		remedy = "write the unit: " + n.text + "s"
	}
	if !j.is(n, isText, path, "a duration like 10s", remedy) {
		return
	}
	ms, ok := parseDuration(n.text)
	switch {
	case !ok:
		j.src.fault(n.at, path, "write numbers with ms, s, m or h, like 500ms, 10s, 1m30s", "%s is not a duration", path)
	case ms < s.min || ms > s.max:
		j.src.fault(n.at, path, "", "%s is %s; it must be %s to %s",
			path, n.text, writeDuration(s.min), writeDuration(s.max))
	}
}

// hasControl reports invisible characters that change how text is displayed or sent.
func hasControl(s string, lines bool) bool {
	for _, r := range s {
		if lines && (r == '\n' || r == '\t') {
			continue
		}
		if unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == '\uFEFF' {
			return true
		}
	}
	return false
}

// clip cuts a text from a file to what a message can hold.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// quote writes a text from a file fit to be printed.
func quote(s string) string { return strconv.Quote(clip(s)) }

// oneOf lists choices in a sentence.
func oneOf(choices []string) string {
	if len(choices) == 1 {
		return choices[0]
	}
	last := len(choices) - 1
	return strings.Join(choices[:last], ", ") + " or " + choices[last]
}

// Nearest suggests the most similar choice; it is empty if none is similar.
func Nearest(got string, choices []string) string {
	best, distance := "", 3
	low := strings.ToLower(got)
	for _, c := range choices {
		d := levenshtein.ComputeDistance(low, c)
		if strings.HasSuffix(low, c) || len(low) > 2 && strings.HasPrefix(c, low) {
			d = min(d, 1)
		}
		if d < distance && d < len(c) {
			best, distance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}
