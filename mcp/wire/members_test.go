package wire_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/mcp/wire"
)

// names is an object with so many names.
func names(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"n%d":%d`, i, i)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// nested is an object with arrays in it, so many levels in all.
func nested(levels int) string {
	return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `}`
}

var objects = []struct {
	name, doc string
	read      bool
}{
	{"call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,"two",null,true,false]}}}`, true},
	{"result", `{"jsonrpc":"2.0","id":"7","result":{"content":[{"type":"text","text":"a\nb \u00fc ü 😀"}],"isError":false}}`, true},
	{"white-space", " \t\r\n{ \"a\" : [ ] , \"b\" : { } , \"c\" : [ 1 , 2 ] }\n", true},
	{"empty", `{}`, true},
	{"empty-name", `{"":1}`, true},
	{"numbers", `{"a":[0,-0,10,1.5,-0.5,1e5,1E+5,1.0e-10,123456789012345678901234567890]}`, true},
	{"replacement-character", "{\"a\":\"\uFFFD\"}", true},
	{"same-name-elsewhere", `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`, true},
	{"escapes", `{"a":"\"\\\/\b\f\n\r\t\u0000\uABCD\ud7ff\uE000"}`, true},
	{"many-names", names(17), true},
	{"deep", nested(32), true},
	{"pair", `{"a":"\ud83d\ude00"}`, true},
	{"escape-in-a-name", `{"\u0061":1}`, true},
	{"half-of-a-pair", `{"a":"\ud83d"}`, false},
	{"same-name-twice", `{"a":1,"a":2}`, false},
	{"same-name-twice-by-an-escape", `{"a":1,"\u0061":2}`, false},
	{"same-name-twice-inside", `{"a":[{"b":1,"c":2,"b":3}]}`, false},
	{"broken-utf8", "{\"a\":\"\xff\"}", false},
	{"cut-utf8", "{\"a\":\"\xc3\"}", false},
	{"surrogate-in-utf8", "{\"a\":\"\xed\xa0\x80\"}", false},
	{"broken-utf8-in-a-name", "{\"\xff\":1}", false},
	{"byte-order-mark", "\ufeff{}", false},
	{"control-character", "{\"a\":\"\x1f\"}", false},
	{"unknown-escape", `{"a":"\x"}`, false},
	{"short-escape", `{"a":"\u00f"}`, false},
	{"escape-with-other-letters", `{"a":"\u00fg"}`, false},
	{"cut-escape", `{"a":"\`, false},
	{"leading-zero", `{"a":01}`, false},
	{"leading-plus", `{"a":+1}`, false},
	{"minus-alone", `{"a":-}`, false},
	{"no-digits-behind-the-point", `{"a":1.}`, false},
	{"no-digits-before-the-point", `{"a":.5}`, false},
	{"no-digits-in-the-exponent", `{"a":1e+}`, false},
	{"hexadecimal", `{"a":0x1}`, false},
	{"word-in-capitals", `{"a":True}`, false},
	{"word-cut", `{"a":nul`, false},
	{"word-with-more", `{"a":nulll}`, false},
	{"comma-at-the-end", `{"a":1,}`, false},
	{"comma-at-the-end-of-an-array", `{"a":[1,]}`, false},
	{"comma-missing", `{"a":1 "b":2}`, false},
	{"colon-missing", `{"a" 1}`, false},
	{"value-missing", `{"a":}`, false},
	{"name-that-is-no-string", `{1:2}`, false},
	{"not-closed", `{"a":1`, false},
	{"closed-by-another", `{"a":[1}}`, false},
	{"text-behind", `{} {}`, false},
	{"array", `[{}]`, false},
	{"nothing", ``, false},
	{"blanks", `  `, false},
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

// FuzzEach compares the members with those that a decoder reads.
func FuzzEach(f *testing.F) {
	for _, doc := range []string{`{"twice":1,"twice":2,"lone":"\ud800", "sp" : [ ] }`, `{}`, `{"a":"\\","b":"\"}"}`, `{"a\u0022":{"b":[1,{"c":"]}"}]}}`, `{"a":[[],{},"",0,true,null]}`, ` {"a" :1 , "b":2 } `} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
		if !jsontext.Value(doc).IsValid(lenient...) || jsontext.Value(doc).Kind() != '{' {
			wire.ForEachMember(doc, func(wire.Piece) {}) // it must not hang or break
			return
		}
		var want, got []string
		dec := jsontext.NewDecoder(bytes.NewBuffer(bytes.Clone(doc)), lenient...)
		if _, err := dec.ReadToken(); err != nil {
			t.Fatal(err)
		}
		for dec.PeekKind() != '}' {
			name, _ := dec.ReadToken()
			n := name.String()
			value, _ := dec.ReadValue()
			want = append(want, n, string(value))
		}
		if !wire.ForEachMember(doc, func(p wire.Piece) { got = append(got, p.Name, string(p.Value)) }) {
			t.Fatalf("%q is not read", doc)
		}
		if strings.ContainsRune(strings.Join(want, ""), '\uFFFD') {
			return // broken UTF-8 in names has more than one spelling
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", doc, diff)
		}
	})
}
