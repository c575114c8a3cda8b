package gateway

import (
	"net/http"
	"testing"
	"time"
)

func TestDatesAreOfTheirSecond(t *testing.T) {
	var d dates
	zone := time.FixedZone("elsewhere", 3600)
	begin := time.Date(2026, 2, 28, 23, 59, 58, 0, time.UTC)
	for _, c := range []struct {
		name string
		at   time.Time
		want string
	}{
		{"the-first", begin, "Sat, 28 Feb 2026 23:59:58 GMT"},
		{"the-same-second", begin.Add(time.Second - 1), "Sat, 28 Feb 2026 23:59:58 GMT"},
		{"the-next-second", begin.Add(time.Second), "Sat, 28 Feb 2026 23:59:59 GMT"},
		{"the-next-day-in-another-zone", begin.Add(2 * time.Second).In(zone), "Sun, 01 Mar 2026 00:00:00 GMT"},
		{"a-clock-that-was-set-back", begin, "Sat, 28 Feb 2026 23:59:58 GMT"},
	} {
		if got := d.at(c.at); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestAnswersHaveTheirDate(t *testing.T) {
	g, _ := scripted(t, nil)
	before := time.Now().Truncate(time.Second)
	w := serve(g, come("POST", "/mcp", rpc("0", "initialize", `{"protocolVersion":"2025-11-25"}`)))
	at, err := http.ParseTime(w.Header().Get("Date"))
	if err != nil || at.Before(before) || at.After(time.Now()) {
		t.Errorf("the answer is of %v, %v", at, err)
	}
}
