package secret

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// BenchmarkMasker masks results of the largest size that is read, with and without secrets in them.
func BenchmarkMasker(b *testing.B) {
	const size = 16 << 20
	var values []string
	for i := range 20 {
		values = append(values, fmt.Sprintf("Bearer token-of-server-%02d-%016x", i, i*7919))
	}
	m := New(values)
	fill := func(part string) string { return strings.Repeat(part, size/len(part)) }
	nested := func(text string, levels int) string {
		for range levels {
			quoted, _ := jsontext.AppendQuote(nil, text)
			text = string(quoted)
		}
		return text
	}
	deep := strings.Repeat(`\`, 1<<MaxLevels)
	for _, tt := range []struct{ name, text string }{
		{"plain", fill(`{"title":"to be or not to be, the token of the server"},`)},
		{"escapes", `"` + fill(`a\nb\"c\u00e9`) + `"`},
		{"json-in-json", nested(fill(`{"title":"to be or not","n":12},`), 2)[:size]},
		{"all-levels", deep + fill(`to be or not to be, the token of the server, `)},
		{"hit-in-json", `["` + fill(`a\nb\"c\u00e9`) + `","` + values[3] + `"]`},
		{"hits-all-levels", deep + fill(strings.Repeat(`x`, 1000)+values[3]) + nested(values[3], MaxLevels)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			text := []byte(tt.text)
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				m.Bytes(text)
			}
		})
	}
}
