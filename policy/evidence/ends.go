package evidence

import (
	"unicode"
	"unicode/utf8"
)

// windowBytes is the length of the text on either side of an end that decides whether the end is
// clean. A chunk that is longer than the window still crosses the end within it.
const windowBytes = 64

// cleanAt reports whether offset at is outside of chunks and tokens of value, as written and as
// read.
func cleanAt(value string, at int) bool {
	if at == 0 || at == len(value) {
		mark, _ := utf8.DecodeRuneInString(value[at:])
		return !unicode.IsMark(mark)
	}
	left, right := windowAt(value, at)
	if mark, _ := utf8.DecodeRuneInString(right); unicode.IsMark(mark) {
		return false // the accent belongs to the last character
	}
	if crossesToken(left+right, len(left)) {
		return false
	}
	if isASCII(left) && isASCII(right) {
		return true
	}
	left, right = fold(left), fold(right)
	return !crossesToken(left+right, len(left))
}

// windowAt returns up to windowBytes, and the rest of a character, on either side of at.
func windowAt(value string, at int) (before, after string) {
	left, right := max(0, at-windowBytes), min(len(value), at+windowBytes)
	for left > 0 && !utf8.RuneStart(value[left]) {
		left--
	}
	for right < len(value) && !utf8.RuneStart(value[right]) {
		right++
	}
	return value[left:at], value[at:right]
}

// crossesToken reports whether a chunk or a token of several chunks begins before at and ends
// behind it.
func crossesToken(s string, at int) bool {
	list := wordsOf(s)
	for i := 0; i < len(list) && list[i].start < at; {
		_, n := joinedToken(s, list[i:])
		n = max(n, 1)
		if list[i+n-1].end > at {
			return true
		}
		i += n
	}
	return false
}
