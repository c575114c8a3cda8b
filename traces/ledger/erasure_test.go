package ledger_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// needle is what the tests of erasures look for; it is written in several ways.
const needle = "Ann.Needle@example.com"

// plantNeedles records the needle wherever a caller, a person, a client or a server can put it: a runs's question, arguments, results of
// every form, a vote, a prompt, an announced call and names. It returns the names that find must tell, in order.
func (s *clientSession) plantNeedles() (want []string) {
	t := s.TB
	t.Helper()
	ask := statestest.Find(t, "typed-and-summarized")
	ask.Request.Text = canonical.Text("Summarize policy policy-002 for " + needle)
	asked := ledgertest.NewID(t)
	_, _, err := s.play(asked, &ask)
	check.NoError(t, err)
	arguments := s.call(mails, `{"to":"`+needle+`"}`, `{"content":[]}`)
	result := s.call(mails, `{}`, `{"content":[{"text":"{\"to\":\"ann\\u002eneedle@EXAMPLE.com\"}","type":"text"}]}`)
	binary := s.call(mails, `{}`, "{\"content\":[{\"text\":\""+needle+" \xff\",\"type\":\"text\"}]}")
	large := s.call(mails, `{}`, `{"content":[{"text":"`+strings.Repeat("x", 1<<16)+needle+`","type":"text"}]}`)
	held, _ := s.hold(nil)
	ballot := ledgertest.Ballot(s.Run(held), s.Approver("dora"))
	ballot.Approve, ballot.Reason = false, "not for "+needle
	s.Cast(ballot)
	_, err = s.Recover(context.Background(), s.replayer(nil))
	check.NoError(t, err)
	subject := statestest.Find(t, "agent-tool-not-allowed")
	subject.Request.Actor = policy.SubjectName("https://login.example.com", needle)
	named := ledgertest.NewID(t)
	_, _, err = s.play(named, &subject)
	check.NoError(t, err)
	want = []string{asked, arguments.RunID, result.RunID, binary.RunID, large.RunID, held, named}

	s.request.Session = &states.Session{Client: "claude", ID: "s-2"}
	s.prompt("Write to " + needle)
	inSession := s.call(send, `{"to":"`+needle+`"}`, `{"content":[]}`) // its argument comes from the prompt
	if inSession.Status != ledger.Executed {
		t.Fatalf("the call is %s", inSession.Status)
	}
	announced := ledger.AnnouncedCall{Server: "kb", Tool: "t", Arguments: canonical.Sum("arguments", []byte(`{"to":"`+needle+`"}`))}
	check.NoError(t, s.Announce(t.Context(), s.hook, announced, *s.request.Session))
	check.NoError(t, s.RecordPassage(t.Context(), ledger.Passage{By: ledger.LocalUser("local:" + needle), Server: "files", Direction: ledger.ToServer, Method: "ping"}))
	return append(want, "claude/s-2", inSession.RunID)
}

// erase erases names, and verifies what is left.
func (d *fixture) erase(signer note.Signer, names ...string) ledger.Pruned {
	d.TB.Helper()
	var ranges []ledger.Range
	d.Inspect(func(r ledger.Reader) (err error) {
		ranges, _, err = ledger.ErasureOf(r, names)
		return err
	})
	o := ledger.PruneOrder{Origin: signer.Name(), Kind: ledger.PruneErasure, Entries: ranges}
	signed, err := o.Sign(signer)
	check.NoError(d.TB, err)
	done, err := d.Prune(context.Background(), ledger.PruneRequest{Order: signed, Reason: "consent"}, root)
	check.NoError(d.TB, err)
	if err := alike(d.checked(ledger.VerifyOptions{})); err != nil {
		d.TB.Fatalf("Verify() after the erasure: %v", err)
	}
	return done
}

func (d *fixture) find(text string) (found []ledger.Found) {
	d.TB.Helper()
	d.Inspect(func(r ledger.Reader) (err error) {
		found, err = ledger.Find(context.Background(), r, text)
		return err
	})
	return found
}

