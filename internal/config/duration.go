package config

import (
	"regexp"
	"strconv"
)

// durationPattern matches Go's syntax of durations, for whole milliseconds and without a sign. This package does not import package time,
// so it parses durations itself; a test compares it with the standard library.
var durationPattern = regexp.MustCompile(`^([0-9]{1,9}(\.[0-9]{1,3})?(ms|s|m|h))+$`)

var durationPart = regexp.MustCompile(`([0-9]+)(?:\.([0-9]+))?(ms|s|m|h)`)

var unitMillis = map[string]int64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}

// maxDurationParts keeps the sum of all parts within an int64.
const maxDurationParts = 4

// parseDuration returns the milliseconds of text. ok is false if text is not a duration of whole milliseconds.
func parseDuration(text string) (ms int64, ok bool) {
	if !durationPattern.MatchString(text) {
		return 0, false
	}
	for i, part := range durationPart.FindAllStringSubmatch(text, -1) {
		if i == maxDurationParts {
			return 0, false
		}
		// At most 9 digits and 3 decimals: thousandths of a millisecond fit into 63 bits.
		thousandths, err := strconv.ParseInt(part[1]+(part[2] + "000")[:3], 10, 64)
		if err != nil {
			return 0, false
		}
		thousandths *= unitMillis[part[3]]
		if thousandths%1000 != 0 {
			return 0, false
		}
		ms += thousandths / 1000
	}
	return ms, true
}

// writeDuration writes milliseconds with the largest unit that divides them. It writes zero as 0s.
func writeDuration(ms int64) string {
	if ms == 0 {
		return "0s"
	}
	for _, unit := range []string{"h", "m", "s"} {
		if ms >= unitMillis[unit] && ms%unitMillis[unit] == 0 {
			return strconv.FormatInt(ms/unitMillis[unit], 10) + unit
		}
	}
	return strconv.FormatInt(ms, 10) + "ms"
}
