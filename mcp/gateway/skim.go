package gateway

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// skim calls visit for each member of the object in doc, in order, like [wire.Members], but for text that was read strictly before: it
// trusts that doc is a JSON object, and costs next to nothing. Of anything else it makes nothing, and comes to an end.
func skim(doc []byte, visit func(name string, value jsontext.Value)) {
	i := skipSpace(doc, 0)
	if i >= len(doc) || doc[i] != '{' {
		return
	}
	for i++; ; {
		if i = skipSpace(doc, i); i >= len(doc) || doc[i] != '"' {
			return
		}
		end := skipValue(doc, i)
		name, err := wire.Text(doc[i:end])
		if err != nil {
			return
		}
		if i = skipSpace(doc, end); i >= len(doc) || doc[i] != ':' {
			return
		}
		i = skipSpace(doc, i+1)
		if end = skipValue(doc, i); end == i {
			return
		}
		visit(name, jsontext.Value(doc[i:end:end]))
		if i = skipSpace(doc, end); i >= len(doc) || doc[i] != ',' {
			return
		}
		i++
	}
}

func skipSpace(doc []byte, i int) int {
	for i < len(doc) && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\r' || doc[i] == '\t') {
		i++
	}
	return i
}

// skipValue returns where the value ends that begins at i.
func skipValue(doc []byte, i int) int {
	depth := 0
	for i < len(doc) {
		switch doc[i] {
		case '"':
			i = skipString(doc, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return i // of the object around it
			} else if depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i // behind a number or a word
			}
		}
		i++
	}
	return i
}

// skipString returns where the string ends that begins at i.
func skipString(doc []byte, i int) int {
	for i++; ; i++ {
		at := bytes.IndexByte(doc[i:], '"')
		if at < 0 {
			return len(doc)
		}
		escapes := 0
		for k := i + at - 1; k >= i && doc[k] == '\\'; k-- {
			escapes++
		}
		if i += at; escapes%2 == 0 {
			return i + 1
		}
	}
}
