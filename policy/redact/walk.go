package redact

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const quotedMask = `"` + Mask + `"`

// maskedBlock replaces an image or audio in the content of a result.
const maskedBlock = `{"type":"text","text":` + quotedMask + `}`

// Errors that withhold a text.
var (
	errName = errors.New("a rule found something in the name of a member")
	errCost = errors.New("it is too large to be searched with these patterns")
)

// A walk applies rules to a document and to the documents in its texts.
type walk struct {
	rules  []*rule
	counts []int    // how often each rule removed something
	values []string // what pointers removed, and is removed elsewhere, too
	owners []int    // the rule of each value
	depth  int
	cost   int
	err    error
}

// A reader reads one document.
type reader struct {
	*walk
	dec    *jsontext.Decoder
	data   bool   // pointers begin at the root
	name   span   // of the last member's name
	binary bool   // the content block that is being read becomes maskedBlock
	src    []byte // the document
	edits  []edit
}

type edit struct {
	span
	with string
}

// document returns a document without what the rules remove.
func (w *walk) document(src []byte, data bool) ([]byte, error) {
	r := &reader{walk: w, src: src, data: data, dec: jsontext.NewDecoder(bytes.NewBuffer(src),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	if err := r.value(nil); err != nil {
		return nil, err
	}
	if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is not one JSON document")
	}
	if w.err != nil || len(r.edits) == 0 {
		return src, w.err
	}
	var out []byte
	copied := 0
	for _, e := range r.edits {
		out = append(append(out, src[copied:e.start]...), e.with...)
		copied = e.end
	}
	return append(out, src[copied:]...), nil
}

// value reads a value.
func (r *reader) value(path []string) error {
	if i := r.pointed(path); i >= 0 && r.dec.PeekKind() != 'n' {
		return r.removeValue(i)
	}
	switch r.dec.PeekKind() {
	case '{', '[':
		return r.composite(path)
	case '"':
		raw, err := r.dec.ReadValue()
		if err != nil {
			return err
		}
		text, err := jsontext.AppendUnquote(nil, raw) // an error says that it is not UTF-8, which is replaced
		if err != nil && text == nil {
			return err
		}
		at := r.lastSpan(raw)
		if r.isType(path, string(text)) {
			return nil
		}
		if r.isBinary(path, text) {
			r.binaryAt(path, at)
		} else if clean := r.text(string(text)); clean != string(text) {
			quoted, _ := jsontext.AppendQuote(nil, clean) // an error says that it is not UTF-8
			r.edits = append(r.edits, edit{at, string(quoted)})
		}
	case '0':
		raw, err := r.dec.ReadValue()
		if err != nil {
			return err
		}
		if text := string(raw); r.text(text) != text {
			r.edits = append(r.edits, edit{r.lastSpan(raw), quotedMask})
		}
	default:
		_, err := r.dec.ReadToken()
		return err
	}
	return r.err
}

// lastSpan is the place of the value that was just read.
func (r *reader) lastSpan(raw []byte) span {
	end := int(r.dec.InputOffset())
	return span{end - len(raw), end}
}

// composite reads an object or an array.
func (r *reader) composite(path []string) error {
	open, err := r.dec.ReadToken()
	if err != nil {
		return err
	}
	isBlock := len(path) == 2 && path[0] == "content" && !r.data
	start, edits := int(r.dec.InputOffset())-1, len(r.edits)
	for i := 0; r.dec.PeekKind() != '}' && r.dec.PeekKind() != ']'; i++ {
		name := strconv.Itoa(i)
		if open.Kind() == '{' {
			raw, err := r.dec.ReadValue()
			if err != nil {
				return err
			}
			text, _ := jsontext.AppendUnquote(nil, raw)
			name, r.name = string(text), r.lastSpan(raw)
			if r.search(name) != name {
				return errName
			}
		}
		if err := r.value(append(path, name)); err != nil {
			return err
		}
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return err
	}
	if isBlock && r.binary {
		r.binary = false
		r.edits = append(r.edits[:edits], edit{span{start, int(r.dec.InputOffset())}, maskedBlock})
	}
	return r.err
}

// pointed returns the rule that removes the value at a path, or -1.
func (r *reader) pointed(path []string) int {
	if !r.data {
		if len(path) == 0 || path[0] != "structuredContent" {
			return -1
		}
		path = path[1:]
	}
	for i, rule := range r.rules {
		for _, pointer := range rule.at {
			if fits(pointer, path) {
				return i
			}
		}
	}
	return -1
}

func fits(pointer, path []string) bool {
	if len(pointer) != len(path) {
		return false
	}
	for i, name := range pointer {
		if name != "*" && name != path[i] {
			return false
		}
	}
	return true
}

// removeValue reads a value that a pointer names, and removes it.
func (r *reader) removeValue(i int) error {
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	if string(raw) == quotedMask {
		return nil
	}
	r.counts[i]++
	value := string(raw)
	if raw.Kind() == '"' {
		text, _ := jsontext.AppendUnquote(nil, raw)
		value = string(text)
	}
	if kind := raw.Kind(); (kind == '"' || kind == '0') && len(value) >= minValue && !strings.Contains(Mask, value) {
		r.values, r.owners = append(r.values, value), append(r.owners, i)
	}
	r.edits = append(r.edits, edit{r.lastSpan(raw), quotedMask})
	return nil
}

// isType reports whether a text is the type of a content block, without which the result could not be read.
func (r *reader) isType(path []string, text string) bool {
	return !r.data && len(path) == 3 && path[0] == "content" && path[2] == "type" &&
		slices.Contains([]string{"text", "image", "audio", "resource", "resource_link"}, text)
}

// isBinary reports whether a text is binary content: data of an image or of audio, or the blob of a resource.
// Detectors do not search it.
func (r *reader) isBinary(path []string, text []byte) bool {
	if r.data || len(path) < 3 || len(text) == 0 {
		return false
	}
	last := path[len(path)-1]
	block := path[0] == "content" && (len(path) == 3 && last == "data" || len(path) == 4 && path[2] == "resource" && last == "blob")
	if !block && (path[0] != "contents" || len(path) != 3 || last != "blob") {
		return false
	}
	_, err := base64.StdEncoding.Decode(make([]byte, base64.StdEncoding.DecodedLen(len(text))), text)
	return err == nil
}

// binaryAt removes binary content if a rule says so. A resource gets a text in place of its blob.
func (r *reader) binaryAt(path []string, at span) {
	for i, rule := range r.rules {
		if rule.Binary != Withhold {
			continue
		}
		r.counts[i]++
		if r.binary = path[len(path)-1] == "data"; !r.binary {
			r.edits = append(r.edits, edit{r.name, `"text"`}, edit{at, quotedMask})
		}
		return
	}
}

// text returns a text without what the rules remove. If the text is JSON, its own texts are read.
func (w *walk) text(s string) string {
	first := strings.TrimLeft(s, " \t\r\n")
	if w.depth < maxDepth && first != "" && strings.IndexByte(`{["`, first[0]) >= 0 {
		counts, values := slices.Clone(w.counts), len(w.values)
		w.depth++
		clean, err := w.document([]byte(s), true)
		w.depth--
		switch {
		case err == nil:
			return string(clean)
		case errors.Is(err, errName), errors.Is(err, errCost):
			w.err = err
			return s
		}
		// It only looks like JSON.
		w.counts, w.values, w.owners = counts, w.values[:values], w.owners[:values]
	}
	s = w.search(s)
	for k, value := range w.values {
		if n := strings.Count(s, value); n > 0 {
			w.counts[w.owners[k]] += n
			s = strings.ReplaceAll(s, value, Mask)
		}
	}
	return s
}

// search returns a text without what the detectors and patterns find. What is removed can leave a boundary at
// which something else begins, so it searches again.
func (w *walk) search(s string) string {
	for range maxRounds {
		before := s
		for i, rule := range w.rules {
			if w.cost += len(s) * rule.steps; w.cost > maxCost {
				w.err = errCost
				return s
			}
			for _, d := range rule.detectors {
				s = w.remove(i, s, d.find(s))
			}
			if rule.pattern != nil {
				var found []span
				for _, at := range rule.pattern.FindAllStringIndex(s, -1) {
					if at[0] < at[1] {
						found = append(found, span{at[0], at[1]})
					}
				}
				s = w.remove(i, s, found)
			}
		}
		if s == before {
			break
		}
	}
	return s
}

func (w *walk) remove(i int, s string, found []span) string {
	if len(found) == 0 {
		return s
	}
	w.counts[i] += len(found)
	return removeAll(s, found)
}
