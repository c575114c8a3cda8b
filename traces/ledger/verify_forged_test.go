package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// An edit changes the events of a ledger.
type edit = func(*testing.T, []ledger.Event) []ledger.Event

func unedited(_ *testing.T, all []ledger.Event) []ledger.Event { return all }

// A forgery is a ledger that was rewritten as a whole, so that every hash is right.
type forgery struct {
	name string
	edit edit
	what string // a part of the fault; empty: nothing is wrong
}

// run verifies the forgery of a fixture's ledger.
func (f *forgery) run(t *testing.T, d *fixture) {
	t.Helper()
	forged := d.forged(t, f.edit)
	err := forged.View(t.Context(), func(r ledger.Reader) error {
		return alike(ledger.Verify(t.Context(), r, ledger.VerifyOptions{Replayer: traces.NewReplayer(d.Machine, nil)}))
	})
	if f.what == "" && err != nil || f.what != "" && (!errors.Is(err, ledger.ErrTampered) || !strings.Contains(err.Error(), f.what)) {
		t.Errorf("Verify() = %v, want a fault with %q", err, f.what)
	}
	secondOpinion(t, forged, err)
}

// forge verifies each forgery of a fixture's ledger.
func (d *fixture) forge(t *testing.T, forgeries ...forgery) {
	t.Helper()
	for _, f := range forgeries {
		t.Run(f.name, func(t *testing.T) { f.run(t, d) })
	}
}

// forged is the ledger of a fixture as edit wants its events to be, with everything else that follows from them.
func (d *fixture) forged(t *testing.T, change edit) *ledgertest.Store {
	t.Helper()
	ctx, forged := context.Background(), ledgertest.NewStore(t)
	err := d.View(ctx, func(r ledger.Reader) error {
		return forged.Update(ctx, func(tx ledger.Tx) error {
			for b, err := range r.Blobs() {
				if err = errors.Join(err, tx.PutBlob(b)); err != nil {
					return err
				}
			}
			var all []ledger.Event
			for e, err := range ledger.Events(r, 0) {
				if err != nil {
					return err
				}
				all = append(all, e)
			}
			return ledger.Rewrite(tx, r, change(t, all))
		})
	})
	if err != nil {
		t.Fatalf("the forgery could not be written: %v", err)
	}
	return forged
}

// edits changes the payload of the last event of a type.
func edits(kind ledger.Type, from, to string) edit {
	return func(t *testing.T, all []ledger.Event) []ledger.Event {
		e := &all[lastOf(t, all, kind)]
		if text := string(e.Payload); !strings.Contains(text, from) {
			t.Fatalf("%s does not hold %s", text, from)
		} else {
			e.Payload = []byte(strings.Replace(text, from, to, 1))
		}
		return all
	}
}

// changes changes the last event of a type in another way.
func changes(kind ledger.Type, change func(*ledger.Event)) edit {
	return func(t *testing.T, all []ledger.Event) []ledger.Event {
		change(&all[lastOf(t, all, kind)])
		return all
	}
}

// revokes inserts that the last token is revoked, at an index and with the time of another event.
func revokes(t *testing.T, all []ledger.Event, index int, at ledger.Event) []ledger.Event {
	id := member(t, all[lastOf(t, all, ledger.TokenCreated)].Payload, "id")
	return slices.Insert(all, index, ledger.Event{
		Type: ledger.TokenRevoked, At: at.At, By: "local:root", Payload: []byte(`{"id":` + id + `,"type":"token.revoked"}`),
	})
}

// without removes the last event of a type; once more repeats it.
func without(kind ledger.Type) edit {
	return func(t *testing.T, all []ledger.Event) []ledger.Event {
		i := lastOf(t, all, kind)
		return slices.Delete(all, i, i+1)
	}
}

func repeated(kind ledger.Type) edit {
	return func(t *testing.T, all []ledger.Event) []ledger.Event {
		i := lastOf(t, all, kind)
		return slices.Insert(all, i, all[i])
	}
}

func lastOf(t *testing.T, all []ledger.Event, kind ledger.Type) int {
	t.Helper()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Type == kind {
			return i
		}
	}
	t.Fatalf("there is no %s", kind)
	return 0
}

// member is a member of a JSON object, as it stands there.
func member(t *testing.T, v jsontext.Value, name string) string {
	t.Helper()
	var members map[string]jsontext.Value
	check.NoError(t, json.Unmarshal(v, &members))
	return string(members[name])
}

