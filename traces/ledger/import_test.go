package ledger_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/checkpoint"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
)

// afterwards is when ledgers are closed and imported: after the archive's last entry.
const afterwards = "2026-11-21T09:45:00.000Z"

// openAfterwards opens a ledger at that time.
func openAfterwards(tb testing.TB, s ledger.Store) *fixture {
	tb.Helper()
	clock := ledgertest.NewClock(tb)
	clock.Set(tb, afterwards)
	return fixtureAt(tb, s, clock)
}

func inFile(tb testing.TB, path string) ledger.Store {
	tb.Helper()
	s, err := sqlite.Open(path)
	check.NoError(tb, err)
	return s
}

// prunedArchive is a file with runs of every outcome, some of them pruned, and a block. It returns a held and an approved run.
func prunedArchive(tb testing.TB) (path, held, approved string) {
	path = onDisk(tb, func(d *fixture) {
		d.passes(2)
		denied, _ := d.hold(nil)
		d.vote(denied, d.Approver("dora"), false)
		_, err := d.Recover(tb.Context(), d.replayer(nil))
		check.NoError(tb, err)
		d.PassMessages(1)
		d.Clock.Set(tb, "2026-11-21T09:10:00.000Z")
		d.prunes("2026-11-21T09:05:00.000Z")
		d.fill()
		check.NoError(tb, d.BlockIdentity(tb.Context(), root, "https://idp.example.com", "mallory"))
		held, _ = d.hold(nil)
		approved, _ = d.approved(nil)
	})
	return path, held, approved
}

// exportOf is the export of a ledger.
func exportOf(tb testing.TB, s ledger.Store) []byte {
	tb.Helper()
	var lines bytes.Buffer
	x := ledger.Exporter{To: &lines}
	check.NoError(tb, s.View(tb.Context(), x.Export))
	return lines.Bytes()
}

// closedExport closes the ledger of a store, and returns its export.
func closedExport(tb testing.TB, s ledger.Store) []byte {
	tb.Helper()
	check.NoError(tb, openAfterwards(tb, s).CloseLog(tb.Context(), "sqlite:new.db", root))
	return exportOf(tb, s)
}

// importOptions are those of an import by a user of the operating system.
func importOptions(tb testing.TB) ledger.ImportOptions {
	clock := ledgertest.NewClock(tb)
	clock.Set(tb, afterwards)
	return ledger.ImportOptions{Clock: clock.Now, Authorize: func(ledger.Reader) (ledger.Caller, error) { return root, nil }}
}

// importRows are the rows that an import makes, without the entries that it or the close adds.
func importRows(tb testing.TB, s ledger.Store, added int) map[string][]string {
	tb.Helper()
	rows := ledgertest.Rows(tb, s)
	rows["entries"] = rows["entries"][:len(rows["entries"])-added]
	return rows
}