// TestEraseEverySurface: find tells every place of a text, and after erasing these places the text is nowhere: not in what the ledger
// tells, not in its export, and not in the bytes of its files, free pages and the write-ahead log included. Everything else is as it was.
func TestEraseEverySurface(t *testing.T) {
	d := newFixture(t)
	s := newSession(t, d)
	signer, _ := d.newKey()
	s.prompt("Nothing.")
	s.call(contacts, `{}`, contactsFound)
	d.passes(3)
	innocent := d.runs()
	checkpoint := d.checkpoint()
	before := d.Events(0)
	want := s.plantNeedles()

	var names []string
	for _, f := range d.find(strings.ToLower(needle)) {
		if names = append(names, f.Name); f.Kind == ledger.FoundEntry {
			want = append(want, f.Name)
		}
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(names))); diff != "" {
		t.Fatalf("find (-want +got):\n%s", diff)
	}
	if d.Store.Stored() != nil && !bytes.Contains(d.Store.Stored(), []byte(needle)) {
		t.Fatal("the needle is nowhere before the erasure: the test is blind")
	}

	d.Clock.Add(2 * time.Minute) // the announced call was not made
	if done := d.erase(signer, names...); done.Runs != 8 || done.Entries < 16 {
		t.Errorf("%+v is erased", done)
	}
	if found := d.find(needle); len(found) > 0 {
		t.Errorf("it is still in %+v", found)
	}
	wantNeedleNowhere(t, "the export", d.export(0))
	wantNeedleNowhere(t, "the file", d.Store.Stored())

	if diff := cmp.Diff(before, d.Events(0)[:len(before)]); diff != "" || !slices.Equal(innocent, d.runs()) {
		t.Errorf("what was not erased is not as it was:\n%s", diff)
	}
	d.forge(t, forgery{"nothing-changed", unedited, ""},
		forgery{"reason-that-names-somebody", edits(ledger.LedgerPruned, `"reason":"consent"`, `"reason":"ann"`), "no reason"})
	report, err := d.checked(ledger.VerifyOptions{Checkpoint: &checkpoint})
	if err := alike(report, err); err != nil || len(report.Prunes) != 1 || report.Prunes[0].Reason != "consent" || report.Prunes[0].Kind != ledger.PruneErasure {
		t.Errorf("Verify() = %+v, %v", report.Prunes, err)
	}
}

// wantNeedleNowhere looks for the needle in every form in which it was recorded.
func wantNeedleNowhere(t *testing.T, where string, text []byte) {
	t.Helper()
	low := bytes.ToLower(text)
	for _, form := range []string{needle, `ann\\u002eneedle`, `ann\u002eneedle`, "needle"} {
		if bytes.Contains(low, []byte(strings.ToLower(form))) {
			t.Errorf("%s has %q", where, form)
		}
	}
	for shift := range 3 { // base64 of it, at any offset
		part := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + needle))
		if bytes.Contains(text, []byte(part[4:24])) {
			t.Errorf("%s has base64 of it", where)
		}
	}
}

// TestNoGuessIsConfirmed: who knows everything about an erased run but its arguments, and guesses these, finds no digest of them in what is
// left: the leaf of each entry is over a body with a salt, and no other digest stays.
func TestNoGuessIsConfirmed(t *testing.T) {
	d := newFixture(t)
	s := newSession(t, d)
	signer, _ := d.newKey()
	args, result := `{"to":"`+needle+`"}`, `{"content":[{"text":"`+needle+`","type":"text"}]}`
	s.prompt(needle)
	row := s.call(mails, args, result)
	call := ledger.AnnouncedCall{Server: "kb", Tool: "t", Arguments: canonical.Sum("arguments", []byte(args))}
	check.NoError(t, s.Announce(t.Context(), s.hook, call, *s.request.Session))

	var bodies [][]byte // the guess is right: this is what was recorded
	d.Inspect(func(r ledger.Reader) error {
		for e, err := range r.Entries(0) {
			check.NoError(t, err)
			if e.RunID != "" || e.Type == ledger.PromptCaptured {
				bodies = append(bodies, bytes.Clone(e.Body))
			}
		}
		return nil
	})
	guesses := map[string][]byte{
		"arguments": []byte(args), "result": []byte(result), "prompt": []byte(needle), "plan": policy.CallPlan(statestest.Server, mails, []byte(args)),
		"announced": fmt.Appendf(nil, "%q %q %s", call.Server, call.Tool, call.Arguments),
	}
	var digests [][]byte
	add := func(sum []byte) {
		digests = append(digests, sum, fmt.Appendf(nil, "%x", sum), []byte(base64.StdEncoding.EncodeToString(sum)))
	}
	for _, kind := range []string{"arguments", "result", "plan", "call", "text", "mcp params", "request", "binding", "session"} {
		for _, guess := range guesses {
			sum, err := hex.DecodeString(strings.TrimPrefix(string(canonical.Sum(kind, guess)), "sha256:"))
			check.NoError(t, err)
			add(sum)
		}
	}
	for _, guess := range guesses {
		sum := sha256.Sum256(guess)
		add(sum[:])
	}
	salt := func(body []byte) []byte {
		_, rest, _ := bytes.Cut(body, []byte(`"salt":"`))
		return rest[:24]
	}
	for i, body := range bodies {
		for _, other := range bodies[:i] {
			if bytes.Equal(salt(body), salt(other)) {
				t.Error("two entries have the same salt")
			}
		}
		for _, guess := range [][]byte{nil, bytes.Repeat([]byte{0}, 16), []byte(row.RunID)} { // salts that are none
			sum := sha256.Sum256(bytes.Replace(body, salt(body), []byte(base64.StdEncoding.EncodeToString(guess)), 1))
			add(sum[:])
		}
	}

	d.Clock.Add(2 * time.Minute)
	d.erase(signer, row.RunID, s.request.Session.Key())
	left := append(d.export(0), d.Store.Stored()...)
	for _, digest := range digests {
		if bytes.Contains(left, digest) {
			t.Errorf("%q is left, and confirms a guess", digest)
		}
	}
	for _, body := range bodies {
		if bytes.Contains(left, salt(body)) {
			t.Errorf("the salt %s is left", salt(body))
		}
		if sum := sha256.Sum256(body); !bytes.Contains(left, []byte(base64.StdEncoding.EncodeToString(sum[:]))) {
			t.Error("the digest of a body is gone: the test looks at other entries")
		}
	}
}

