package docdiff

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"pgfsm/policy/screen"
)

// maxLookalikes bounds how many characters are named.
const maxLookalikes = 8

// Lookalikes names the characters by which two texts differ that people cannot tell apart; "" if they can.
func Lookalikes(before, now string) string { return named(alike(before, now)) }

// LookalikeWords names the characters by which words of two texts differ that people cannot tell apart; "" if there are none.
func LookalikeWords(before, now string) string {
	var odd []string
	was := make(map[string]string) // words that are gone, by what they look like
	look := func(word string) [2]string { return [2]string{asciiLook(word), screen.Skeleton(screen.Fold(word))} }
	rows := append(compareWords(before, now), Row{Sign: Same})
	for i, from := 0, 0; i < len(rows); i++ {
		if rows[i].Sign != Same {
			continue
		}
		clear(was)
		for _, gone := range rows[from:i] {
			if word := strings.TrimSpace(gone.Text); gone.Sign == Minus {
				for _, l := range look(word) {
					was[l] = word
				}
			}
		}
		for _, come := range rows[from:i] {
			if word := strings.TrimSpace(come.Text); come.Sign == Plus {
				for _, l := range look(word) {
					if old, found := was[l]; found && l != "" {
						odd = append(odd, alike(old, word)...)
					}
				}
			}
		}
		from = i + 1
	}
	slices.Sort(odd)
	return named(slices.Compact(odd))
}

func named(odd []string) string {
	if more := len(odd) - maxLookalikes; more > 0 {
		odd = append(odd[:maxLookalikes:maxLookalikes], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(odd, " ")
}

// alike returns what two texts that look the same differ in: characters beyond ASCII, and otherwise pairs within it.
func alike(before, now string) (odd []string) {
	if screen.Skeleton(screen.Fold(before)) == screen.Skeleton(screen.Fold(now)) {
		was, is := characters(before), characters(now)
		for _, r := range before + now {
			if r >= utf8.RuneSelf && was[r] != is[r] {
				odd = append(odd, fmt.Sprintf("U+%04X", r))
				was[r], is[r] = true, true // named once
			}
		}
	}
	if len(odd) == 0 {
		odd = alikeASCII(before, now)
	}
	return odd
}

func characters(s string) map[rune]bool {
	set := make(map[rune]bool)
	for _, r := range s {
		set[r] = true
	}
	return set
}

// asciiAlike are pieces of ASCII texts that look the same in many typefaces, the first of each row standing for all.
var asciiAlike = [][]string{{"o", "0", "O"}, {"l", "1", "I", "|"}, {"m", "rn"}, {"w", "vv"}}

// asciiLook returns s with all that looks the same in ASCII made the same.
func asciiLook(s string) string { return asciiLooks.Replace(s) }

var asciiLooks = func() *strings.Replacer {
	var pairs []string
	for _, row := range asciiAlike {
		for _, piece := range row[1:] {
			pairs = append(pairs, piece, row[0])
		}
	}
	return strings.NewReplacer(pairs...)
}()

// alikeASCII returns the pairs in which two texts differ, if they differ in such pairs only. o and O alone are no
// reason to look twice.
func alikeASCII(before, now string) (odd []string) {
	for before != "" || now != "" {
		if before != "" && now != "" && before[0] == now[0] {
			before, now = before[1:], now[1:]
			continue
		}
		was, is, found := alikePieces(before, now)
		if !found {
			return nil
		}
		before, now = before[len(was):], now[len(is):]
		if pair := was + "/" + is; !strings.EqualFold(was, is) && !slices.Contains(odd, pair) {
			odd = append(odd, pair)
		}
	}
	return odd
}

// alikePieces returns pieces that two texts begin with, which differ and look the same.
func alikePieces(before, now string) (was, is string, found bool) {
	for _, row := range asciiAlike {
		i := slices.IndexFunc(row, func(piece string) bool { return strings.HasPrefix(before, piece) })
		j := slices.IndexFunc(row, func(piece string) bool { return strings.HasPrefix(now, piece) })
		if i >= 0 && j >= 0 {
			return row[i], row[j], true
		}
	}
	return "", "", false
}