// TestVerifyJudgesWhatHappened: a ledger that was written anew as a whole, so that every hash is right, still cannot tell of a
// call that nobody decided on, or of another one than was made.
func TestVerifyJudgesWhatHappened(t *testing.T) {
	for _, f := range []forgery{
		{"nothing-changed", unedited, ""},
		{"call-without-people", without(ledger.ApprovalApproved), "a request that is pending"},
		{"call-without-a-decision", func(t *testing.T, all []ledger.Event) []ledger.Event {
			return slices.DeleteFunc(all, func(e ledger.Event) bool { return e.Type == ledger.DecisionMade })
		}, "people are asked about a request that is proposed"},
		{"call-of-no-process", without(ledger.RunClaimed), "no process has"},
		{"call-twice", repeated(ledger.ProxySent), "a call of a request"},
		{"people-asked-twice", repeated(ledger.ApprovalRequested), "asked twice"},
		{"linked-to-another-entry-of-the-run", changes(ledger.ToolResult, func(e *ledger.Event) { e.Index = ledger.Unlinked }),
			"another entry of its run"},
		{"result-twice", repeated(ledger.ToolResult), "second result"},
		{"end-twice", repeated(ledger.RunEnded), "has ended"},
		{"result-of-no-call", without(ledger.ProxySent), "a call that was not made"},
		{"answer-without-a-result", without(ledger.ToolResult), "without a result"},
		{"vote-once-more", repeated(ledger.ApprovalApproved), "a vote about a request that is approved"},
		{"vote-after-the-decision", func(t *testing.T, all []ledger.Event) []ledger.Event {
			i := lastOf(t, all, ledger.ApprovalApproved)
			late := all[i]
			late.By = "bob"
			return slices.Insert(all, i+1, late)
		}, "a vote about a request that is approved"},
		{"vote-of-the-requester", changes(ledger.ApprovalApproved, func(e *ledger.Event) {
			e.By = strings.ToUpper(strings.TrimPrefix(statestest.Actor, "local:"))
		}), "one's own request"},
		{"vote-of-another-person", changes(ledger.ApprovalApproved, func(e *ledger.Event) { e.By = "local:bob" }), "is not one of local:bob"},
		{"vote-without-a-role", changes(ledger.ApprovalApproved, func(e *ledger.Event) { e.By = "mallory" }), "none of the roles"},
		{"vote-after-the-expiry", func(t *testing.T, all []ledger.Event) []ledger.Event {
			for i := lastOf(t, all, ledger.ApprovalApproved); i < len(all); i++ {
				all[i].At = "2026-11-21T10:00:00.000Z"
			}
			return all
		}, "after the request had expired"},
		{"vote-about-another-binding", edits(ledger.ApprovalApproved, `"binding":"sha256:`, `"binding":"sha256:0`), "another binding"},
		{"vote-that-does-not-decide", edits(ledger.ApprovalApproved, `"decides":true`, `"decides":false`), "its member decides"},
		{"vote-with-another-reason", edits(ledger.ApprovalApproved, `"reason":"as agreed"`, `"reason":"other"`), "the votes"},
		{"token-of-another-role", edits(ledger.TokenCreated, `"role":"approver"`, `"role":"auditor"`), "is not one of dora with the role approver"},
		{"token-that-was-not-there-yet", func(t *testing.T, all []ledger.Event) []ledger.Event {
			i := lastOf(t, all, ledger.TokenCreated)
			late := all[i]
			late.At = all[len(all)-1].At
			return append(slices.Delete(all, i, i+1), late)
		}, "is not one of dora with the role approver"},
		{"token-that-was-revoked", func(t *testing.T, all []ledger.Event) []ledger.Event {
			i := lastOf(t, all, ledger.ApprovalApproved)
			return revokes(t, all, i, all[i])
		}, "was not valid then"},
		{"token-that-is-revoked-later", func(t *testing.T, all []ledger.Event) []ledger.Event {
			return revokes(t, all, len(all), all[len(all)-1])
		}, ""},
		{"quorum-lowered", edits(ledger.ApprovalRequested, `"quorum":1`, `"quorum":2`), "its member decides"},
		{"approvers-changed", edits(ledger.ApprovalRequested, `"approvers":[`, `"approvers":["others",`), "approval.requested"},
		{"expiry-changed", edits(ledger.ApprovalRequested, `"expires":"2026-11-21T10`, `"expires":"2026-11-21T11`), "approval.requested"},
		{"score-changed", edits(ledger.RiskScored, `"score":`, `"score":7`), "risk.scored"},
		{"decision-of-another-bundle", edits(ledger.DecisionMade, `{"`, `{"bundle":"sha256:0","`), "decision.made"},
		{"first-decision-of-another-bundle", func(t *testing.T, all []ledger.Event) []ledger.Event {
			e := &all[slices.IndexFunc(all, func(e ledger.Event) bool { return e.Type == ledger.DecisionMade })]
			e.Payload = []byte(strings.Replace(string(e.Payload), `{"`, `{"bundle":"sha256:0","`, 1))
			return all
		}, "another bundle"},
		{"arguments-changed", edits(ledger.RequestCreated, "policy-002", "policy-003"), "request.created"},
		{"tool-changed", edits(ledger.RequestCreated, `"tool":"fetch`, `"tool":"delete`), "request.created"},
		{"actor-changed", edits(ledger.RequestCreated, `"actor":"local:alice"`, `"actor":"local:bob"`), "decided otherwise"},
		{"permit-changed", edits(ledger.ProxySent, `"permit":"sha256:`, `"permit":"sha256:0`), "proxy.sent"},
		{"size-of-the-result-changed", edits(ledger.ToolResult, `"bytes":`, `"bytes":1`), "tool.result"},
		{"note-changed", edits(ledger.RunEnded, `"note":"`, `"note":"x`), "decided otherwise"},
		{"head-changed", digests(ledger.RunEnded, "head", string(canonical.Sum("other", nil))), "another trace"},
		{"state-changed", edits(ledger.RunEnded, `"state":"answered"`, `"state":"blocked"`), "decided otherwise"},
		{"call-that-left-ends-as-blocked", edits(ledger.RunEnded, `"type":"tool_result_with_summary"`, `"type":"blocked"`), "as if nothing was sent"},
		{"ends-as-pending", edits(ledger.RunEnded, `"type":"tool_result_with_summary"`, `"type":"pending"`), "cannot end as"},
		{"hash-of-another-step", changes(ledger.ApprovalRequested, func(e *ledger.Event) {
			e.Payload = regexp.MustCompile(`"last":"[^"]*`).ReplaceAll(e.Payload, []byte(`"last":"`+canonical.Sum("step")))
		}), "another trace"},
		{"no-hash-of-a-step", edits(ledger.ApprovalRequested, `"last":"sha256:`, `"last":"sha256:0`), "is not a digest"},
		{"step-of-another-target", edits(ledger.ApprovalRequested, `"plan","validate"`, `"validate","plan"`), "decided otherwise"},
		{"step-left-out", edits(ledger.ApprovalRequested, `"authorize",`, ``), "decided otherwise"},
		{"token-of-a-run", changes(ledger.TokenCreated, func(e *ledger.Event) { e.RunID = statestest.RunID }), "is about no run"},
		{"result-of-no-run", changes(ledger.ToolResult, func(e *ledger.Event) { e.RunID = "" }), "must be about a run"},
		{"time-that-goes-back", changes(ledger.RunEnded, func(e *ledger.Event) { e.At = "2026-11-21T08:59:59.000Z" }), "is before that of the entry"},
	} {
		t.Run(f.name, func(t *testing.T) {
			d := newFixture(t)
			id, s := d.approved(nil)
			if _, err := d.resume(id, world(s)); err != nil {
				t.Fatal(err)
			}
			f.run(t, d)
		})
	}
}

