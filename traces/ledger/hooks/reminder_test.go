package hooks_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/hooks"
	"pgfsm/traces/ledger/ledgertest"
)

// count is how many messages of a kind there are about a run.
func (m *mailbox) count(kind string, q ledger.RunRow) (n int) {
	for _, l := range m.got() {
		if l.Type == "approval."+kind && l.Data.Run == q.RunID {
			n++
		}
	}
	return n
}

// TestReminder: a call that still waits gets one reminder when it is due, from one of several processes, also after a restart.
func TestReminder(t *testing.T) {
	d, m := newFixture(t), newMailbox(t)
	look(t, d.sender(hook(m, hooks.Kinds()...)))
	q := d.Hold(2)
	look(t, d.sender(hook(m, hooks.Kinds()...)))
	d.votes(q, alice, true) // decides nothing yet
	d.Clock.Add(45*time.Minute - time.Second)
	look(t, d.sender(hook(m, hooks.Kinds()...)))
	wantKinds(t, m, "requested "+q.RunID)
	d.Clock.Add(time.Second)
	for range 3 {
		look(t, d.sender(hook(m, hooks.Kinds()...))) // another process
	}
	wantKinds(t, m, "requested "+q.RunID, "reminder "+q.RunID)
	l := m.got()[1]
	if l.Data.Outcome != "" || l.Data.Decide == "" || l.Data.Binding != string(q.Binding) || strings.Contains(string(l.Body), "policy-002") {
		t.Errorf("the reminder is %s", l.Body)
	}
	d.votes(q, bob, true)
	d.Clock.Add(time.Hour)
	look(t, d.sender(hook(m, hooks.Kinds()...)))
	wantKinds(t, m, "requested "+q.RunID, "reminder "+q.RunID, "decided "+q.RunID+"approved")
	if w := d.waiting(); len(w) != 0 {
		t.Errorf("waiting = %+v, want none", w)
	}
}

func TestNoReminder(t *testing.T) {
	for _, tc := range []struct {
		name   string
		kinds  []string
		before func(d *fixture, q ledger.RunRow)
		expiry time.Duration
	}{
		{"approved", hooks.Kinds(), func(d *fixture, q ledger.RunRow) { d.votes(q, alice, true) }, time.Hour},
		{"denied", hooks.Kinds(), func(d *fixture, q ledger.RunRow) { d.votes(q, alice, false) }, time.Hour},
		{"expired-while-nobody-looked", hooks.Kinds(), func(d *fixture, _ ledger.RunRow) { d.Clock.Add(time.Hour) }, time.Hour},
		{"waits-no-longer-than-that", hooks.Kinds(), func(*fixture, ledger.RunRow) {}, remindBefore},
		{"not-chosen", []string{hooks.Requested, hooks.Decided}, func(*fixture, ledger.RunRow) {}, time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, m := newFixture(t), newMailbox(t)
			look(t, d.sender(hook(m, tc.kinds...)))
			content := ledgertest.Holding(1)
			content.Policy.Policies[0].Expires = tc.expiry.Milliseconds()
			q := d.HoldBy(carol, content)
			look(t, d.sender(hook(m, tc.kinds...)))
			tc.before(d, q)
			d.Clock.Add(50 * time.Minute)
			look(t, d.sender(hook(m, tc.kinds...)))
			if n := m.count(hooks.Reminder, q); n != 0 || len(m.got()) == 0 {
				t.Errorf("the hook got %q", m.kinds())
			}
			if w := d.waiting(); len(w) != 0 {
				t.Errorf("waiting = %+v, want none", w)
			}
		})
	}
}

// TestRemindersAreSentWhenDue: calls that expire earlier are not kept waiting by those that expire later.
func TestRemindersAreSentWhenDue(t *testing.T) {
	d, m := newFixture(t), newMailbox(t)
	s := d.sender(hook(m, hooks.Reminder))
	look(t, s)
	var all []ledger.RunRow
	for _, hours := range []int64{4, 2, 3, 1} {
		content := ledgertest.Holding(1)
		content.Policy.Policies[0].Expires = (time.Duration(hours) * time.Hour).Milliseconds()
		all = append(all, d.HoldBy(carol, content))
	}
	for _, due := range []int{3, 1, 2, 0} {
		look(t, s)
		d.Clock.Add(time.Hour - time.Second)
		look(t, s)
		if n := m.count(hooks.Reminder, all[due]); n != 1 {
			t.Errorf("call %d has %d reminders when it is due: %q", due, n, m.kinds())
		}
	}
	if n := len(m.got()); n != 4 {
		t.Errorf("%d reminders, want 4: %q", n, m.kinds())
	}
}

// TestReminderIsSentAgain: what fails is sent again under its id, and not after the decision.
func TestReminderIsSentAgain(t *testing.T) {
	d, m := newFixture(t), newMailbox(t, http.StatusInternalServerError, http.StatusInternalServerError)
	s := d.sender(hook(m, hooks.Reminder))
	look(t, s)
	first, second := d.Hold(1), d.Hold(1)
	look(t, s)
	d.Clock.Add(45 * time.Minute)
	look(t, s) // both fail
	d.votes(second, alice, false)
	d.Clock.Add(hooks.Pauses[0])
	look(t, s)
	wantKinds(t, m, "reminder "+first.RunID, "reminder "+second.RunID, "reminder "+first.RunID)
	if all := m.got(); all[0].ID != all[2].ID || string(all[0].Body) != string(all[2].Body) {
		t.Errorf("the second attempt is %s %s, the first was %s %s", all[2].ID, all[2].Body, all[0].ID, all[0].Body)
	}
}