// TestImport moves a ledger from a file to a store, and back.
func TestImport(t *testing.T) {
	path, held, approved := prunedArchive(t)
	from, target, o := inFile(t, path), ledgertest.NewStore(t), importOptions(t)
	before, want := ledgertest.State(t, from), importRows(t, from, 0)
	export := closedExport(t, from)
	o.Checkpoint = &before
	check.NoError(t, ledger.Import(t.Context(), target, bytes.NewReader(export), o))
	if diff := cmp.Diff(want, importRows(t, target, 2)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	closed := ledgertest.State(t, from)
	if r := ledgertest.Verify(t, target, &closed); r.Pruned == 0 || r.Size != before.Size+2 {
		t.Errorf("the new ledger is not whole: %+v", r)
	}
	if !bytes.HasPrefix(exportOf(t, target), export) {
		t.Error("the export of the new ledger does not begin with that of the old one")
	}
	if err := ledger.Import(t.Context(), target, bytes.NewReader(export), o); !errors.Is(err, ledger.ErrNotEmpty) {
		t.Errorf("again: Import() = %v, want ErrNotEmpty", err)
	}

	back := inFile(t, filepath.Join(t.TempDir(), "back.db"))
	check.NoError(t, ledger.Import(t.Context(), back, bytes.NewReader(closedExport(t, target)), o))
	ledgertest.Verify(t, back, &closed)
	d := openAfterwards(t, back)
	d.vote(held, d.Approver("dora"), true)
	s := statestest.Find(t, "policy-holds")
	for _, run := range []string{held, approved} {
		if got, err := d.resume(run, world(&s)); err != nil || got.Outcome.State != "answered" {
			t.Errorf("resume(%s) = %+v, %v", run, got.Outcome, err)
		}
	}
	if _, err := d.checked(ledger.VerifyOptions{Checkpoint: &before}); err != nil {
		t.Errorf("Verify() = %v", err)
	}
}

// TestImportRefusesLines changes an export, as a whole and in each of its lines. The error names the line, and the store stays empty.
func TestImportRefusesLines(t *testing.T) {
	path, _, _ := prunedArchive(t)
	export := closedExport(t, inFile(t, path))
	lines := bytes.SplitAfter(export, []byte("\n"))
	lines = lines[:len(lines)-1]
	target := ledgertest.NewStore(t)
	refused := func(t *testing.T, want string, changed ...[]byte) {
		t.Helper()
		err := ledger.Import(t.Context(), target, bytes.NewReader(bytes.Join(changed, nil)), importOptions(t))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Import() = %v, want %q", err, want)
		}
		if rows := ledgertest.Rows(t, target); len(rows) > 0 {
			t.Fatalf("the store is not empty: %v", rows)
		}
	}
	replaced := func(i int, line ...[]byte) [][]byte { return slices.Concat(lines[:i], line, lines[i+1:]) }

	for i, line := range lines { // each line is changed in one way
		n, middle := fmt.Sprintf("line %d: ", i+1), len(line)/2
		switch i % 5 {
		case 0:
			changed := bytes.Clone(line)
			changed[middle] ^= 1
			refused(t, n, replaced(i, changed)...)
		case 1:
			refused(t, n, replaced(i, line[:middle])[:i+1]...)
		case 2:
			refused(t, n, replaced(i, []byte(" "), line)...)
		case 3:
			refused(t, fmt.Sprintf("line %d: ", i+2), replaced(i, line, line)...)
		case 4:
			want := "line "
			if i == len(lines)-1 {
				want = ledger.ErrNotClosed.Error()
			}
			refused(t, want, replaced(i)...)
		}
	}

	first := func(part string) int {
		return slices.IndexFunc(lines, func(line []byte) bool { return bytes.Contains(line, []byte(part)) })
	}
	for _, tt := range []struct{ name, part, from, to, want string }{
		{"hash-of-another-header", `"type":"token.created"`, `"class":"log"`, `"class":"run"`, "the header is not that of the body"},
		{"body-left-out", `"type":"token.created"`, "", "", "nothing may remove a body of the class"},
		{"body-left-out-of-a-run", `"type":"request.created"`, "", "", "no ledger.pruned says why"},
		{"time-before-the-last", `"type":"ledger.closed"`, `"at":"2026`, `"at":"2025`, "before that of the entry before"},
		{"unknown-member", `"type":"ledger.closed"`, `"types"`, `"type2":1,"types"`, "unknown object member"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := first(tt.part)
			line := bytes.Replace(lines[i], []byte(tt.from), []byte(tt.to), 1)
			if tt.from == "" {
				_, rest, _ := bytes.Cut(lines[i], []byte(`,"hash":`))
				line = append([]byte(`{"hash":`), rest...)
			}
			refused(t, tt.want, replaced(i, withLeafHash(line))...)
		})
	}
	t.Run("not-closed", func(t *testing.T) { refused(t, ledger.ErrNotClosed.Error(), lines[:len(lines)-1]...) })
	t.Run("empty", func(t *testing.T) { refused(t, ledger.ErrNotClosed.Error()) })
	t.Run("checkpoint-that-the-log-lacks", func(t *testing.T) {
		o := importOptions(t)
		o.Checkpoint = &checkpoint.Checkpoint{Origin: "pgfsm-log-x", Size: 1}
		if err := ledger.Import(t.Context(), target, bytes.NewReader(export), o); !errors.Is(err, ledger.ErrTampered) {
			t.Errorf("Import() = %v, want ErrTampered", err)
		}
	})
	if err := ledger.Import(t.Context(), target, bytes.NewReader(export), importOptions(t)); err != nil {
		t.Errorf("unchanged: Import() = %v", err)
	}
}

// withLeafHash gives the line of an entry the leaf hash of its header.
func withLeafHash(line []byte) []byte {
	head, rest, _ := bytes.Cut(line, []byte(`"hash":"`))
	_, header, _ := bytes.Cut(rest, []byte(`"header":`))
	header, index, _ := bytes.Cut(header, []byte(`,"index"`))
	hash := tlog.RecordHash(header)
	return fmt.Appendf(nil, `%s"hash":"%s","header":%s,"index"%s`, head, base64.StdEncoding.EncodeToString(hash[:]), header, index)
}

