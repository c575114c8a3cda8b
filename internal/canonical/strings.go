package canonical

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Strings appends to found doc itself and every string in it, member names included, in order, up
// to the first syntax error in doc. A duplicate member name is not an error here.
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
