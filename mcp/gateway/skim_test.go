package gateway

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/wire"
)

// Of what can be read strictly, skim says the same as the strict reading; of the rest it says something or nothing, and ends.
func FuzzSkim(f *testing.F) {
	for _, doc := range []string{
		`{}`, ` { } `, `{"a":1}`, `{ "a" : "b\"c\\" , "d" : [ {"e":"}]"} , null ] , "f":-1.5e3,"g":true}`, `{"\u0061\\":{"":""}}`,
		`{"a":"\\\\\"","b":{}}`, `{"a":`, `{"a"`, `{"a":1,`, `{"a":}`, `{"`, `"`, `[1]`, ``, `{"a":1}}`, `{"a":"\`, `{"a" 1}`, `{:1}`,
	} {
		f.Add([]byte(doc))
	}
	type member struct{ Name, Value string }
	f.Fuzz(func(t *testing.T, doc []byte) {
		var want, got []member
		err := wire.Members(doc, func(name string, value jsontext.Value) error {
			want = append(want, member{name, string(value)})
			return nil
		})
		skim(doc, func(name string, value jsontext.Value) { got = append(got, member{name, string(value)}) })
		if diff := cmp.Diff(want, got); err == nil && diff != "" {
			t.Errorf("%q (-want +got):\n%s", doc, diff)
		}
	})
}
