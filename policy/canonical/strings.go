package canonical

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Strings appends to found what doc says: doc itself, and every string in it, names too, in order, as far as doc is JSON. What
// stands behind the first mistake is not looked at; a name that stands twice is none.
func Strings(found []string, doc []byte) []string {
	found = append(found, string(doc))
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
