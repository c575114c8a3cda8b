package upstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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

// at says the lines with the first times messages of a method.
func at(method string, times int, lines ...string) func(string, int) []string {
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
	return on("tools/list", func(w spoken) []string {
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
		"changes-before-listing":       func() script { return talkative(at("initialize", 1, changed...), quiet) },
		"changes-during-one-listing":   func() script { return talkative(at("tools/list", 1, changed...), quiet) },
		"changes-during-two-listings":  func() script { return talkative(at("tools/list", 2, changed...), quiet) },
		"changes-during-every-listing": func() script { return talkative(at("tools/list", always, changed...), quiet) },
		"changes-five-times": func() script {
			return talkative(at("tools/list", 1, slices.Concat(changed, changed, changed, changed, changed)...), quiet)
		},
		"changes-after-every-listing": func() script { return talkative(quiet, at("tools/list", always, changed...)) },
		"changes-during-the-call":     func() script { return talkative(at("tools/call", 1, changed...), quiet) },
		"changes-as-a-request": func() script {
			return talkative(at("tools/call", 1,
				`{"jsonrpc":"2.0","id":"ask","method":"`+noteToolsChanged+`"}`, untilRefused), quiet)
		},
		"says-other-things": func() script {
			return talkative(at("tools/list", always, note("notifications/prompts/list_changed"),
				note("notifications/resources/list_changed"), note("notifications/tools/list_Changed"),
				note("notifications/tools"), pingAsk, untilAnswered), quiet)
		},
		"changes-during-the-first-page":  func() script { return paged(1) },
		"changes-during-the-second-page": func() script { return paged(2) },
	})
}

// A listing during which the tools change is made again, a bounded number of times.
func TestChangesDuringListing(t *testing.T) {
	tests := []struct {
		role, tool string // the tool on the first page of the listing that is given
		changed    bool
	}{
		{"says-nothing", "listing-1", false},
		{"says-other-things", "listing-1", false},
		{"changes-before-listing", "listing-1", false},
		{"changes-during-one-listing", "listing-2", false},
		{"changes-five-times", "listing-2", false},
		{"changes-during-the-first-page", "page-3", false},
		{"changes-during-the-second-page", "page-3", false},
		{"changes-during-two-listings", "listing-3", false}, // the last that maxListings allows
		{"changes-during-every-listing", "listing-3", true}, // one more would be needed
	}
	for _, tt := range tests {
		t.Run(tt.role, func(t *testing.T) {
			overEach(t, tt.role, func(t *testing.T, s Server) {
				u := upstreams(t, Limits{}, s)
				if page := string(listed(t, u).Pages[0]); !strings.Contains(page, `"`+tt.tool+`"`) {
					t.Errorf("Pages[0] = %s, want the tool %s", page, tt.tool)
				}
				if changed := outdated(u, s.Name); changed != tt.changed {
					t.Errorf("Changed() = %t, want %t", changed, tt.changed)
				}
				r := call(t.Context(), u, s.Name, `{}`)
				if tt.changed {
					stopped(t, r)
				} else if r.Effect != EffectDone {
					t.Errorf("Call() = %+v, want it done", r)
				}
			})
		})
	}
}

// stopped checks that a call was not sent because the tools have changed.
func stopped(t *testing.T, r Returned) {
	t.Helper()
	if r.Code != CodeChanged || r.Effect != EffectNotSent || r.Result != nil || r.Reason == "" {
		t.Errorf("Call() = %+v, want %s, not_sent and a reason", r, CodeChanged)
	}
}

