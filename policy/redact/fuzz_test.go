package redact_test

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/test/check"
	"pgfsm/policy/redact"
)

// FuzzDocument: JSON stays JSON, a second time finds nothing, and text without a finding is returned as it is.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"{\"to\":\"a@example.com +31612345678\"}"},{"type":"image","data":"AAAA"}],"structuredContent":{"a":["x",4111111111111111]}}`))
	f.Add([]byte(`{"contents":[{"uri":"a","blob":"AAAA"}],"content":[{"resource":{"blob":"AA=="}}]}`))
	set, err := redact.Compile([]redact.Rule{
		{ID: "all", Find: detectors, At: []string{"/a/*", "/b"}, Binary: redact.Withhold}, {ID: "own", Pattern: `EMP-\d+`},
	})
	check.NoError(f, err)
	valid := func(text []byte) bool {
		return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		done := set.Document(doc)
		switch again := set.Document(done.Text); {
		case done.Withheld:
		case !valid(doc) || !valid(done.Text):
			t.Errorf("%q becomes %q, which is no JSON", doc, done.Text)
		case len(done.Hits) == 0 && !bytes.Equal(done.Text, doc):
			t.Errorf("%q becomes %q without a finding", doc, done.Text)
		case again.Withheld || !bytes.Equal(again.Text, done.Text):
			t.Errorf("%q becomes %q, and that %q", doc, done.Text, again.Text)
		}
	})
}
