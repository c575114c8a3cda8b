package upstream

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	changedNote = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	pingAsk     = `{"jsonrpc":"2.0","id":"ask","method":"ping"}`
)

// changed is the notification, and then a wait until it has certainly been read.
var changed = []string{changedNote, pingAsk, untilAnswered}

// talkative counts listings and calls, shows the counts in its answers, and says what before and after make of them,
// around the answer to the n-th message of a method.
func talkative(before, after func(method string, n int) []string) script {
	count := map[string]int{}
	return func(w spoken) []string {
		count[w.method]++
		n := count[w.method]
		answer := honest(w)
		switch w.method {
		case "tools/list":
			answer = []string{result(w.id, fmt.Sprintf(`{"tools":[{"name":"listing-%d"}]}`, n))}
		case "tools/call":
			answer = []string{result(w.id, fmt.Sprintf(`{"content":[],"call":%d}`, n))}
		}
		return slices.Concat(before(w.method, n), answer, after(w.method, n))
	}
}

func quiet(string, int) []string { return nil }

// linesAt says the lines with the first times messages of a method.
func linesAt(method string, times int, lines ...string) func(string, int) []string {
	return func(m string, n int) []string {
		if m == method && n <= times {
			return lines
		}
		return nil
	}
}

// paged lists on two pages, and its tools change before the n-th page of all is given.
func paged(n int) script {
	pages := 0
	return answering("tools/list", func(w spoken) []string {
		pages++
		answer := fmt.Sprintf(`{"tools":[{"name":"page-%d"}],"nextCursor":"x"}`, pages)
		if strings.Contains(w.params, `"cursor"`) {
			answer = `{"tools":[]}`
		}
		if pages == n {
			return append(slices.Clone(changed), result(w.id, answer))
		}
		return []string{result(w.id, answer)}
	})
}

const always = 1 << 30

func init() {
	note := func(method string) string { return `{"jsonrpc":"2.0","method":"` + method + `"}` }
	maps.Copy(roles, map[string]func() script{
		"says-nothing":                 func() script { return talkative(quiet, quiet) },
		"changes-before-listing":       func() script { return talkative(linesAt("initialize", 1, changed...), quiet) },
		"changes-during-one-listing":   func() script { return talkative(linesAt("tools/list", 1, changed...), quiet) },
		"changes-during-two-listings":  func() script { return talkative(linesAt("tools/list", 2, changed...), quiet) },
		"changes-during-every-listing": func() script { return talkative(linesAt("tools/list", always, changed...), quiet) },
		"changes-during-the-call":      func() script { return talkative(linesAt("tools/call", 1, changed...), quiet) },
		"says-other-things": func() script {
			return talkative(linesAt("tools/list", always, note("notifications/prompts/list_changed"),
				note("notifications/resources/list_changed"), note("notifications/tools/list_Changed"),
				note("notifications/tools"), pingAsk, untilAnswered), quiet)
		},
		"changes-during-the-second-page": func() script { return paged(2) },
	})
}

// checkStopped checks that a call was not sent because the tools have changed.
func checkStopped(t *testing.T, r Returned) {
	t.Helper()
	if r.Code != CodeChanged || r.Effect != EffectNotSent || r.Result != nil || r.Reason == "" {
		t.Errorf("Call() = %+v, want %s, not_sent and a reason", r, CodeChanged)
	}
}

// latest is the number of a server's last listing.
func latest(u *Upstreams, server string) uint64 {
	if l := clientOf(u).heldLink(server); l != nil {
		if k := l.cached.Load(); k != nil {
			return k.Number
		}
	}
	return 0
}

func TestAllowance(t *testing.T) {
	var a allowance
	now := time.Unix(1000, 0)
	const limit = 3
	for i := range limit {
		if !a.countMessage(now, limit) {
			t.Fatalf("countMessage() number %d = false, want true", i+1)
		}
	}
	if a.countMessage(now.Add(unaskedWindow-1), limit) {
		t.Error("countMessage() one past the limit, at the end of the window = true, want false")
	}
	for i := range limit {
		if !a.countMessage(now.Add(unaskedWindow), limit) {
			t.Errorf("countMessage() number %d of the next window = false, want true", i+1)
		}
	}
	if a.countMessage(now.Add(unaskedWindow), limit) {
		t.Error("countMessage() one past the limit of the next window = true, want false")
	}
	if new(allowance).countMessage(now, 0) {
		t.Error("countMessage() of no allowance = true, want false")
	}
}
