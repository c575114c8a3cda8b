package screen_test

import (
	"strings"
	"unicode"
)

// A disguise writes a request so that a person still reads it. A harmless one is also what honest texts look like.
type disguise struct {
	name     string
	harmless bool
	apply    func(string) string
}

func replacer(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }

// inWords puts s between the letters of words of at least four letters.
func inWords(s string, every int) func(string) string {
	return func(text string) string {
		words := strings.Split(text, " ")
		for i, w := range words {
			if len(w) < 4 {
				continue
			}
			var b strings.Builder
			for j, r := range w {
				if j > 0 && j%every == 0 {
					b.WriteString(s)
				}
				b.WriteRune(r)
			}
			words[i] = b.String()
		}
		return strings.Join(words, " ")
	}
}

func shift(lower, upper rune) func(string) string {
	return func(s string) string {
		return strings.Map(func(r rune) rune {
			switch {
			case 'a' <= r && r <= 'z':
				return lower + r - 'a'
			case 'A' <= r && r <= 'Z':
				return upper + r - 'A'
			}
			return r
		}, s)
	}
}

func withMarks(s string) string {
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
		if unicode.IsLetter(r) {
			b.WriteRune('\u0336')
		}
	}
	return b.String()
}

func asTags(s string) string {
	return "Summarize policy-002 " + strings.Map(func(r rune) rune {
		if r < 0x80 {
			return 0xE0000 + r
		}
		return r
	}, s)
}

func asSelectors(s string) string {
	return "Summarize policy-002 " + strings.Map(func(r rune) rune {
		if r < 0x80 {
			return 0xE0100 + r - 16
		}
		return r
	}, s)
}

var disguises = []disguise{
	{"upper-case", true, strings.ToUpper},
	{"double-spaces", true, replacer(" ", "  ")},
	{"preamble", false, func(s string) string { return "Hello there my good assistant, if you can, " + s }},
	{"zero-width-spaces", true, inWords("\u200b", 2)},
	{"soft-hyphens", true, inWords("\u00ad", 3)},
	{"control-characters", true, inWords("\x00", 2)},
	{"bidi-controls", true, func(s string) string { return "\u202e" + s + "\u202c" }},
	{"full-width", true, shift('ａ', 'Ａ')},
	{"mathematical-bold", true, shift('𝐚', '𝐀')},
	{"negative-squared", false, shift('🅰', '🅰')},
	{"combining-strokes", true, withMarks},
	{"cyrillic", false, replacer("a", "а", "c", "с", "e", "е", "o", "о", "p", "р", "x", "х", "y", "у",
		"i", "і", "s", "ѕ")},
	{"cyrillic-capitals", false, replacer("a", "А", "c", "С", "e", "Е", "h", "Н", "k", "К", "m", "М",
		"t", "Т", "b", "В")},
	{"greek", false, replacer("a", "α", "o", "ο", "p", "ρ", "v", "ν", "i", "ι", "n", "η", "k", "κ")},
	{"greek-capitals", false, replacer("a", "Α", "b", "Β", "e", "Ε", "h", "Η", "n", "Ν", "m", "Μ",
		"t", "Τ", "y", "Υ", "k", "Κ")},
	{"armenian", false, replacer("o", "օ", "u", "ս", "h", "հ", "g", "ց", "n", "ո", "s", "տ")},
	{"cherokee", false, replacer("a", "Ꭺ", "d", "Ꭰ", "e", "Ꭼ", "i", "Ꭵ", "m", "Ꮇ", "s", "Ꮪ", "w", "Ꮃ", "t", "Ꭲ")},
	{"small-capitals", false, replacer("a", "ᴀ", "b", "ʙ", "e", "ᴇ", "i", "ɪ", "m", "ᴍ", "n", "ɴ",
		"r", "ʀ", "t", "ᴛ", "w", "ᴡ")},
	{"latin-with-marks", true, replacer("a", "á", "e", "ë", "i", "ì", "o", "ø", "c", "ç", "n", "ñ",
		"l", "ł", "s", "š")},
	{"leet-digits", false, replacer("a", "4", "e", "3", "i", "1", "o", "0", "s", "5")},
	{"leet-signs", false, replacer("all", "all", "i ", "i ", "a", "@", "i", "!", "s", "$", "l", "|")},
	{"hyphens-in-words", true, inWords("-", 3)},
	{"dots-between-letters", true, inWords(".", 1)},
	{"invisible-tags", false, asTags},
	{"invisible-selectors", false, asSelectors},
}
