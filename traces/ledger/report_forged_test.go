package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// TestVerifyJudgesReports: a ledger that was written anew as a whole cannot tell of a permit that nobody handed out, or of a report
// about another run than a delegated one.
func TestVerifyJudgesReports(t *testing.T) {
	for _, f := range []struct {
		scenario string
		forgery
	}{
		{"hook-reported", forgery{"nothing-changed", unedited, ""}},
		{"hook-rewritten", forgery{"nothing-changed-of-a-rewritten-call", unedited, ""}},
		{"hook-unreported", forgery{"nothing-changed-of-an-unreported-call", unedited, ""}},
		{"hook-reported-without-digests", forgery{"nothing-changed-of-a-failed-call", unedited, ""}},
		{"hook-not-reported-yet", forgery{"nothing-changed-of-an-open-call", unedited, ""}},
		{"hook-not-reported-yet", forgery{"another-permit", digests(ledger.CallDelegated, "permit", string(canonical.Sum("other", nil))), "call.delegated"}},
		{"hook-not-reported-yet", forgery{"a-step-of-an-open-call-left-out", edits(ledger.CallDelegated, `"authorize",`, ``), "decided otherwise"}},
		{"hook-reported", forgery{"delegated-twice", repeated(ledger.CallDelegated), "a permit is handed out"}},
		{"hook-reported", forgery{"never-delegated", without(ledger.CallDelegated), "a report about a request"}},
		{"hook-reported", forgery{"reported-twice", repeated(ledger.CallReported), "a report about a request"}},
		{"hook-rewritten", forgery{"rewritten-twice", repeated(ledger.CallRewritten), "rewritten"}},
		{"hook-rewritten", forgery{"not-rewritten", without(ledger.CallRewritten), "without such a report"}},
		{"hook-unreported", forgery{"lapsed-twice", repeated(ledger.CallUnreported), "a report about a request"}},
		{"hook-reported", forgery{"never-reported", without(ledger.CallReported), "without such a report"}},
		{"hook-reported", forgery{"of-a-call-without-an-id", edits(ledger.CallDelegated, `{"call":"call-1",`, `{`), "call.delegated"}},
		{"hook-reported", forgery{"dispatched", func(t *testing.T, all []ledger.Event) []ledger.Event {
			e := &all[lastOf(t, all, ledger.CallDelegated)]
			e.Type = ledger.ProxySent
			e.Payload = []byte(strings.NewReplacer(`"call":"call-1",`, "", `"type":"call.delegated"`, `"type":"proxy.sent"`).Replace(string(e.Payload)))
			return all
		}, "a call of a request of the kind hook"}},
		{"hook-reported", forgery{"of-an-agent", edits(ledger.RequestCreated, `"kind":"hook"`, `"kind":"agent"`), "with the role agent"}},
		{"hook-reported", forgery{"reported-with-other-arguments", digests(ledger.CallReported, "arguments", string(canonical.Sum("other", nil))), "call.reported"}},
		{"hook-rewritten", forgery{"rewritten-to-others", digests(ledger.CallRewritten, "arguments", string(canonical.Sum("other", nil))), "call.rewritten"}},
		{"hook-reported", forgery{"of-another-call", edits(ledger.CallDelegated, `"call":"call-1"`, `"call":"call-9"`), "call.delegated"}},
		{"hook-reported", forgery{"of-another-session", edits(ledger.RequestCreated, `"id":"session-1"`, `"id":"session-9"`), "another trace"}},
		{"hook-reported", forgery{"failed", edits(ledger.CallReported, `,"result"`, `,"failed":true,"result"`), "call.reported"}},
		{"hook-unreported", forgery{"ends-as-failed", edits(ledger.RunEnded, `"type":"unreported"`, `"type":"failed"`), "ends as failed"}},
		{"hook-reported", forgery{"ends-as-blocked", edits(ledger.RunEnded, `"type":"reported"`, `"type":"blocked"`), "as if nothing was sent"}},
		{"hook-reported", forgery{"token-of-an-agent", edits(ledger.TokenCreated, `"role":"hook"`, `"role":"agent"`), "with the role hook"}},
	} {
		t.Run(f.name, func(t *testing.T) {
			d := newFixture(t)
			s := statestest.Find(t, f.scenario)
			s.Request.Actor = "ann"
			_, _, err := d.play(ledgertest.NewID(t), &s)
			check.NoError(t, err)
			f.run(t, d)
		})
	}
}

