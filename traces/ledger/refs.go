package ledger

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// isRef reports whether a value is a reference to a blob.
func isRef[T string | jsontext.Value](value T) bool { return len(value) > 0 && value[0] == '@' }

// payloadReferences returns the blobs that an event refers to.
func payloadReferences(p payload) (refs []canonical.Digest) {
	refer := func(ref string) { refs = append(refs, canonical.Digest(ref[1:])) }
	if a, ok := p.(*bundleActivated); ok {
		refs = append(refs, a.Bundle)
	}
	if c, ok := p.(*requestCreated); ok {
		refs = append(refs, c.Bundle)
		if c.Call != nil && len(c.Call.Args) > MaxInline {
			refer(c.Call.argsColumn())
		}
	}
	if r, ok := p.(recording); ok {
		for _, input := range r.runRecord().Inputs {
			if ref := eventRef(input.Event); ref != "" {
				refer(ref)
			}
		}
	}
	return refs
}

// eventRef returns the reference that replaces an input's event; empty if the input contains the
// event.
func eventRef(event jsontext.Value) string {
	var ref string
	if event.Kind() != '"' || json.Unmarshal(event, &ref) != nil || !isRef(ref) {
		return ""
	}
	return ref
}

// inlineOrPut returns a small value unchanged. It puts a large value as a blob and returns a
// reference to the blob.
func inlineOrPut(value []byte, put func(Blob) error) (string, error) {
	if len(value) <= MaxInline {
		return string(value), nil
	}
	b := Blob{Digest: canonical.Sum(BlobValue, value), Kind: BlobValue, Text: string(value)}
	return Ref(b.Digest), put(b)
}

// resolveRef returns the value of a column. If the column refers to a blob, resolveRef reads the
// blob and checks its digest.
func resolveRef(r Reader, value string) (jsontext.Value, error) {
	if !isRef(value) {
		return jsontext.Value(value), nil
	}
	b, err := readBlob(r, canonical.Digest(value[1:]), BlobValue)
	return jsontext.Value(b), err
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
