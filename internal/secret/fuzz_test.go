package secret

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/go-json-experiment/json/jsontext"
)

// holds reports whether a text has one of words, as it is or behind escapes.
func holds(text string, words []string) bool {
	for level := 0; ; level++ {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		next := escapes.ReplaceAllStringFunc(text, meant)
		if next == text && !escapes.MatchString(text) || level == MaxLevels {
			return false
		}
		text = next
	}
}

var escapes = regexp.MustCompile(`\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|` +
	`U000[0-9a-fA-F]{5}|U0010[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|["'\\/abfnrtv])`)

func meant(escape string) string {
	number := func(s string) rune {
		n, err := strconv.ParseUint(s, 16, 32)
		if err != nil {
			panic(err)
		}
		return rune(n)
	}
	switch rest := escape[2:]; escape[1] {
	case 'u':
		if len(escape) == 12 {
			return string(utf16.DecodeRune(number(rest[:4]), number(rest[6:])))
		}
		return string(number(rest))
	case 'U':
		if r := number(rest); !utf16.IsSurrogate(r) {
			return string(r)
		}
		return escape
	case 'x':
		return string([]byte{byte(number(rest))})
	}
	i := strings.IndexByte(`"'\/abfnrtv`, escape[1])
	return "\"'\\/\a\b\f\n\r\t\v"[i : i+1]
}

func isJSON(text []byte) bool {
	return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func FuzzMasker(f *testing.F) {
	f.Fuzz(func(t *testing.T, first, second, text string, nested uint8) {
		values := []string{first, second}
		words := Words(values)
		m := New(values)
		for range nested % 4 {
			quoted, _ := jsontext.AppendQuote(nil, text)
			text = `{"v":` + string(quoted) + `}`
		}
		got := m.Bytes([]byte(text))
		switch hit := holds(text, words); {
		case hit == (string(got) == text):
			t.Errorf("Bytes(%q) of %q = %q; it holds one: %t", text, words, got, hit)
		case holds(string(got), words):
			t.Errorf("Bytes(%q) of %q = %q, which holds one", text, words, got)
		case isJSON([]byte(text)) != isJSON(got) && isJSON([]byte(text)):
			t.Errorf("Bytes(%q) of %q = %q, which is no JSON any more", text, words, got)
		case m.String(text) != string(got):
			t.Errorf("String(%q) = %q, want %q as from Bytes", text, m.String(text), got)
		case !bytes.Equal(m.Bytes(got), got):
			t.Errorf("Bytes(%q) = %q, want it unchanged the second time", got, m.Bytes(got))
		}
	})
}
