package gates

import (
	"strings"
	"unicode"
)

// A disguise rewrites a request so that a person can still read it.
type disguise struct {
	name  string
	apply func(string) string
}

// disguises holds the plain text and the disguises that the default rules claim to recognise.
var disguises = []disguise{
	{"plain", func(s string) string { return s }},
	{"upper_case", strings.ToUpper},
	{"wide_spaces", replacing(" ", "\u00a0\t ")},
	{"polite", func(s string) string { return "Hello, if you can, " + s + ", please!" }},
	{"zero_width", between("\u200b", 2)},
	{"soft_hyphens", between("\u00ad", 3)},
	{"full_width", func(s string) string { return strings.Map(fullWidth, s) }},
	{"cyrillic", replacing("a", "а", "c", "с", "e", "е", "o", "о", "p", "р", "x", "х", "i", "і", "s", "ѕ")},
	{"greek_capitals", replacing("a", "Α", "b", "Β", "e", "Ε", "h", "Η", "n", "Ν", "m", "Μ", "t", "Τ", "k", "Κ")},
	{"marks", replacing("a", "á", "e", "ë", "i", "ì", "o", "ø", "c", "ç", "n", "ñ", "s", "š")},
	{"struck_through", marked},
	{"leet", replacing("a", "4", "e", "3", "i", "1", "o", "0", "s", "5")},
	{"dots_between", between(".", 1)},
	{"hyphens_between", between("-", 3)},
	{"invisible_tags", tagged},
}

func replacing(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }

// between puts a separator behind every few letters of longer words.
func between(separator string, every int) func(string) string {
	return func(text string) string {
		words := strings.Split(text, " ")
		for i, word := range words {
			letters := []rune(word)
			if len(letters) < 4 {
				continue
			}
			var b strings.Builder
			for j, r := range letters {
				if j > 0 && j%every == 0 {
					b.WriteString(separator)
				}
				b.WriteRune(r)
			}
			words[i] = b.String()
		}
		return strings.Join(words, " ")
	}
}

func fullWidth(r rune) rune {
	if r > ' ' && r <= '~' {
		return r + 0xFEE0
	}
	return r
}

// marked strikes every letter through.
func marked(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
		if unicode.IsLetter(r) {
			b.WriteRune('\u0336')
		}
	}
	return b.String()
}

// tagged is written in invisible tag characters, behind a harmless request.
func tagged(s string) string {
	return "Summarize entry-002 " + strings.Map(func(r rune) rune {
		if r < 0x80 {
			return 0xE0000 + r
		}
		return r
	}, s)
}
