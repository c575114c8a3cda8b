package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// underBundle is the world of a scenario in which a changed configuration is active.
func underBundle(s *statestest.Scenario, c *statestest.Change) ledger.ResumeOptions {
	w := world(s)
	w.Bundle = statestest.MustBundle(c.Content(s), nil)
	return w
}

// TestAnotherBundle restarts after the approval, with another configuration. The derived trace holds both bundles.
func TestAnotherBundle(t *testing.T) {
	for _, c := range statestest.Changes() {
		t.Run(c.Name, func(t *testing.T) {
			d := newFixture(t)
			id, s := d.approved(nil)
			w := underBundle(s, &c)
			got, err := d.other().resume(id, w)
			if err != nil || got.Outcome.State != string(c.State) || got.Outcome.Code != c.Code || len(s.World.Calls) != c.Calls {
				t.Fatalf("resume() = %+v, %v, %d calls; want %s %s, %d", got.Outcome, err, len(s.World.Calls), c.State, c.Code, c.Calls)
			}
			if c.Code == policy.CodeBundleChanged && !strings.Contains(got.Outcome.Reason, " was ") {
				t.Errorf("the reason %q does not name what changed", got.Outcome.Reason)
			}
			q := d.Run(id)
			if q.Head != got.Head || (q.Sent == "") != (c.Calls == 0) {
				t.Errorf("the request is %+v", q)
			}
			if trace := d.trace(id, got.Outcome, nil); trace.Head != got.Head {
				t.Errorf("the trace's head is %s, want %s", trace.Head, got.Head)
			}
			if _, err := d.resume(id, w); !errors.Is(err, ledger.ErrEnded) || len(s.World.Calls) != c.Calls {
				t.Errorf("once more: %v, %d calls", err, len(s.World.Calls))
			}
			d.sound()
		})
	}
}

// TestABundleThatAllowsNeedsVotes: a configuration that would allow a held call releases it neither before the votes nor at the end of their time.
func TestABundleThatAllowsNeedsVotes(t *testing.T) {
	d := newFixture(t)
	id, s := d.hold(nil)
	w := world(s)
	content := s.Content
	content.Policy = nil
	w.Bundle = statestest.MustBundle(content, nil)
	if _, err := d.resume(id, w); !errors.Is(err, ledger.ErrUndecided) {
		t.Errorf("resume() without votes = %v", err)
	}
	d.Clock.Set(t, "2026-11-21T10:00:00.000Z")
	got, err := d.resume(id, w)
	if err != nil || got.Outcome.Code != policy.CodeApprovalExpired || len(s.World.Calls) != 0 {
		t.Errorf("resume() = %+v, %v, %d calls", got.Outcome, err, len(s.World.Calls))
	}
}

// otherBuild is a replayer of a build whose gates, or whose reader of bundles, differ.
func (d *fixture) otherBuild(change func(*policy.Assessment), unread error) *traces.Replayer {
	return traces.NewReplayer(d.Machine, func(content policy.Content) (*policy.Bundle, error) {
		b, err := policy.Compile(content)
		if unread != nil || err != nil {
			return nil, errors.Join(unread, err)
		}
		return b.WithDecider(changed{b, change}), nil
	})
}