// TestImportFails makes each operation of the store fail once, and the input break. The store is empty, and importing again succeeds.
func TestImportFails(t *testing.T) {
	path, _, _ := prunedArchive(t)
	export := closedExport(t, inFile(t, path))
	for _, place := range []ledgertest.Op{
		ledgertest.Begin, ledgertest.AddEntry, ledgertest.AddRequest, ledgertest.PutBlob, ledgertest.PutToken, ledgertest.Commit, "input",
	} {
		t.Run(string(place), func(t *testing.T) {
			target, broken := ledgertest.NewStore(t), errors.New("broken")
			var in io.Reader = bytes.NewReader(export)
			target.Fail = ledgertest.FailAt(place, 1, broken)
			if place == "input" {
				in = io.MultiReader(io.LimitReader(in, int64(len(export)/2)), &failingReader{broken})
			}
			if err := ledger.Import(t.Context(), target, in, importOptions(t)); !errors.Is(err, broken) {
				t.Fatalf("Import() = %v", err)
			}
			if rows := ledgertest.Rows(t, target); len(rows) > 0 {
				t.Errorf("the store is not empty: %v", rows)
			}
			check.NoError(t, ledger.Import(t.Context(), target, bytes.NewReader(export), importOptions(t)))
		})
	}
}

type failingReader struct{ err error }

func (r *failingReader) Read([]byte) (int, error) { return 0, r.err }

// TestImportBoundsMemory imports runs with large requests. At any time, only a few of them are in memory.
func TestImportBoundsMemory(t *testing.T) {
	d := newFixture(t)
	const runs, size = 32, 256 << 10
	s := statestest.Find(t, "policy-allows")
	s.Request.Text = canonical.Text(strings.Repeat("long ", size/5))
	for range runs {
		_, _, err := d.play(ledgertest.NewID(t), &s)
		check.NoError(t, err)
	}
	export := closedExport(t, d.Store)
	if len(export) < runs*size {
		t.Fatalf("the export has %d bytes, want %d runs of %d", len(export), runs, size)
	}
	in := &measuringReader{from: bytes.NewReader(export)}
	before := liveBytes()
	check.NoError(t, ledger.Import(t.Context(), ledgertest.NewStore(t), in, importOptions(t)))
	if in.most > before+runs*size/4 {
		t.Errorf("an import of %d runs of %d bytes had %d bytes in memory", runs, size, in.most-before)
	}
}

// A measuringReader notes how many bytes are in memory when it is read.
type measuringReader struct {
	from  io.Reader
	reads int
	most  uint64
}

func (r *measuringReader) Read(p []byte) (int, error) {
	if r.reads++; r.reads%8 == 0 {
		r.most = max(r.most, liveBytes())
	}
	return r.from.Read(p)
}

func liveBytes() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestCloseLog shows when a ledger is closed, and by whom.
func TestCloseLog(t *testing.T) {
	path, _, _ := prunedArchive(t)
	open := func(t *testing.T) *fixture { return openAfterwards(t, inFile(t, path)) }
	closes := func(ctx context.Context, d *fixture, by ledger.Caller) error {
		return d.CloseLog(ctx, "sqlite:new.db", by)
	}

	t.Run("empty", func(t *testing.T) {
		if err := closes(t.Context(), newFixture(t), root); err == nil {
			t.Error("CloseLog() = nil")
		}
	})
	t.Run("live-run", func(t *testing.T) {
		d, id := open(t), ledgertest.NewID(t)
		s := statestest.Find(t, "policy-allows")
		run, rec := d.begin(id, &s)
		if _, err := d.Machine.Advance(t.Context(), run, crashing{s.Entry(), func() error { return errors.New("in flight") }}, rec); err == nil {
			t.Fatal("the call is not in flight")
		}
		if err := closes(t.Context(), d, root); !errors.Is(err, ledger.ErrInUse) || !strings.Contains(err.Error(), id) {
			t.Errorf("CloseLog() = %v, want ErrInUse of %s", err, id)
		}
	})
	t.Run("admin", func(t *testing.T) {
		d := open(t)
		admin := d.Caller(d.Token("ada", ledger.RoleAdmin))
		if err := closes(t.Context(), d, root); !errors.Is(err, ledger.ErrRole) {
			t.Errorf("CloseLog() = %v, want ErrRole", err)
		}
		check.NoError(t, closes(t.Context(), d, admin))
		target, o := ledgertest.NewStore(t), importOptions(t)
		if err := ledger.Import(t.Context(), target, bytes.NewReader(exportOf(t, inFile(t, path))), o); !errors.Is(err, ledger.ErrRole) {
			t.Errorf("Import() = %v, want ErrRole", err)
		}
		o.Authorize = func(ledger.Reader) (ledger.Caller, error) { return admin, nil }
		check.NoError(t, ledger.Import(t.Context(), target, bytes.NewReader(exportOf(t, inFile(t, path))), o))
	})
}
