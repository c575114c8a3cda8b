package ledger_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
)

// archiveRuns is how many runs the archive tells of.
const archiveRuns = 50

// archived is the file of the archive, which is made once.
var archived struct {
	sync.Once
	text []byte
}

// archive gives a test its own file of a ledger with runs of every outcome.
func archive(t testing.TB) (path string) {
	t.Helper()
	archived.Do(func() { archived.text = makeArchive(t) })
	path = filepath.Join(t.TempDir(), "pgfsm.db")
	if len(archived.text) == 0 {
		t.Fatal("the archive could not be made")
	}
	check.NoError(t, os.WriteFile(path, archived.text, 0o600))
	return path
}

func makeArchive(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(onDisk(t, (*fixture).fill))
	check.NoError(t, err)
	return text
}

// onDisk is the file of a ledger in which something was recorded.
func onDisk(t testing.TB, record func(*fixture)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pgfsm.db")
	d, _ := fixtureInFile(t, path, ledgertest.NewClock(t))
	record(d)
	check.NoError(t, d.Close())
	return path
}

// fill records runs of every kind, and tokens.
func (d *fixture) fill() {
	d.TB.Helper()
	ctx := context.Background()
	erin, _, err := d.CreateToken(ctx, ledger.LocalUser("local:root"), "erin", ledger.RoleAuditor, "2026-12-01T00:00:00.000Z")
	check.NoError(d.TB, err)
	who, err := d.Authenticate(ctx, erin)
	check.NoError(d.TB, err)
	if _, err := d.RevokeToken(ctx, ledger.LocalUser("local:root"), who.TokenID); err != nil {
		d.TB.Fatal(err)
	}
	d.hold(nil)  // goes on waiting
	d.crashing() // is ended by the recovery
	answered, s := d.approved(nil)
	if got, err := d.resume(answered, world(s)); err != nil || got.Outcome.State != string(states.Answered) {
		d.TB.Fatalf("resume() = %+v, %v", got.Outcome, err)
	}
	d.approved(nil) // goes on waiting
	denied, _ := d.hold(nil)
	d.vote(denied, d.Approver("dora"), false)
	if all, err := d.Recover(ctx, d.replayer(nil)); err != nil || len(all) != 2 {
		d.TB.Fatalf("Recover() = %+v, %v", all, err)
	}
	if got := d.Run(denied).Status; got != ledger.Denied {
		d.TB.Fatalf("a denied run is %s", got)
	}
	d.crashing() // goes on being in flight
	d.delivers(answered, ledger.ByRepeat)
	d.delivers(denied, ledger.ByTask)
	d.passing()
	for n := 6; n < archiveRuns; {
		for _, s := range statestest.Scenarios() {
			if s.Decider != nil || n >= archiveRuns { // a decider of a test is in no bundle, so that no trace of it replays
				continue
			}
			if s.Request.Task != "" { // the calls of a task are counted over the runs of the ledger
				s.Request.Task = ledgertest.NewID(d.TB)
			}
			if _, _, err := d.play(ledgertest.NewID(d.TB), &s); err != nil {
				d.TB.Fatalf("%s: play() = %v", s.Name, err)
			}
			n++
		}
	}
}

// delivers records the first delivery of a held run's outcome.
func (d *fixture) delivers(id, how string) {
	d.TB.Helper()
	if first, err := d.Deliver(context.Background(), id, how); err != nil || !first {
		d.TB.Fatalf("Deliver() = %t, %v", first, err)
	}
}

// agent is an agent with a token.
func agent(name, token string) ledger.Caller {
	return ledger.Caller{TokenID: token, Name: name, Roles: []string{ledger.RoleAgent}}
}

// passing has messages pass, with a token and without one.
func (d *fixture) passing() {
	d.TB.Helper()
	made := d.token("worker-1", ledger.RoleAgent, "2026-12-01T00:00:00.000Z")
	for _, p := range []ledger.Passage{
		{By: agent(made.Name, made.ID), Server: "files", Direction: ledger.ToServer, Method: "resources/read", Digest: ledger.ParamsDigest([]byte("{}"))},
		{By: ledger.LocalUser(ledger.Anonymous), Server: "files", Direction: ledger.ToServer, Method: "ping"},
		{By: ledger.LocalUser("local:alice"), Server: "mail", Direction: ledger.ToClient, Method: "notifications/message"},
		{By: agent(made.Name, made.ID), Server: "files", Direction: ledger.ToClient, Method: "roots/list"},
	} {
		if err := d.RecordPassage(context.Background(), p); err != nil {
			d.TB.Fatalf("Pass(%+v) = %v", p, err)
		}
	}
}

// crashing plays a run until its call is in flight, and gives it up.
func (d *fixture) crashing() {
	d.TB.Helper()
	s := statestest.Find(d.TB, "policy-allows")
	run, rec := d.begin(ledgertest.NewID(d.TB), &s)
	_, err := d.Machine.Advance(context.Background(), run, crashing{s.Entry(), func() error { return os.ErrClosed }}, rec)
	if err == nil {
		d.TB.Fatal("Advance() = nil, want the crash")
	}
	rec.Abandon()
}

// verify verifies a ledger's file.
func verify(t testing.TB, path string, o ledger.VerifyOptions) (report ledger.Report, err error) {
	t.Helper()
	store, err := sqlite.OpenReadOnly(path)
	check.NoError(t, err)
	defer store.Close()
	err = store.View(context.Background(), func(r ledger.Reader) error {
		var err error
		report, err = ledger.Verify(context.Background(), r, o)
		return err
	})
	return report, err
}

// skeletonOf reads a ledger's file.
func skeletonOf(t testing.TB, path string, do func(ledger.Reader) error) {
	t.Helper()
	store, err := sqlite.OpenReadOnly(path)
	check.NoError(t, err)
	defer store.Close()
	check.NoError(t, store.View(context.Background(), do))
}