// TestVerifyJudgesApprovedPermits: the same of a permit that was handed out after an approval.
func TestVerifyJudgesApprovedPermits(t *testing.T) {
	d := newFixture(t)
	run, s := d.approvedHook()
	if err := d.Claim(t.Context(), run); !errors.Is(err, ledger.ErrAskAgain) {
		t.Fatalf("Claim() = %v, want ErrAskAgain", err)
	}
	check.NoError(t, d.ClaimAsked(t.Context(), run))
	d.Clock.Add(time.Minute)
	options := world(s)
	options.Call = "call-2"
	resumed, err := d.Resume(t.Context(), d.replayer(nil), run, options)
	if err != nil || resumed.Outcome.Type != states.TypeDelegated || len(s.World.Calls) != 0 {
		t.Fatalf("Resume() = %+v, %v", resumed.Outcome, err)
	}
	_, err = d.Report(t.Context(), d.replayer(nil), run, ledger.LocalUser("local:alice"), &states.CallReported{Arguments: canonical.Sum("arguments", []byte("{}"))})
	check.NoError(t, err)
	d.sound()
	d.forge(t,
		forgery{"nothing-changed", unedited, ""},
		forgery{"without-people", without(ledger.ApprovalApproved), "pending"},
		forgery{"by-no-process", without(ledger.RunClaimed), "no process has"},
		forgery{"without-a-decision", without(ledger.DecisionMade), "1 decisions are recorded"},
		forgery{"twice", repeated(ledger.CallDelegated), "a permit is handed out"},
		forgery{"for-the-first-call", edits(ledger.CallDelegated, `"call":"call-2"`, `"call":"call-1"`), "call.delegated"},
		forgery{"approved-for-longer", edits(ledger.ApprovalApproved, `"expires":"2026-11-21T11`, `"expires":"2026-11-22T11`), "the approval expires at"},
		forgery{"approved-for-as-long-as-the-hold", edits(ledger.ApprovalApproved, `"expires":"2026-11-21T11:00:00.000Z",`, ``), "the approval expires at"},
		forgery{"approved-by-another-setting", edits(ledger.CommandStarted, `"claim_within_ms":5400000`, `"claim_within_ms":5400001`), "the approval expires at"},
		forgery{"approved-by-a-setting-that-overflows", func(t *testing.T, all []ledger.Event) []ledger.Event {
			all = edits(ledger.CommandStarted, `"claim_within_ms":5400000`, `"claim_within_ms":18446830473710`)(t, all) // 2^64 ns and a day
			return edits(ledger.ApprovalApproved, `"expires":"2026-11-21T11:00`, `"expires":"2026-11-22T09:30`)(t, all)
		}, "the approval expires at"},
		forgery{"a-setting-that-is-negative", edits(ledger.CommandStarted, `"claim_within_ms":5400000`, `"claim_within_ms":-1`), "negative"},
		forgery{"after-the-approval-expired", func(t *testing.T, all []ledger.Event) []ledger.Event {
			all = edits(ledger.CommandStarted, `"claim_within_ms":5400000`, `"claim_within_ms":1`)(t, all)
			return edits(ledger.ApprovalApproved, `T11:00:00.000Z`, `T09:30:00.001Z`)(t, all)
		}, "after its approval had expired"},
	)
}

