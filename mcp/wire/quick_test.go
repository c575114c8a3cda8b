package wire

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
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

// around is an object in an object, and so on, with so many names in all.
func around(objects, each int) string {
	doc := `{}`
	for range objects {
		doc = strings.TrimSuffix(names(each-1), "}") + `,"in":` + doc + `}`
	}
	return doc
}

var quickCases = []struct {
	name, doc   string
	quick, read bool // read in the quick way; read at all
}{
	{"call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,"two",null,true,false]}}}`, true, true},
	{"result", `{"jsonrpc":"2.0","id":"7","result":{"content":[{"type":"text","text":"a\nb \u00fc ü 😀"}],"isError":false}}`, true, true},
	{"white-space", " \t\r\n{ \"a\" : [ ] , \"b\" : { } , \"c\" : [ 1 , 2 ] }\n", true, true},
	{"empty", `{}`, true, true},
	{"empty-name", `{"":1}`, true, true},
	{"numbers", `{"a":[0,-0,10,1.5,-0.5,1e5,1E+5,1.0e-10,123456789012345678901234567890]}`, true, true},
	{"replacement-character", "{\"a\":\"\uFFFD\"}", true, true},
	{"same-name-elsewhere", `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`, true, true},
	{"escapes", `{"a":"\"\\\/\b\f\n\r\t\u0000\uABCD\ud7ff\uE000"}`, true, true},
	{"names-at-the-limit", names(quickNames), true, true},
	{"names-one-past", names(quickNames + 1), false, true},
	{"open-names-at-the-limit", around(4, quickOpen/4), true, true},
	{"open-names-one-past", `{"a":` + around(4, quickOpen/4) + `}`, false, true},
	{"depth-at-the-limit", nested(quickDepth), true, true},
	{"depth-one-past", nested(quickDepth + 2), false, true},
	{"pair", `{"a":"\ud83d\ude00"}`, false, true},
	{"escape-in-a-name", `{"\u0061":1}`, false, true},
	{"half-of-a-pair", `{"a":"\ud83d"}`, false, false},
	{"same-name-twice", `{"a":1,"a":2}`, false, false},
	{"same-name-twice-by-an-escape", `{"a":1,"\u0061":2}`, false, false},
	{"same-name-twice-inside", `{"a":[{"b":1,"c":2,"b":3}]}`, false, false},
	{"broken-utf8", "{\"a\":\"\xff\"}", false, false},
	{"cut-utf8", "{\"a\":\"\xc3\"}", false, false},
	{"surrogate-in-utf8", "{\"a\":\"\xed\xa0\x80\"}", false, false},
	{"broken-utf8-in-a-name", "{\"\xff\":1}", false, false},
	{"byte-order-mark", "\ufeff{}", false, false},
	{"control-character", "{\"a\":\"\x1f\"}", false, false},
	{"unknown-escape", `{"a":"\x"}`, false, false},
	{"short-escape", `{"a":"\u00f"}`, false, false},
	{"escape-with-other-letters", `{"a":"\u00fg"}`, false, false},
	{"cut-escape", `{"a":"\`, false, false},
	{"leading-zero", `{"a":01}`, false, false},
	{"leading-plus", `{"a":+1}`, false, false},
	{"minus-alone", `{"a":-}`, false, false},
	{"no-digits-behind-the-point", `{"a":1.}`, false, false},
	{"no-digits-before-the-point", `{"a":.5}`, false, false},
	{"no-digits-in-the-exponent", `{"a":1e+}`, false, false},
	{"hexadecimal", `{"a":0x1}`, false, false},
	{"word-in-capitals", `{"a":True}`, false, false},
	{"word-cut", `{"a":nul`, false, false},
	{"word-with-more", `{"a":nulll}`, false, false},
	{"comma-at-the-end", `{"a":1,}`, false, false},
	{"comma-at-the-end-of-an-array", `{"a":[1,]}`, false, false},
	{"comma-missing", `{"a":1 "b":2}`, false, false},
	{"colon-missing", `{"a" 1}`, false, false},
	{"value-missing", `{"a":}`, false, false},
	{"name-that-is-no-string", `{1:2}`, false, false},
	{"not-closed", `{"a":1`, false, false},
	{"closed-by-another", `{"a":[1}}`, false, false},
	{"text-behind", `{} {}`, false, false},
	{"array", `[{}]`, false, false},
	{"nothing", ``, false, false},
	{"blanks", `  `, false, false},
}

func TestUsualMessagesAreReadTheQuickWay(t *testing.T) {
	for _, tt := range quickCases {
		t.Run(tt.name, func(t *testing.T) {
			quickly, read := agree(t, []byte(tt.doc))
			if quickly != tt.quick || read != tt.read {
				t.Errorf("read the quick way %t, at all %t; want %t, %t", quickly, read, tt.quick, tt.read)
			}
		})
	}
}

// agree checks that the quick way takes nothing that the decoder does not, and reads it alike.
func agree(t *testing.T, doc []byte) (quickly, read bool) {
	t.Helper()
	type visited struct{ Name, Value string }
	var slow, fast []visited
	err := Each(doc, func(name string, value jsontext.Value) error {
		slow = append(slow, visited{name, string(value)})
		return nil
	})
	var q quick
	if quickly = q.read(doc); !quickly {
		return false, err == nil
	}
	for _, m := range q.members[:q.n] {
		fast = append(fast, visited{string(m.name), string(m.value)})
	}
	if diff := cmp.Diff(slow, fast); err != nil || diff != "" {
		t.Fatalf("%q: the quick way reads it, the decoder says %v (-decoder +quick)\n%s", doc, err, diff)
	}
	if depth(doc) != nil {
		t.Fatalf("%q is nested too deeply", doc)
	}
	return true, true
}

// What is a little wrong is what a reader in a hurry would take. Texts are changed at random places, by pieces that mean something.
func TestTheQuickWayTakesNothingThatTheDecoderDoesNot(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pieces := strings.Split(`{ } [ ] , : " \ \u \ud8 00 0 1 - + . e E a n true false null "a" "a":1, "b": / é`, " ")
	pieces = append(pieces, " ", "\n", "\x00", "\x1f", "\x7f", "\x80", "\xc3", "\xed\xa0\x80", "\xf4\x90", "\u2028", "\ufeff")
	var quickly, read int
	for range 60_000 {
		doc := []byte(quickCases[random.IntN(len(quickCases))].doc)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(doc) + 1)
			cut := at + random.IntN(min(4, len(doc)-at+1))
			with := ""
			if random.IntN(4) > 0 {
				with = pieces[random.IntN(len(pieces))]
			}
			doc = append(append(append([]byte(nil), doc[:at]...), with...), doc[cut:]...)
		}
		q, r := agree(t, doc)
		if q {
			quickly++
		}
		if r {
			read++
		}
	}
	if quickly < 1000 || quickly == read {
		t.Errorf("of the texts that can be read (%d) the quick way reads %d: the test shows nothing", read, quickly)
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
				if _, err := Read(doc); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
