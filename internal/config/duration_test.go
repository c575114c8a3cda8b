package config

import (
	"testing"
)

func TestParseDuration(t *testing.T) {
	for _, c := range []struct {
		text string
		ms   int64
		ok   bool
	}{
		{"10s", 10_000, true}, {"2m", 120_000, true}, {"1m30s", 90_000, true}, {"1.5h", 5_400_000, true},
		{"500ms", 500, true}, {"0.001s", 1, true}, {"1h1m1s1ms", 3_661_001, true}, {"0s", 0, true},
		{"999999999h", 999_999_999 * 3_600_000, true},
		{"0.5ms", 0, false}, {"1s0.5ms", 0, false},
	} {
		ms, ok := parseDuration(c.text)
		if ms != c.ms || ok != c.ok {
			t.Errorf("parseDuration(%q) = %d, %v, want %d, %v", c.text, ms, ok, c.ms, c.ok)
		}
		if back, again := parseDuration(writeDuration(ms)); ok && (back != ms || !again) {
			t.Errorf("parseDuration(writeDuration(%d)) = %d, %v", ms, back, again)
		}
	}
}