// The change comes after the listing, the call that it comes with is finished, no other is sent, and the next listing
// makes good for it, in the same session.
func TestAChangeStopsCallsUntilTheNextListing(t *testing.T) {
	for _, role := range []string{"changes-during-the-call", "changes-as-a-request"} {
		t.Run(role, func(t *testing.T) {
			overEach(t, role, func(t *testing.T, s Server) {
				u := upstreams(t, Limits{}, s)
				listed(t, u)
				made := func(n int) {
					t.Helper()
					r := call(t.Context(), u, s.Name, `{}`)
					if want := fmt.Sprintf(`{"content":[],"call":%d}`, n); r.Effect != EffectDone || string(r.Result) != want {
						t.Errorf("Call() = %+v %s, want %s", r, r.Result, want)
					}
				}
				made(1)
				if !outdated(u, s.Name) {
					t.Error("Changed() = false, want true")
				}
				for range 2 { // the refusal ends nothing
					stopped(t, call(t.Context(), u, s.Name, `{}`))
				}
				if page := string(listed(t, u).Pages[0]); !strings.Contains(page, "listing-2") {
					t.Errorf("Pages[0] = %s, want the second listing of the same session", page)
				}
				if outdated(u, s.Name) {
					t.Error("Changed() after List() = true, want false")
				}
				made(2) // the server saw nothing of the calls between
			})
		})
	}
}

func TestAChangeAfterTheListing(t *testing.T) {
	overEach(t, "changes-after-every-listing", func(t *testing.T, s Server) {
		if s.Type == TypeHTTP {
			t.Skip("a stream ends with its answer; TestNewsBetweenRequests has the other stream")
		}
		u := upstreams(t, Limits{}, s)
		listed(t, u)
		eventually(t, "the change was heard", func() bool { return outdated(u, s.Name) })
		stopped(t, call(t.Context(), u, s.Name, `{}`))
	})
}

// latest is the number of a server's last listing.
func latest(u *Upstreams, server string) uint64 {
	if s := u.byName[server].current(); s != nil {
		return s.begun.Load()
	}
	return 0
}

func outdated(u *Upstreams, server string) bool { return u.Changed(server, latest(u, server)) }

func TestChangedIsAskedOfOneServer(t *testing.T) {
	var servers []Server
	for i, role := range []string{"says-nothing", "changes-during-every-listing"} {
		s := serveScript(t, roles[role](), true).server()
		s.Name = fmt.Sprint("s", i)
		servers = append(servers, s)
	}
	u := upstreams(t, Limits{}, servers...)
	if u.Changed("s1", 1) || u.Changed("nobody", 1) {
		t.Error("Changed() before List(), or of nobody = true, want false: there is no session")
	}
	u.List(t.Context())
	if outdated(u, "s0") || !outdated(u, "s1") {
		t.Errorf("Changed() = %t, %t, want false, true", outdated(u, "s0"), outdated(u, "s1"))
	}
	if r := call(t.Context(), u, "s0", `{}`); r.Effect != EffectDone {
		t.Errorf("Call() to a server that has not changed = %+v, want done", r)
	}
	stopped(t, call(t.Context(), u, "s1", `{}`))
}

// Of two runs that share a session, one listed before the tools changed and one after. What the second lists makes the
// first one's listing no better.
func TestAnotherRunsListingMakesAnOldOneNoBetter(t *testing.T) {
	overEach(t, "changes-during-the-call", func(t *testing.T, s Server) {
		u := upstreams(t, Limits{}, s)
		before := u.List(t.Context())[0].Number
		by := func(listing uint64) Returned {
			return u.Call(t.Context(), Call{Server: s.Name, Tool: "echo", Arguments: []byte(`{}`), RunID: newRun(), Listing: listing})
		}
		if r := by(before); r.Effect != EffectDone { // with it comes the change
			t.Fatalf("Call() = %+v, want done", r)
		}
		after := u.List(t.Context())[0].Number
		if !u.Changed(s.Name, before) || u.Changed(s.Name, after) {
			t.Errorf("Changed() = %t, %t, want true, false", u.Changed(s.Name, before), u.Changed(s.Name, after))
		}
		stopped(t, by(before))
		stopped(t, by(0))
		if r := by(after); r.Effect != EffectDone {
			t.Errorf("Call() by the new listing = %+v, want done", r)
		}
	})
}

