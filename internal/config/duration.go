package config

import (
	"regexp"
	"strconv"
)

var durationPart = regexp.MustCompile(`([0-9]+)(?:\.([0-9]+))?(ms|s|m|h)`)

var unitMillis = map[string]int64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}

// parseDuration returns the milliseconds of a text that the schemas accept: Go's syntax of
// durations, with at most four parts and without a sign. ok is false if a part is no whole number
// of them. This package does not import package time.
func parseDuration(text string) (ms int64, ok bool) {
	for _, part := range durationPart.FindAllStringSubmatch(text, -1) {
		// At most 9 digits and 3 decimals: thousandths of a millisecond fit into 63 bits.
		thousandths, err := strconv.ParseInt(part[1]+(part[2] + "000")[:3], 10, 64)
		if thousandths *= unitMillis[part[3]]; err != nil || thousandths%1000 != 0 {
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
