package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/states"
	"pgfsm/traces/ledger"
)

// TestJoin: a call is joined with the session in which it was announced, at any process, once, and not to a session that is uncertain.
func TestJoin(t *testing.T) {
	d := newFixture(t)
	at := []*fixture{d, d.other()} // the announcement comes to either, and the call to the other
	ann, bob := d.Caller(d.Token("ann", ledger.RoleHook)), d.Caller(d.Token("bob", ledger.RoleHook))
	in := func(id string) states.Session { return states.Session{Client: "claude", ID: id, Call: "call-" + id} }
	for i, c := range []struct {
		name   string
		told   []ledger.Caller
		in     []states.Session
		apart  time.Duration // between announcements
		later  time.Duration
		differ bool // the call has other arguments
		want   string
	}{
		{"announced", []ledger.Caller{ann}, []states.Session{in("1")}, 0, 0, false, "1 - -"},
		{"nobody", nil, nil, 0, 0, false, "- - -"},
		{"by-another-actor", []ledger.Caller{bob}, []states.Session{in("1")}, 0, 0, false, "- - -"},
		{"other-arguments", []ledger.Caller{ann}, []states.Session{in("1")}, 0, 0, true, "- - -"},
		{"twice-in-a-session", []ledger.Caller{ann, ann}, []states.Session{in("1"), in("1")}, 0, 0, false, "1 1 -"},
		{"in-two-sessions", []ledger.Caller{ann, ann}, []states.Session{in("1"), in("2")}, 0, 0, false, "- - -"},
		{"in-two-sessions-one-very-often", slices.Repeat([]ledger.Caller{ann}, 30), append([]states.Session{in("1")}, slices.Repeat([]states.Session{in("2")}, 29)...), 0, 0, false, "- - -"},
		{"in-another-session-long-ago", []ledger.Caller{ann, ann}, []states.Session{in("1"), in("2")}, 40 * time.Second, 30 * time.Second, false, "2 - -"},
		{"after-a-minute", []ledger.Caller{ann}, []states.Session{in("1")}, 0, time.Minute, false, "- - -"},
		{"within-a-minute", []ledger.Caller{ann}, []states.Session{in("1")}, 0, time.Minute - time.Millisecond, false, "1 - -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := ledger.AnnouncedCall{Server: "kb", Tool: c.name, Arguments: canonical.Sum("arguments", nil)}
			for n, by := range c.told {
				d.Clock.Add(c.apart)
				check.NoError(t, at[i%2].Announce(t.Context(), by, call, c.in[n]))
			}
			if c.differ {
				call.Arguments = canonical.Sum("arguments", []byte("{}"))
			}
			d.Clock.Add(c.later)
			got := ""
			for n := range 3 {
				session, _, err := at[(i+1+n)%2].Join(t.Context(), "ann", call)
				check.NoError(t, err)
				if session == nil {
					session = &states.Session{ID: "-"}
				}
				got += " " + session.ID
			}
			if got[1:] != c.want {
				t.Errorf("the call and its repetitions join %s, want %s", got[1:], c.want)
			}
		})
	}
	if err := d.Announce(t.Context(), d.Caller(d.Token("ann", ledger.RoleAgent)), ledger.AnnouncedCall{}, in("1")); err == nil {
		t.Error("a token of an agent announces")
	}
}

// TestAnnounces: a hook that has announced any call of an actor within a day knows the actor's sessions.
func TestAnnounces(t *testing.T) {
	d := newFixture(t)
	ann := d.Caller(d.Token("ann", ledger.RoleHook))
	call := func(tool string) ledger.AnnouncedCall { return ledger.AnnouncedCall{Server: "kb", Tool: tool} }
	for _, c := range []struct {
		name  string
		later time.Duration
		tell  bool
		actor string
		want  bool
	}{
		{"nobody", 0, false, "ann", false},
		{"another-call", 0, true, "ann", true},
		{"of-another-actor", 0, false, "bob", false},
		{"after-an-hour", time.Hour, false, "ann", true},
		{"again", 20 * time.Hour, true, "ann", true},
		{"after-a-day", 24 * time.Hour, false, "ann", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.Clock.Add(c.later)
			if c.tell {
				check.NoError(t, d.Announce(t.Context(), ann, call("one"), states.Session{Client: "claude", ID: "1"}))
			}
			session, announces, err := d.Join(t.Context(), c.actor, call("two"))
			if session != nil || announces != c.want || err != nil {
				t.Errorf("Join = %v, %t, %v, want no session and %t", session, announces, err, c.want)
			}
		})
	}
}

// TestPromptsOfASession: each process knows the last prompt of a session, for a day, and no more prompts are recorded than a session may have.
func TestPromptsOfASession(t *testing.T) {
	d := newFixture(t)
	other, by := d.other(), d.Caller(d.Token("ann", ledger.RoleHook))
	last := int64(0)
	for n := range 258 {
		index, err := d.CapturePrompt(t.Context(), by, ledger.Prompt{Session: "claude/s", Text: fmt.Sprint(n)})
		check.NoError(t, err)
		state, err := other.ReadSession(t.Context(), "ann", "claude/s", false)
		if err != nil || (index > last) != (n < 256) || state.Prompt != max(index, last) {
			t.Fatalf("prompt %d has the index %d, and the last one %d, %v; it was %d", n, index, state.Prompt, err, last)
		}
		last = state.Prompt
	}
	for _, c := range []struct{ actor, session string }{{"bob", "claude/s"}, {"ann", "claude/t"}} {
		if state, err := d.ReadSession(t.Context(), c.actor, c.session, false); err != nil || state.Prompt != 0 {
			t.Errorf("%s in %s: %+v, %v, want no prompt", c.actor, c.session, state, err)
		}
	}
	d.Clock.Add(24 * time.Hour)
	if state, err := d.ReadSession(t.Context(), "ann", "claude/s", false); err != nil || state.Prompt != 0 {
		t.Errorf("after a day: %+v, %v, want no prompt", state, err)
	}
}
