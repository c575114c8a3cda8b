package wire_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

var objects = []struct {
	name, doc string
	read      bool
}{
	{"call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,"two",null,true,false]}}}`, true},
	{"result", `{"jsonrpc":"2.0","id":"7","result":{"content":[{"type":"text","text":"a\nb \u00fc ü 😀"}],"isError":false}}`, true},
	{"same-name-elsewhere", `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`, true},
	{"escapes", `{"a":"\"\\\/\b\f\n\r\t\u0000\uABCD\ud7ff\uE000"}`, true},
	{"half-of-a-pair", `{"a":"\ud83d"}`, false},
	{"same-name-twice", `{"a":1,"a":2}`, false},
	{"same-name-twice-by-an-escape", `{"a":1,"\u0061":2}`, false},
	{"same-name-twice-inside", `{"a":[{"b":1,"c":2,"b":3}]}`, false},
	{"broken-utf8", "{\"a\":\"\xff\"}", false},
	{"byte-order-mark", "\ufeff{}", false},
	{"not-closed", `{"a":1`, false},
	{"text-behind", `{} {}`, false},
	{"array", `[{}]`, false},
	{"nothing", ``, false},
}

func TestMembersAreReadStrictly(t *testing.T) {
	for _, tt := range objects {
		t.Run(tt.name, func(t *testing.T) {
			err := wire.Members([]byte(tt.doc), func(string, jsontext.Value) error { return nil })
			if read := err == nil; read != tt.read {
				t.Errorf("Members(%q) = %v, want it read: %v", tt.doc, err, tt.read)
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	for _, bm := range []struct{ name, doc string }{
		{"call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"hello"}}}`},
		{"result", `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"` + strings.Repeat("hello ", 1000) + `"}]}}`},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(bm.doc)))
			doc := []byte(bm.doc)
			for b.Loop() {
				if _, err := wire.Read(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
