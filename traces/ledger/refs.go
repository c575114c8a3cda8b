package ledger

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// payloadReferences returns the blobs that an event refers to.
func payloadReferences(p payload) (refs []canonical.Digest) {
	if a, ok := p.(interface{ generationOf() *generation }); ok {
		refs = append(refs, a.generationOf().Bundle)
	}
	if r, ok := p.(recording); ok {
		inputs := r.runRecord().Inputs
		for i := range inputs {
			if digest := eventRef(inputs[i].Event); digest != "" {
				refs = append(refs, digest)
			}
		}
	}
	return refs
}

// Ref returns the text that an input contains instead of an event that a blob has. No event is a
// text.
func Ref(d canonical.Digest) string { return "@" + string(d) }

// eventRef returns the blob that has an input's event; empty if the input contains the event.
func eventRef(event jsontext.Value) canonical.Digest {
	if event.Kind() != '"' {
		return ""
	}
	text, err := canonical.Unquote(event)
	if err != nil || text == "" || text[0] != '@' {
		return ""
	}
	return canonical.Digest(text[1:])
}

// readBlob returns the text of a blob after checking its digest and kind.
func readBlob(r Reader, d canonical.Digest, kind string) (string, error) {
	b, err := r.Blob(d)
	if err != nil {
		return "", fmt.Errorf("the blob %s: %w", d.Short(), err)
	}
	if b.Kind != kind || canonical.Sum(kind, []byte(b.Text)) != d {
		return "", fmt.Errorf("the blob %s is not what its digest names", d.Short())
	}
	return b.Text, nil
}
