package canonical

import (
	"bytes"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Members yields the members of an object in canonical form, in order: each name as text, each value as a part of doc.
// doc must be what [JSON] or [Marshal] returned, which is what makes it enough to count brackets outside of strings.
// Anything but an object has no members.
func Members(doc []byte) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		if len(doc) < 2 || doc[0] != '{' {
			return
		}
		for at := 1; at < len(doc) && doc[at] == '"'; at++ { // over the comma or the closing brace
			end := skip(doc, at)
			name, err := Unquote(doc[at:end])
			if err != nil {
				return
			}
			at = end + 1 // over the colon
			end = skip(doc, at)
			if !yield(name, doc[at:end:end]) {
				return
			}
			at = end
		}
	}
}

// skip returns the end of the value that begins at from.
func skip(doc []byte, from int) int {
	depth := 0
	for i := from; i < len(doc); i++ {
		switch doc[i] {
		case '"':
			i = stringEnd(doc, i) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(doc)
}

// stringEnd returns the end of the string that begins at from.
func stringEnd[T string | []byte](doc T, from int) int {
	for i := from + 1; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(doc)
}

// Unquote returns the text of a JSON string that was read strictly before.
func Unquote(v jsontext.Value) (string, error) {
	if len(v) >= 2 && v[0] == '"' && bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), nil
	}
	b, err := jsontext.AppendUnquote(make([]byte, 0, len(v)), v)
	if err != nil {
		return "", Explain(err)
	}
	return string(b), nil
}
