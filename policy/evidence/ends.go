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
	before, after := window(value, at)
	if mark, _ := utf8.DecodeRuneInString(after); unicode.IsMark(mark) {
		return false // the accent belongs to the last character
	}
	if crosses(before+after, len(before)) {
		return false
	}
	if isASCII(before) && isASCII(after) {
		return true
	}
	before, after = fold(before), fold(after)
	return !crosses(before+after, len(before))
}

// window returns up to windowBytes, and the rest of a character, on either side of at.
func window(value string, at int) (before, after string) {
	left, right := max(0, at-windowBytes), min(len(value), at+windowBytes)
	for left > 0 && !utf8.RuneStart(value[left]) {
		left--
	}
	for right < len(value) && !utf8.RuneStart(value[right]) {
		right++
	}
	return value[left:at], value[at:right]
}

// crosses reports whether a chunk or a token of several chunks begins before at and ends behind it.
func crosses(s string, at int) bool {
	list := words(s)
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