// TestAnotherBuild has another build find a run that this one held.
func TestAnotherBuild(t *testing.T) {
	denies := func(a *policy.Assessment) { a.Verdict.Outcome, a.Verdict.Code = policy.Block, policy.CodePolicyDenied }
	rewords := func(a *policy.Assessment) { a.Verdict.Reason += " Reworded." }
	const vote, deny, expire = "approve", "deny", "expire"
	for _, c := range []struct {
		name   string
		change func(*policy.Assessment)
		unread error
		decide string
		want   ledger.Reexecution // of the build that ended the run; the zero value: the run is called
	}{
		{"a-gate-that-denies", denies, nil, vote, ledger.Reexecution{Otherwise: 1}},
		{"a-gate-that-allows", func(a *policy.Assessment) { a.Verdict.Outcome, a.Verdict.Code = policy.Allow, "" }, nil, vote, ledger.Reexecution{Otherwise: 1}},
		{"another-quorum", func(a *policy.Assessment) { a.Quorum++ }, nil, vote, ledger.Reexecution{Otherwise: 1}},
		{"another-score", func(a *policy.Assessment) { a.Score++ }, nil, vote, ledger.Reexecution{Otherwise: 1}},
		{"a-bundle-that-is-not-read", nil, errors.New("unknown member"), vote, ledger.Reexecution{Unjudged: 1}},
		{"denied-meanwhile", denies, nil, deny, ledger.Reexecution{Otherwise: 1}},
		{"expired-meanwhile", denies, nil, expire, ledger.Reexecution{Otherwise: 1}},
		{"reasons-of-other-words", rewords, nil, vote, ledger.Reexecution{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, ctx := newFixture(t), context.Background()
			id, s := d.hold(nil)
			d.Clock.Set(t, inTime)
			if c.decide == expire {
				d.Clock.Set(t, "2026-11-21T10:00:00.000Z")
			} else {
				d.vote(id, d.Approver("dora"), c.decide == vote)
			}
			l, err := ledger.Open(ctx, d.Store, ledger.Options{Clock: d.Clock.Now, Build: "v2"})
			check.NoError(t, err)
			defer l.Close()
			p := d.otherBuild(c.change, c.unread)
			d.Inspect(func(r ledger.Reader) error { // what approvers see is what they vote on
				if b, err := ledger.BoundOf(r, p, id); err == nil && b.Held.Binding != b.Row.Binding || (err == nil) != (c.want == ledger.Reexecution{}) {
					t.Errorf("BoundOf() = %+v, %v", b, err)
				}
				return nil
			})
			var o states.Outcome
			if c.decide == vote {
				check.NoError(t, l.Claim(ctx, id))
				got, err := l.Resume(ctx, p, id, world(s))
				if o = got.Outcome; err != nil || got.Run == nil || got.Run.ID() != id || got.Head != d.Run(id).Head {
					t.Fatalf("Resume() = %+v, %v", got, err)
				}
			} else if got, err := l.Recover(ctx, p); err != nil || len(got) != 1 || got[0].Err != nil {
				t.Fatalf("Recover() = %+v, %v", got, err)
			} else {
				o = got[0].Outcome
			}
			if again, err := l.Ended(ctx, p, id); err != nil || again.Outcome != o || again.Head != d.Run(id).Head {
				t.Errorf("Ended() = %+v, %v", again.Outcome, err)
			}
			if c.want == (ledger.Reexecution{}) {
				if o.State != string(states.Answered) || len(s.World.Calls) != 1 {
					t.Errorf("ended as %+v, %d calls", o, len(s.World.Calls))
				}
				return
			}
			q := d.Run(id)
			if c.unread != nil && !strings.HasSuffix(o.Reason, "it cannot read the header: bundle: unknown member.") {
				t.Errorf("the reason is %q", o.Reason)
			}
			if o.Type != states.TypeBlocked || o.Code != policy.CodeBuildChanged || o.Effect != states.NotSent || len(s.World.Calls) != 0 ||
				q.Code != string(o.Code) || q.Sent != "" || q.Reason != o.Reason {
				t.Errorf("ended as %+v, %d calls; the request is %+v", o, len(s.World.Calls), q)
			}
			d.trace(id, o, nil) // by the build that held it
			d.Inspect(func(r ledger.Reader) error {
				report, err := ledger.Verify(ctx, r, ledger.VerifyOptions{Replayer: p})
				got := report.Deep
				if got.FirstOtherwise, got.FirstUnjudged = nil, nil; got != c.want {
					t.Errorf("Verify() by the build that ended it = %+v, want %+v", got, c.want)
				}
				return err
			})
			d.sound()
		})
	}
}

// TestTheSameBuildHasOneTrace: a run whose reasons have other words, without another build, was changed.
func TestTheSameBuildHasOneTrace(t *testing.T) {
	d := newFixture(t)
	id, s := d.approved(nil)
	check.NoError(t, d.Claim(context.Background(), id))
	p := d.otherBuild(func(a *policy.Assessment) { a.Verdict.Reason += " Reworded." }, nil)
	_, err := d.Resume(context.Background(), p, id, world(s))
	if !errors.Is(err, ledger.ErrChanged) || len(s.World.Calls) != 0 || d.Run(id).Ended != "" {
		t.Errorf("Resume() = %v, %d calls", err, len(s.World.Calls))
	}
}
