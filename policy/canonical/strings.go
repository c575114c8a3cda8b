package canonical

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// usualStrings is for how many strings room is made before any is seen: a hostile text has as many quotation marks as bytes.
const usualStrings = 64

// Strings appends to found what doc says: doc itself, and every string in it, names too, in order, as far as doc is JSON. What
// stands behind the first mistake is not looked at; a name that stands twice is none.
func Strings(found []string, doc []byte) []string {
	found, _ = JSONStrings(found, doc)
	return found
}

// JSONStrings is [Strings], and [JSON] where that takes no second look at doc: else the canonical form is nil.
func JSONStrings(found []string, doc []byte) (all []string, whole []byte) {
	text := string(doc)
	found = append(slices.Grow(found, 1+min(strings.Count(text, `"`)/2, usualStrings)), text)
	o := ordinary{doc: doc, out: make([]byte, 0, len(doc))}
	if !o.whole() {
		return decodedStrings(found, doc), nil
	}
	for at := strings.IndexByte(text, '"'); at >= 0; {
		end := stringEnd(text, at)
		found = append(found, unescaped(text[at+1:end-1]))
		if at = strings.IndexByte(text[end:], '"'); at >= 0 {
			at += end
		}
	}
	return found, o.out
}

func decodedStrings(found []string, doc []byte) []string {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return found
		}
		if tok.Kind() == '"' {
			found = append(found, tok.String())
		}
	}
}

// unescaped is the text of an ordinary string.
func unescaped(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' {
			i++
			c = meaning[strings.IndexByte(sameEscapes, s[i])]
		}
		b = append(b, c)
	}
	return string(b)
}

// meaning has what each of sameEscapes stands for.
const meaning = "\"\\\b\f\n\r\t"