// TestErasureTakesLateReports: a late report about a run goes with it, and one about another run stays.
func TestErasureTakesLateReports(t *testing.T) {
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
		_, err = d.Report(t.Context(), d.replayer(nil), run, ledger.LocalUser("local:alice"), &states.CallReported{Failed: true})
		check.NoError(t, err)
	}
	d.erase(signer, runs[0])
	if late := d.find(runs[1]); len(late) != 2 || d.count(ledger.ReportLate) != 1 || len(d.find(runs[0])) > 0 {
		t.Errorf("%+v is left of the other run, %+v of the erased one", late, d.find(runs[0]))
	}
}

// during does something while a call is under way.
type during struct {
	states.EffectHandler
	do func()
}

func (d during) Do(ctx context.Context, command states.Command) (states.Event, error) {
	if _, calls := command.(*states.CallTool); calls {
		d.do()
	}
	return d.EffectHandler.Do(ctx, command)
}

// TestErasureTakesRelayedMessages: what the server and the requester said during a call goes with its run, because digests of it would
// confirm a guess. Messages of others, to other servers and at other times stay.
func TestErasureTakesRelayedMessages(t *testing.T) {
	d := newFixture(t)
	signer, _ := d.newKey()
	s, id := statestest.Find(t, "policy-allows"), ledgertest.NewID(t)
	params := canonical.Sum("mcp params", []byte(`{"message":"Send it to `+needle+`?"}`))
	pass := func(by, server string) {
		t.Helper()
		d.Clock.Add(time.Second)
		check.NoError(t, d.RecordPassage(t.Context(), ledger.Passage{By: ledger.LocalUser(by), Server: server, Direction: ledger.ToClient,
			Method: "elicitation/create", Digest: params}))
		d.Clock.Add(time.Second)
	}
	s.Request.Actor = "local:alice"
	mine := serverOf(t)
	pass("local:alice", mine)
	run, rec := d.begin(id, &s)
	o, err := d.Machine.Advance(t.Context(), run, rec.Effects(during{s.Entry(), func() {
		pass("local:alice", mine)
		pass("local:alice", "another")
		pass("local:bob", mine)
		pass("local:alice", mine)
	}}), rec)
	check.NoError(t, err)
	_, err = rec.Finish(t.Context(), o)
	check.NoError(t, err)
	pass("local:alice", mine)
	if n := len(d.find(string(params))); n != 6 {
		t.Fatalf("%d messages were relayed", n)
	}
	d.erase(signer, id)
	if left := d.find(string(params)); len(left) != 4 {
		t.Errorf("%d messages are left: %+v", len(left), left)
	}
}

