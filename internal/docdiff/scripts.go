package docdiff

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLetters bounds the number of letters that are named.
const maxLetters = 8

// OtherScripts names the letters by which one of two texts has a script that the other lacks, or
// mixes scripts in a word that the other lacks: they may look like the letters of the other text.
// It is "" if there are none.
func OtherScripts(before, now string) string {
	var odd []string
	for _, pair := range []struct{ text, other string }{{before, now}, {now, before}} {
		usual, words := scriptsIn(pair.other), make(map[string]bool)
		for word := range strings.FieldsSeq(pair.other) {
			words[word] = true
		}
		for word := range strings.FieldsSeq(pair.text) {
			mixed := len(scriptsIn(word)) > 1 && !words[word]
			for _, r := range word {
				script := scriptOf(r)
				if r < utf8.RuneSelf || script == "" || usual[script] && !mixed {
					continue
				}
				if name := fmt.Sprintf("U+%04X (%s)", r, script); !slices.Contains(odd, name) {
					odd = append(odd, name)
				}
			}
		}
	}

	if more := len(odd) - maxLetters; more > 0 {
		odd = append(odd[:maxLetters:maxLetters], fmt.Sprintf("and %d more", more))
	}

	return strings.Join(odd, ", ")
}

func scriptsIn(text string) map[string]bool {
	scripts := make(map[string]bool)
	for _, r := range text {
		if script := scriptOf(r); script != "" {
			scripts[script] = true
		}
	}
	return scripts
}

// scriptOf returns the script of a letter; "" if it is no letter, or one of no script.
func scriptOf(r rune) string {
	switch {
	case !unicode.IsLetter(r):
		return ""
	case r < utf8.RuneSelf || unicode.Is(unicode.Latin, r):
		return "Latin"
	}
	for _, name := range scriptNames {
		if name != "Common" && name != "Inherited" && unicode.Is(unicode.Scripts[name], r) {
			return name
		}
	}
	return ""
}

var scriptNames = slices.Sorted(maps.Keys(unicode.Scripts))
