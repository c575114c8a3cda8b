package gateway

import "github.com/go-json-experiment/json/jsontext"

// skim calls visit for each member of the object in doc, in order, as wire.Members does, but for text that was read strictly before: it
// trusts that doc is a JSON object, and costs next to nothing. Of anything else it makes nothing, or its beginning.
func skim(doc []byte, visit func(name string, value jsontext.Value)) {
	_ = pieces(doc, func(p piece) { visit(p.name, p.value) })
}