// TestToldByARevokedToken: a report of a token that was revoked after the gateway read it is not recorded, late or not. The record of
// prompts and late reports is sound for both verifiers.
func TestToldByARevokedToken(t *testing.T) {
	d := newFixture(t)
	hook := d.token("ann", ledger.RoleHook, "")
	by := ledger.Caller{Name: "ann", TokenID: hook.ID, Roles: []string{ledger.RoleHook}}
	begin := func() string {
		id, s := ledgertest.NewID(t), statestest.Find(t, "hook-not-reported-yet")
		session := *s.Request.Session
		session.Call = "call-" + id
		s.Request.Actor, s.Request.Session = "ann", &session
		_, _, err := d.play(id, &s)
		check.NoError(t, err)
		return id
	}
	report := func(run string) error {
		_, err := d.Report(t.Context(), d.replayer(nil), run, by, &states.CallReported{Failed: true})
		return err
	}
	late, _ := begin(), begin()
	if n, err := d.LapseSession(t.Context(), d.replayer(nil), "ann", "claude/session-1"); err != nil || n != 2 {
		t.Fatalf("LapseSession() = %d, %v", n, err)
	}
	open := begin()
	check.NoError(t, report(late))
	_, err := d.CapturePrompt(t.Context(), by, ledger.Prompt{ID: "p-1", Session: "claude/session-1", Source: "user", Text: "Hello.", Cut: true})
	check.NoError(t, err)
	d.revoke(hook.ID)
	for _, run := range []string{late, open} {
		if err := report(run); !errors.Is(err, ledger.ErrToken) {
			t.Errorf("Report() = %v, want ErrToken", err)
		}
	}
	if q := d.Run(open); q.Status != ledger.Delegated {
		t.Errorf("the run is %s", q.Status)
	}
	other := "01a21edb-9225-71a8-bddf-01e9c214baac"
	d.forge(t,
		forgery{"nothing-changed", unedited, ""},
		forgery{"late-twice", func(t *testing.T, all []ledger.Event) []ledger.Event {
			i := lastOf(t, all, ledger.ReportLate)
			again := all[i]
			again.Index = -1 // an entry of its own
			return slices.Insert(all, i, again)
		}, "a second late report"},
		forgery{"late-about-no-run", edits(ledger.ReportLate, late, other), "which is not there"},
		forgery{"late-about-no-id-of-a-run", edits(ledger.ReportLate, late, "x"), "which is not there"},
		forgery{"late-about-an-open-run", edits(ledger.ReportLate, late, open), "had not ended as unreported"},
	)
}

// TestLateReportIsRecordedOnce: the first late report about a run is recorded, and stays when the run is pruned.
func TestLateReportIsRecordedOnce(t *testing.T) {
	d := newFixture(t)
	signer, _ := d.newKey()
	s := statestest.Find(t, "hook-unreported")
	runs := []string{ledgertest.NewID(t), ledgertest.NewID(t)}
	for _, run := range runs {
		session := *s.Request.Session
		session.Call = run
		s.Request.Actor, s.Request.Session = "ann", &session
		_, _, err := d.play(run, &s)
		check.NoError(t, err)
		for range 2 {
			_, err := d.Report(t.Context(), d.replayer(nil), run, ledger.LocalUser("local:alice"), &states.CallReported{Failed: true})
			check.NoError(t, err)
		}
	}
	if n := d.count(ledger.ReportLate); n != len(runs) {
		t.Errorf("%d late reports are recorded, want %d", n, len(runs))
	}
	d.sound()
	order := ledger.PruneOrder{Origin: signer.Name(), Kind: ledger.PruneErasure, Entries: []ledger.Range{d.rangeOf(runs[0])}}
	_, err := d.Prune(t.Context(), ledger.PruneRequest{Order: ordered(t, signer, order), Reason: "mistake"}, root)
	check.NoError(t, err)
	d.forge(t,
		forgery{"of-a-pruned-run", unedited, ""},
		forgery{"of-two-pruned-runs", edits(ledger.ReportLate, runs[1], "x"), "which is not there"},
	)
}

// TestReadSession: no number of denied calls hides those that were permitted, or a rewritten one.
func TestReadSession(t *testing.T) {
	d := newFixture(t)
	const session = "claude/s-1"
	d.addCalls(1, ledger.RunRow{Actor: "ann", Session: session, Status: ledger.Reported, Code: string(policy.CodeRewritten)})
	d.addCalls(2, ledger.RunRow{Actor: "ann", Session: session, Status: ledger.Executed})
	d.addCalls(4, ledger.RunRow{Actor: "bob", Session: session, Status: ledger.Reported})
	check.NoError(t, d.Store.Update(t.Context(), func(tx ledger.Tx) error {
		for i := range ledger.MaxCounted {
			if err := tx.AddRun(ledger.RunRow{RunID: ledgertest.NewID(t), First: int64(2_000_000 + i), At: statestest.At, Updated: statestest.At,
				Ended: statestest.At, Bundle: canonical.Sum("bundle", nil), Actor: "ann", Session: session, Status: ledger.Denied}); err != nil {
				return err
			}
		}
		return nil
	}))
	got, err := d.ReadSession(t.Context(), "ann", session, true)
	if want := (ledger.SessionState{Calls: 3, Rewritten: true}); err != nil || got != want {
		t.Errorf("ReadSession() = %+v, %v, want %+v", got, err, want)
	}
}
