package canonical

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// documents are ordinary and other documents, JSON and none.
var documents = []string{
	``, ` `, `{}`, `[]`, ` { } `, `[ ]`, `""`, `"a"`, `null`, `true`, `false`, `nul`, `truefalse`, `0`, `-0`, `00`, `01`, `-`, `-01`, `1.`, `.5`,
	`1.50`, `1e5`, `1E+05`, `1e`, `1e+`, `-1.5e-300`, `1.e1`, `12345678901234567890123`, `1 2`, `[1 2]`, `[1,]`, `[,1]`, `{,}`, `{"a":1,}`,
	`{"a"}`, `{"a":}`, `{"a":1 "b":2}`, `{a:1}`, `{1:1}`, `[1`, `{"a":1`, `{"a`, `"a`, `"\`, `"\"`, `]`, `}`, `[}`, `{]`,
	`{"b":2,"a":1}`, `{"b":{"d":1,"c":[{"z":1,"y":2}]},"a":1,"":0}`, `{"a":1,"a":1}`, `{"b":1,"a":2,"b":3}`, `{"a":1,"ab":2,"a b":3,"A":4}`,
	"{\"a\":1,\"\\u0061\":2}", "{\"\\u0062\":1,\"a\":2}", `{"é":1,"e":2}`, "{\"\U0001f600\":1,\"\ufb33\":2}", `["é€\ud83d\ude00"]`, `["\udc00"]`,
	`["a\/b"]`, `["\b\f\n\r\t\"\\"]`, `["\u000a"]`, `["\x"]`, "[\"\x00\"]", "[\"\n\"]", "[\"\x7f\"]", "{\"\x7f\":1,\"~\":2}", "[\"\xff\"]", "[\"\xed\xa0\x80\"]",
	"[\"\u2028\u2029<>&\"]", "\ufeff{}", "{}\x00", " \t\r\n{\"a\" : [ 1 , 2 ] }\n", "\v{}",
	strings.Repeat("[", 31) + strings.Repeat("]", 31), strings.Repeat("[", 32) + strings.Repeat("]", 32), strings.Repeat("[", 33) + strings.Repeat("]", 33),
	strings.Repeat(`{"b":0,"a":`, 32) + "1" + strings.Repeat("}", 32), strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
	`{"9":1,"8":1,"7":1,"6":1,"5":1,"4":1,"3":1,"2":1,"1":1,"0":1}`, `{"9":1,"8":1,"7":1,"6":1,"5":1,"4":1,"3":1,"2":1,"1":1,"8":1}`,
	`{"args":{"message":"hello"},"server":"kb","tool":"echo","type":"call_tool"}`,
	`{"content":[{"type":"text","text":"say \"hello\""}],"isError":false,"_meta":{"n":1.0}}`,
}

// FuzzOrdinary holds the one pass over ordinary documents to the decoder.
func FuzzOrdinary(f *testing.F) {
	for _, doc := range documents {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		got, err := JSON([]byte(doc))
		want, wantErr := decoded([]byte(doc))
		if d := cmp.Diff(string(want), string(got)); d != "" || (err == nil) != (wantErr == nil) {
			t.Errorf("JSON(%q) = %v, want %v; differs (-want +got):\n%s", doc, err, wantErr, d)
		}
	})
}

// TestOrdinary says which documents need no decoder: those that calls mostly are.
func TestOrdinary(t *testing.T) {
	for _, tc := range []struct {
		name, doc string
		want      bool
	}{
		{"plan", `{"args":{"message":"hello"},"server":"kb","tool":"echo","type":"call_tool"}`, true},
		{"out-of-order-and-spaced", `{ "type": "text", "text": "é\n" }`, true},
		{"numbers", `[0,-1.50,1e9]`, true},
		{"name-twice", `{"a":1,"b":2,"a":1}`, false},
		{"name-escaped", `{"a\n":1}`, false},
		{"name-not-ascii", `{"é":1}`, false},
		{"another-escape", `"\u00e9"`, false},
		{"not-utf8", "\"\xff\"", false},
		{"text-behind", `{}{}`, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := ordinary{doc: []byte(tc.doc)}
			if got := o.whole(); got != tc.want {
				t.Errorf("%s is ordinary: %v, want %v", tc.doc, got, tc.want)
			}
		})
	}
}

func plain[T string | []byte](s T) bool { return plainEnd(s, 0) == len(s) }

// TestPlain holds eight bytes at once to one after the other, for every byte at every place.
func TestPlain(t *testing.T) {
	for size := range 18 {
		if !plain(strings.Repeat("a", size)) {
			t.Errorf("%d letters are not plain", size)
		}
		for at := range size {
			for c := range 256 {
				b := []byte(strings.Repeat("~", size))
				b[at] = byte(c)
				want := ' ' <= c && c <= '~' && c != '"' && c != '\\'
				if got := plain(b); got != want || plain(string(b)) != want {
					t.Fatalf("plain(%q) = %v, want %v", b, got, want)
				}
			}
		}
	}
}

func TestDigestNames(t *testing.T) {
	for _, size := range []int{0, 10, smallThing, 3 * smallThing} {
		b := []byte(strings.Repeat("x", size))
		d := Sum("plan", b)
		if !d.Names("plan", b) {
			t.Errorf("the digest of %d bytes does not name them", size)
		}
		if d.Names("plans", b) || d.Names("plan", append(b, 'x')) || Digest("").Names("plan", b) || d[:70].Names("plan", b) {
			t.Errorf("the digest of %d bytes names something else", size)
		}
	}
}

// FuzzQuote holds what is quoted here to the encoder, behind what is written already.
func FuzzQuote(f *testing.F) {
	for c := range 256 {
		f.Add(string([]byte{byte(c)}))
		f.Add("plain text of words " + string([]byte{'"', byte(c), '\\'}) + " and more of it")
	}
	for _, doc := range documents {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const before = `{"a":`
		got, ok := quote(append(make([]byte, 0, 64), before...), text)
		want, err := jsontext.AppendQuote([]byte(before), text)
		switch {
		case ok && (err != nil || string(got) != string(want)):
			t.Errorf("quote(%q) = %s, want %s, %v", text, got, want, err)
		case !ok && string(got) != before:
			t.Errorf("quote(%q) gives up and leaves %s, want %s", text, got, before)
		case ok != (strings.IndexFunc(text, func(r rune) bool {
			return (r < ' ' || r > '~') && !strings.ContainsRune("\b\f\n\r\t", r)
		}) < 0):
			t.Errorf("quote(%q) = %v, want it for plain text and what has a short escape", text, ok)
		}
		if whole := Text(text).append([]byte(before)); err == nil && string(whole) != string(want) {
			t.Errorf("the text %q is written as %s, want %s", text, whole, want)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	for _, bm := range []struct{ name, doc string }{
		{"plan", `{"args":{"message":"hello"},"server":"kb","tool":"echo","type":"call_tool"}`},
		{"result", `{"content":[{"type":"text","text":"hello"}]}`},
		{"large", `{"content":[{"type":"text","text":"` + strings.Repeat("Logs are kept.\\n", 4<<10) + `"}]}`},
	} {
		doc := []byte(bm.doc)
		for name, read := range map[string]func([]byte) ([]byte, error){"ordinary": JSON, "decoded": decoded} { // in any order
			b.Run(bm.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(doc)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := read(doc); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