// A listing of a session that is gone says nothing of the next.
func TestAListingOfAnotherSessionIsNotGood(t *testing.T) {
	u := upstreams(t, Limits{}, serveScript(t, honest, false).server())
	before := u.List(t.Context())[0].Number
	u.byName["web"].drop()
	listed(t, u)
	if !u.Changed("web", before) {
		t.Error("Changed() by a listing of the session before = false, want true")
	}
}

// The zero session has listed nothing, so it calls nothing.
func TestASessionThatHasNotListedCallsNothing(t *testing.T) {
	g, wire := guarded(t)
	req := request(t, 1, methodCall, `{"name":"echo","arguments":{}}`)
	x := &exchange{method: methodCall, permit: arm("echo", []byte(`{}`))}
	if err := g.Write(withExchange(t.Context(), x), req); err == nil || len(wire.written) != 0 || !x.stale.Load() {
		t.Errorf("Write() = %v, %d written, want it stopped", err, len(wire.written))
	}
	if f := g.session.fault(); f != nil {
		t.Errorf("the session ended: %v, want it to live on", f)
	}
	if err := g.Write(withExchange(t.Context(), x), req); err == nil || g.session.fault() == nil {
		t.Error("the same permit again was not refused, want it spent")
	}
}

// asker is a connection on which a server asks without end.
type asker struct{ recorder }

func (a *asker) Read(context.Context) (jsonrpc.Message, error) {
	id, err := jsonrpc.MakeID("x")
	return &jsonrpc.Request{ID: id, Method: methodPing, Params: []byte(`{"a":"large"}`)}, err
}

func TestRequestsThatWaitForAnAnswerAreBounded(t *testing.T) {
	g, _ := guarded(t)
	g.Connection = &asker{}
	g.session.limits.Unasked = 10 * maxOwed
	read := func() error {
		msg, err := g.Read(t.Context())
		if req, ok := msg.(*jsonrpc.Request); err == nil && (!ok || req.Method != methodPing || req.Params != nil) {
			t.Fatalf("Read() = %+v, want a ping without params", msg)
		}
		return err
	}
	for i := range 3 * maxOwed { // all answered
		if err := read(); err != nil {
			t.Fatalf("Read() number %d = %v, want a request", i+1, err)
		}
		if err := g.Write(t.Context(), &jsonrpc.Response{Result: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range maxOwed {
		if err := read(); err != nil {
			t.Fatalf("Read() with %d that wait = %v, want a request", i, err)
		}
	}
	if err := read(); err == nil || g.session.fault().code != CodeProtocol {
		t.Errorf("Read() with %d that wait = %v, want %s", maxOwed, err, CodeProtocol)
	}
}

func TestIDsOfRequestsAreBounded(t *testing.T) {
	for _, length := range []int{maxTheirID, maxTheirID + 1} {
		id := `"` + strings.Repeat("x", length-2) + `"`
		_, err := readMessage([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}`))
		if (err == nil) != (length == maxTheirID) {
			t.Errorf("readMessage(id of %d bytes) = %v, want an error only past %d", length, err, maxTheirID)
		}
	}
}

func TestAllowance(t *testing.T) {
	var a allowance
	now := time.Unix(1000, 0)
	const limit = 3
	for i := range limit {
		if !a.take(now, limit) {
			t.Fatalf("take() number %d = false, want true", i+1)
		}
	}
	if a.take(now.Add(unaskedWindow-1), limit) {
		t.Error("take() one past the limit, at the end of the window = true, want false")
	}
	for i := range limit {
		if !a.take(now.Add(unaskedWindow), limit) {
			t.Errorf("take() number %d of the next window = false, want true", i+1)
		}
	}
	if a.take(now.Add(unaskedWindow), limit) {
		t.Error("take() one past the limit of the next window = true, want false")
	}
	if new(allowance).take(now, 0) {
		t.Error("take() of no allowance = true, want false")
	}
}
