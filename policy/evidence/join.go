package evidence

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// joinedToken returns the class and the number of words of the token of several words that list
// begins with, or 0.
func joinedToken(s string, list []word) (Class, int) {
	if n := dateWords(s, list); n > 1 {
		return Date, n
	}
	if n := numberRun(s, list); n > 1 {
		return Number, n
	}
	return "", 0
}

// isNear reports whether only white space, at most [maxGap] characters, separates list[i] and
// list[i+1]; with comma, a comma may be before it.
func isNear(s string, list []word, i int, comma bool) bool {
	if i+1 >= len(list) {
		return false
	}
	gap := s[list[i].end:list[i+1].start]
	if comma {
		gap = strings.TrimPrefix(gap, ",")
	}
	return gap != "" && utf8.RuneCountInString(gap) <= maxGap && strings.TrimFunc(gap, unicode.IsSpace) == ""
}

func isYear(w word) bool {
	return len(w.core) == 4 && strings.Trim(w.core, "0123456789") == ""
}

// dateWords counts the words of a date with a month name at the beginning of list: [day]
// month [day] [year].
func dateWords(s string, list []word) int {
	n, hasDay := 0, false
	if list[0].meaning == dayNumber && isNear(s, list, 0, true) {
		n, hasDay = 1, true
	}
	if list[n].meaning != monthName {
		return 0
	}
	n++
	if !hasDay && isNear(s, list, n-1, true) && list[n].meaning == dayNumber {
		n++
	}
	if isNear(s, list, n-1, true) && isYear(list[n]) {
		n++
	}
	return n
}

// numberRun counts the words of a number at the beginning of list: "minus", groups of digits, then
// number words.
func numberRun(s string, list []word) int {
	n := 0
	if list[0].meaning == minusWord && isNear(s, list, 0, false) {
		n = 1
	}

	lead := list[n]
	switch lead.meaning {
	case digitsWord, dayNumber:
		n++
		for isNear(s, list, n-1, false) && isGroup(lead.core, 1) && isGroup(list[n].core, 3) {
			n++
		}
	case oneWord, numberWord, scaleWord:
		n++
	default:
		return 0
	}

	// Words that belong to the number: "million", "and five", "percent".
	for isNear(s, list, n-1, false) {
		switch list[n].meaning {
		case oneWord, numberWord, scaleWord, shortScale:
			n++
		case andWord:
			if list[n-1].meaning != scaleWord || !isNear(s, list, n, false) ||
				list[n+1].meaning != numberWord && list[n+1].meaning != oneWord {
				return n
			}
			n += 2
		default:
			return n
		}
	}

	return n
}

// isGroup reports whether core begins with least to three digits and, if anything follows them, a
// decimal part follows.
func isGroup(core string, least int) bool {
	integer, _, _ := strings.Cut(core, ".")
	integer, _, _ = strings.Cut(integer, ",")
	return least <= len(integer) && len(integer) <= 3 && strings.Trim(integer, "0123456789") == ""
}
