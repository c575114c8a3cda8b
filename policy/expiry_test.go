package policy

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestExpiryAfter compares with package time.
func TestExpiryAfter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	first, last := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), time.Date(9990, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for range 10_000 {
		at := time.UnixMilli(first + rng.Int64N(last-first)).UTC()
		ms := 1 + rng.Int64N(60*24*60*60*1000)
		want := at.Add(time.Duration(ms) * time.Millisecond).Format(TimeForm)
		if got := expiryAfter(at.Format(TimeForm), ms); got != want {
			t.Fatalf("expiryAfter(%s, %d) = %q, want %q", at.Format(TimeForm), ms, got, want)
		}
	}
}

func TestExpiryOfWhatIsNoTime(t *testing.T) {
	for name, tt := range map[string]struct {
		now string
		ms  int64
	}{
		"empty": {"", 1000}, "no-zone": {"2026-11-21T09:00:00.000", 1000}, "offset": {"2026-11-21T09:00:00.000+00:00", 1000},
		"whole-seconds": {"2026-11-21T09:00:00Z", 1000}, "fraction": {"2026-11-21T09:00:00.5Z", 1000},
		"microseconds": {"2026-11-21T09:00:00.000000Z", 1000}, "comma": {"2026-11-21T09:00:00,000Z", 1000},
		"month-13": {"2026-13-21T09:00:00.000Z", 1000}, "february-30": {"2026-02-30T09:00:00.000Z", 1000},
		"leap-second": {"2026-12-31T23:59:60.000Z", 1000}, "hour-24": {"2026-12-31T24:00:00.000Z", 1000},
		"text-behind": {"2026-11-21T09:00:00.000Z ", 1000}, "no-time-at-all": {"2026-11-21T09:00:00.000Z", 0},
		"negative": {"2026-11-21T09:00:00.000Z", -1}, "past-the-last-year": {"9999-12-31T23:59:59.000Z", 1000},
	} {
		if got := expiryAfter(tt.now, tt.ms); got != "" {
			t.Errorf("%s: expiryAfter(%q, %d) = %q, want nothing", name, tt.now, tt.ms, got)
		}
	}
}
