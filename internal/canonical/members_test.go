package canonical_test

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
)

// FuzzMembers holds the short way through a canonical object to the decoder's.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1}`, `{"a":"}","b":["]",{"c":"\\"}],"":null}`, `{"a\"b":"\u0000","é":-1.50e+3,"z":{}}`,
		`{"a":[],"b":{"x":[1,2,{"y":"\"}]"}]},"c":true}`, `[]`, `"a"`, `0`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		c, err := canonical.JSON([]byte(doc))
		if err != nil {
			return
		}
		got := map[string]string{}
		n := 0
		for name, value := range canonical.Members(c) {
			got[name] = string(value)
			n++
		}
		want := map[string]string{}
		if c[0] == '{' {
			var members map[string]jsontext.Value
			if err := json.Unmarshal(c, &members); err != nil {
				t.Fatalf("canonical form %s does not decode: %v", c, err)
			}
			for name, value := range members {
				want[name] = string(value)
			}
		}
		if d := cmp.Diff(want, got); d != "" || n != len(want) {
			t.Errorf("Members(%s) yields %d, differs (-want +got):\n%s", c, n, d)
		}
	})
}