// TestVerifyCountsPeople: of two people that are wanted one is not both.
func TestVerifyCountsPeople(t *testing.T) {
	d := newFixture(t)
	id, _ := d.hold(func(s *statestest.Scenario) {
		policies := slices.Clone(s.Content.Policy.Policies)
		policies[0].Quorum = 2
		s.Content.Policy = statestest.Policies(policies...)
	})
	d.vote(id, d.Approver("dora"), true)
	if q := d.Run(id); q.Status != ledger.Pending || q.Agreed != 1 || q.Quorum != 2 {
		t.Fatalf("one of two: %+v", q)
	}
	d.sound()
	d.forge(t, []forgery{
		{"twice-one-person", repeated(ledger.ApprovalApproved), "a second vote of one person"},
		{"twice-by-another-spelling", func(t *testing.T, all []ledger.Event) []ledger.Event {
			again := all[lastOf(t, all, ledger.ApprovalApproved)]
			again.By = "local:Dora"
			return append(all, again)
		}, "a second vote of one person"},
		{"expired-before-its-time", func(_ *testing.T, all []ledger.Event) []ledger.Event {
			q := d.Run(id)
			return append(all, ledger.Event{
				RunID: id, Type: ledger.ApprovalExpired, At: all[len(all)-1].At, By: "clock",
				Payload: fmt.Appendf(nil, `{"binding":%q,"expires":%q,"type":"approval.expired"}`, q.Binding, q.Expires),
			})
		}, "is before it"},
		{"one-decides", edits(ledger.ApprovalApproved, `"decides":false`, `"decides":true`), "its member decides"},
	}...)
}

// TestVerifyNamesAnEffectThatCannotBe: what never left has no effect.
func TestVerifyNamesAnEffectThatCannotBe(t *testing.T) {
	d := newFixture(t)
	s := statestest.Find(t, "policy-denies-by-effect")
	if _, _, err := d.play(ledgertest.NewID(t), &s); err != nil {
		t.Fatal(err)
	}
	f := forgery{"", func(t *testing.T, all []ledger.Event) []ledger.Event {
		all = edits(ledger.RunEnded, `"type":"blocked"`, `"type":"failed"`)(t, all)
		return edits(ledger.RunEnded, `"effect":"not_sent"`, `"effect":"unknown"`)(t, all)
	}, "did not leave"}
	f.run(t, d)
}
