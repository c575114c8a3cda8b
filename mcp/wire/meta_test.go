package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/wire"
)

func TestStripOwn(t *testing.T) {
	const odd = `{"big":12345678901234567890123,"one":1.0,"twice":1,"twice":2,"slash":"a\/b\u003c","lone":"\ud800", "sp" : [ ] }`
	for _, tc := range []struct{ name, in, want string }{
		{"nothing-to-do", ` { "content" : [ ] , "odd":` + odd + `} `, ` { "content" : [ ] , "odd":` + odd + `} `},
		{"top", `{"_meta":{"io.pgfsm/decision":{"a":[1]},"k": 1.0},"odd":` + odd + `}`, `{"_meta":{"k": 1.0},"odd":` + odd + `}`},
		{"any-of-ours", `{"_meta":{"a":1 ,"io.pgfsm/x":1,"b":2,"io.pgfsm/y":null}}`, `{"_meta":{"a":1,"b":2}}`},
		{"another-name", `{"_meta":{"io.pgfsmx/y":1,"xio.pgfsm/y":1}}`, `{"_meta":{"io.pgfsmx/y":1,"xio.pgfsm/y":1}}`},
		{"in-escapes", `{"\u005fmeta":{"\u0069\u006f.pgfsm\/decision":1}}`, `{"\u005fmeta":{}}`},
		{"twice", `{"_meta":{"io.pgfsm/a":1},"_meta":{"io.pgfsm/a":1,"io.pgfsm/a":2}}`, `{"_meta":{},"_meta":{}}`},
		{"list-entries", `{"tools":[{"name":"a","_meta":{"io.pgfsm/a":1}}, {"_meta":{"io.pgfsm/a":1,"k":2},"name":"b"}]}`,
			`{"tools":[{"name":"a","_meta":{}}, {"_meta":{"k":2},"name":"b"}]}`},
		{"content", `{"content":[{"type":"resource","_meta":{"io.pgfsm/a":1},"resource":{"_meta":{"io.pgfsm/a":1}}}]}`,
			`{"content":[{"type":"resource","_meta":{},"resource":{"_meta":{}}}]}`},
		{"no-meta", `{"io.pgfsm/a":1,"content":[{"text":"io.pgfsm/decision"}]}`, `{"io.pgfsm/a":1,"content":[{"text":"io.pgfsm/decision"}]}`},
		{"data", `{"arguments":{"_meta":{"io.pgfsm/a":1}},"structuredContent":{"_meta":{"io.pgfsm/a":1}}}`,
			`{"arguments":{"_meta":{"io.pgfsm/a":1}},"structuredContent":{"_meta":{"io.pgfsm/a":1}}}`},
		{"meta-that-is-no-object", `{"_meta":"io.pgfsm/a"}`, `{"_meta":"io.pgfsm/a"}`},
		{"no-object", `"io.pgfsm/a"`, `"io.pgfsm/a"`},
		{"nothing", ``, ``},
		{"not-json", `{"_meta":{"io.pgfsm/a"`, `{"_meta":{"io.pgfsm/a"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, string(wire.StripOwn([]byte(tc.in)))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	deep := strings.Repeat(`{"a":[`, 50_000) + `"io.pgfsm/a"` + strings.Repeat(`]}`, 50_000)
	if string(wire.StripOwn([]byte(deep))) != deep {
		t.Error("a deep document was changed")
	}
}
