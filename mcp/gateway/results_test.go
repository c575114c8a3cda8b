package gateway

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// odd is JSON that a reader and writer of JSON would not return as it is.
const odd = `{"big":12345678901234567890123,"one":1.0,"huge":1e400,"minus":-0,"twice":1,"twice":2,"slash":"a\/b\u003c","lone":"\ud800", "sp" : [ ] ,"new":{"x":null}}`

func TestResultsAreFinished(t *testing.T) {
	self := []byte(`"io.modelcontextprotocol/serverInfo":{"name":"g","version":"1"}`)
	const info = `"io.modelcontextprotocol/serverInfo":{"name":"g","version":"1"}`
	for _, tc := range []struct {
		name, in, legacy, modern, cached string
	}{
		{"empty", `{}`, `{}`, `{"resultType":"complete","_meta":{` + info + `}}`,
			`{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{` + info + `}}`},
		{"white-space", ` { "content" : [ ] } `, ` { "content" : [ ] } `, ` {"resultType":"complete","_meta":{` + info + `}, "content" : [ ] } `,
			` {"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{` + info + `}, "content" : [ ] } `},
		{"odd-values", `{"structuredContent":` + odd + `}`, `{"structuredContent":` + odd + `}`,
			`{"resultType":"complete","_meta":{` + info + `},"structuredContent":` + odd + `}`, `{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{` + info + `},"structuredContent":` + odd + `}`},
		{"complete-already", `{"resultType":"complete","ttlMs":5,"cacheScope":"public","_meta":{}}`, `{"resultType":"complete","ttlMs":5,"cacheScope":"public","_meta":{}}`,
			`{"resultType":"complete","ttlMs":5,"cacheScope":"public","_meta":{` + info + `}}`, `{"resultType":"complete","ttlMs":5,"cacheScope":"public","_meta":{` + info + `}}`},
		{"reserved", `{"_meta":{"a":1.0,"io.modelcontextprotocol/serverInfo":{"name":"up"},"b/c": 2,"io.modelcontextprotocol\/x":1},"z":1}`, `{"_meta":{"a":1.0,"b/c": 2},"z":1}`,
			`{"resultType":"complete","_meta":{` + info + `,"a":1.0,"b/c": 2},"z":1}`, `{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{` + info + `,"a":1.0,"b/c": 2},"z":1}`},
		{"reserved-in-escapes", `{"_meta":{"\u0069o.modelcontextprotocol/x":1}}`, `{"_meta":{}}`, `{"resultType":"complete","_meta":{` + info + `}}`,
			`{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{` + info + `}}`},
		{"meta-twice", `{"_meta":{"io.modelcontextprotocol/x":1},"_meta":{"io.modelcontextprotocol/y":1,"k":1}}`, `{"_meta":{},"_meta":{"k":1}}`,
			`{"resultType":"complete","_meta":{` + info + `},"_meta":{"k":1}}`, `{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{` + info + `},"_meta":{"k":1}}`},
		{"inner-meta-is-payload", `{"content":[{"_meta":{"io.modelcontextprotocol/x":1}}]}`, `{"content":[{"_meta":{"io.modelcontextprotocol/x":1}}]}`,
			`{"resultType":"complete","_meta":{` + info + `},"content":[{"_meta":{"io.modelcontextprotocol/x":1}}]}`,
			`{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{` + info + `},"content":[{"_meta":{"io.modelcontextprotocol/x":1}}]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := readResult([]byte(tc.in), nil)
			if !f.isObject {
				t.Fatal("no object")
			}
			in := jsontext.Value(tc.in)
			got := []string{string(f.rewrite(in, nil, false)), string(f.rewrite(in, self, false)), string(f.rewrite(in, self, true))}
			if diff := cmp.Diff([]string{tc.legacy, tc.modern, tc.cached}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