// TestErasureRefuses shows what cannot be erased, and what the error says.
func TestErasureRefuses(t *testing.T) {
	d := newFixture(t)
	d.passes(1)
	d.passing()
	pending, _ := d.hold(nil)
	ended := d.runs()[0]
	for name, tt := range map[string]struct{ name, want string }{ // each stands alone
		"waiting-run":      {pending, "has not ended"},
		"unknown-run":      {ledgertest.NewID(t), "no run"},
		"unknown-session":  {"claude/none", "nothing of"},
		"entry-of-the-log": {"entry:0", "cannot be erased by itself"},
		"entry-of-a-run":   {fmt.Sprint("entry:", d.Run(ended).First), "cannot be erased by itself"},
		"no-such-entry":    {"entry:99999", "nothing of"},
		"no-entry":         {"entry:1x", "names no entry"},
		"negative-entry":   {"entry:-1", "names no entry"},
	} {
		d.Inspect(func(r ledger.Reader) error {
			ranges, runs, err := ledger.ErasureOf(r, []string{ended, ended, tt.name})
			if err == nil || !strings.Contains(err.Error(), tt.want) || ranges != nil || runs != nil {
				t.Errorf("%s: ErasureOf(%s) = %v, %v, want %q", name, tt.name, ranges, err, tt.want)
			}
			return nil
		})
	}
	signer, _ := d.newKey()
	order := ordered(t, signer, ledger.PruneOrder{Kind: ledger.PruneErasure, Entries: []ledger.Range{d.rangeOf(d.runs()[0])}})
	retention := ordered(t, signer, ledger.PruneOrder{Kind: ledger.PruneRetention, Before: "2026-11-01T00:00:00.000Z"})
	for name, q := range map[string]ledger.PruneRequest{
		"reason-that-names-somebody": {Order: order, Reason: needle},
		"reason-of-a-retention":      {Order: retention, Reason: "consent", Unstated: true},
		"no-reason":                  {Order: order},
	} {
		if done, err := d.Prune(t.Context(), q, root); err == nil || !strings.Contains(err.Error(), "reason") || done.Entries > 0 {
			t.Errorf("%s: Prune() = %+v, %v", name, done, err)
		}
	}
	d.Inspect(func(r ledger.Reader) error {
		if _, err := ledger.Find(t.Context(), r, "ab"); err == nil {
			t.Error("find looks for two bytes")
		}
		return nil
	})
}

// TestListOfErasures: a list names no person and no run. Its lines are due in a restored copy that has the entries, done where they are
// erased, and elsewhere in another log or an older copy, also if other entries have their indexes now.
func TestListOfErasures(t *testing.T) {
	d := newFixture(t)
	d.passes(3)
	signer, _ := d.newKey()
	old := d.runs()[1]
	order := ordered(t, signer, ledger.PruneOrder{Kind: ledger.PruneErasure, Entries: []ledger.Range{d.rangeOf(old)}})
	state := func(d *fixture, e *ledger.Erasure) (state ledger.ErasureState) {
		d.Inspect(func(r ledger.Reader) (err error) {
			state, err = e.State(r)
			return err
		})
		return state
	}
	var line *ledger.Erasure
	d.Inspect(func(r ledger.Reader) (err error) {
		line, err = ledger.NewErasure(r, order, "mistake")
		return err
	})
	if text := string(line.Line()); strings.Contains(text, old) || strings.Contains(text, "alice") || strings.Count(text, "\n") != 1 {
		t.Errorf("the line is %s", text)
	}
	read, err := ledger.ReadErasure(bytes.TrimSuffix(line.Line(), []byte("\n")))
	check.NoError(t, err)
	if got := state(d, read); got != ledger.ErasureDue {
		t.Errorf("before: %d", got)
	}
	changed := *read
	changed.Hash = base64.StdEncoding.EncodeToString(make([]byte, 32))
	if got := state(d, &changed); got != ledger.ErasureElsewhere {
		t.Errorf("other entries with these indexes: %d", got)
	}
	_, err = d.Prune(t.Context(), ledger.PruneRequest{Order: []byte(read.Order), Reason: read.Reason}, root)
	check.NoError(t, err)
	if got := state(d, read); got != ledger.ErasureDone {
		t.Errorf("afterwards: %d", got)
	}
	stranger := newFixture(t)
	stranger.newKey()
	stranger.Inspect(func(r ledger.Reader) error {
		if got, err := read.State(r); err == nil || got != ledger.ErasureElsewhere {
			t.Errorf("in another log: %d, %v", got, err)
		}
		return nil
	})
}
