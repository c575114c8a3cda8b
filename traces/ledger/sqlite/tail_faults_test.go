package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/tail"
)

// Where a tail's header is.
const (
	tailHeader, tailHeaderEnd = 512, 560
)

// holder opens a ledger with a tail. Nothing is brought into the file, and the ledger is not let go of, unless the test does it.
func holder(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{unmoved: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.tail.wanted = true
	return s
}

// hashOf is that of an event of one of several ledgers.
func hashOf(ledgerName string, seq int64) canonical.Digest {
	if seq == 0 {
		return ""
	}
	return canonical.Digest(fmt.Sprintf("%s-%d", ledgerName, seq))
}

// adds adds the events of a ledger from one to another, each with a payload of so many bytes.
func adds(name string, from, to int64, size int) func(ledger.Tx) error {
	return func(tx ledger.Tx) error {
		for seq := from; seq <= to; seq++ {
			e := ledger.Event{
				Seq: seq, RunID: "a", Type: ledger.RequestCreated, Payload: []byte(`"` + strings.Repeat("x", size) + `"`),
				Prev: hashOf(name, seq-1), Hash: hashOf(name, seq),
			}
			if err := tx.AddEvents([]ledger.Event{e}); err != nil {
				return err
			}
		}
		return nil
	}
}

// commits commits events of the ledger "x", each by itself.
func commits(t *testing.T, s *Store, from, to int64) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		if err := s.Update(t.Context(), adds("x", seq, seq, 8)); err != nil {
			t.Fatalf("event %d: %v", seq, err)
		}
	}
}

// keeps is commits, all of which must be kept in the tail.
func keeps(t *testing.T, s *Store, from, to int64) {
	t.Helper()
	before := s.Stats().Kept
	commits(t, s, from, to)
	if kept := s.Stats().Kept - before; kept != to-from+1 {
		t.Fatalf("%d commits were kept, want %d", kept, to-from+1)
	}
}

// settles brings everything into the file.
func settles(t *testing.T, s *Store) {
	t.Helper()
	if err := s.tail.settled(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// crash returns another ledger that is as this one would be if all processes ended now.
func crash(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "ledger.db")
	for _, suffix := range []string{"", "-wal", tail.Suffix} {
		text, err := os.ReadFile(path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil { // most of a tail are zeros, and no blocks of it are written
			err = errors.Join(os.WriteFile(to+suffix, bytes.TrimRight(text, "\x00"), 0o600), os.Truncate(to+suffix, int64(len(text))))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// found returns which events a store has.
func found(s *Store) (all []string, err error) {
	err = s.View(context.Background(), func(r ledger.Reader) error {
		for e, err := range r.Events(0) {
			if err != nil {
				return err
			}
			all = append(all, string(e.Hash))
		}
		return nil
	})
	return all, err
}

func foundBy(t *testing.T, open opening, path string) []string {
	t.Helper()
	s, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := found(s)
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return all
}

// from returns the events of the ledger "x" from one to another.
func from(first, last int64) (all []string) {
	for seq := first; seq <= last; seq++ {
		all = append(all, string(hashOf("x", seq)))
	}
	return all
}

// An opening is a way to open a ledger.
type opening func(path string) (*Store, error)

var openings = []struct {
	name string
	open opening
}{
	{"plain", func(path string) (*Store, error) { return Open(path, Options{}) }},
	{"with-a-tail", func(path string) (*Store, error) { return Open(path, Options{Tail: true}) }},
	{"read-only", OpenReadOnly},
}

func readTail(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path + tail.Suffix)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func changeTail(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	writeTail(t, path, change(readTail(t, path)))
}

func writeTail(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+tail.Suffix, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTailRefused opens ledgers whose tail cannot be what was left there. Nobody reads or writes them, nothing is changed, and with the
// right tail everything is there.
func TestTailRefused(t *testing.T) {
	base := filepath.Join(t.TempDir(), "ledger.db")
	s := holder(t, base)
	keeps(t, s, 1, 3)
	settles(t, s)
	keeps(t, s, 4, 6)
	tails := tailsOfAnother(t)
	foreign := func(events string) func(*testing.T, string) {
		return func(t *testing.T, path string) { writeTail(t, path, tails[events]) }
	}
	change := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) { changeTail(t, path, change) }
	}
	tests := []struct {
		name   string
		change func(t *testing.T, path string)
		want   error
		remedy string
	}{
		{"header", change(func(b []byte) []byte { b[tailHeader+20] ^= 1; return b }), ErrNotLedger, "move it away"},
		{"header-of-another-version", change(func(b []byte) []byte { b[tailHeader+12] = '2'; return b }), ErrNotLedger, "move it away"},
		{"header-of-zeros", change(func(b []byte) []byte { clear(b[tailHeader:tailHeaderEnd]); return b }), ErrNotLedger, "move it away"},
		{"cut-off", change(func(b []byte) []byte { return b[:len(b)/2] }), ErrNotLedger, "move it away"},
		{"record-that-is-not-the-last", change(func(b []byte) []byte {
			b[bytes.LastIndex(b, []byte("x-4"))] ^= 1
			return b
		}), ErrNotLedger, "move it away"},
		{"tail-of-another-ledger-that-goes-on", foreign("4-5"), ErrNotLedger, "move it away"},
		{"tail-of-another-ledger-further-on", foreign("7-9"), ErrNotLedger, "move it away"},
		{"tail-of-another-ledger-that-is-behind", foreign("1-3"), ErrNotLedger, "move it away"},
		{"another-event-in-the-file", func(t *testing.T, path string) { foreignWriter(t, path, "z") }, ErrNotLedger, "move it away"},
		{"linked", func(t *testing.T, path string) {
			if err := os.Link(path+tail.Suffix, path+".second"); err != nil {
				t.Fatal(err)
			}
		}, tail.ErrUnsafe, "remove that"},
		{"of-all", func(t *testing.T, path string) {
			if err := os.Chmod(path+tail.Suffix, 0o666); err != nil {
				t.Fatal(err)
			}
		}, tail.ErrUnsafe, "chmod"},
		{"a-link", func(t *testing.T, path string) {
			if err := errors.Join(os.Rename(path+tail.Suffix, path+".there"), os.Symlink(path+".there", path+tail.Suffix)); err != nil {
				t.Fatal(err)
			}
		}, tail.ErrUnsafe, "not a regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := crash(t, base)
			right := readTail(t, path)
			tt.change(t, path)
			wrong := readTail(t, path)
			for _, o := range openings {
				s, err := o.open(path)
				if err == nil {
					_, err = found(s)
					s.Close()
				}
				refused(t, err, tt.want, path+tail.Suffix, tt.remedy)
			}
			if !bytes.Equal(wrong, readTail(t, path)) {
				t.Error("the tail was changed")
			}
			if tt.name == "another-event-in-the-file" {
				return // nothing helps it
			}
			for _, name := range []string{path + tail.Suffix, path + ".second", path + ".there"} {
				if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
			}
			writeTail(t, path, right)
			if diff := cmp.Diff(from(1, 6), foundBy(t, openings[0].open, path)); diff != "" {
				t.Errorf("with the right tail (-want +got):\n%s", diff)
			}
		})
	}
}

// tailsOfAnother returns the tails of another ledger, by the events in them.
func tailsOfAnother(t *testing.T) map[string][]byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	s, tails := holder(t, path), make(map[string][]byte)
	for _, part := range [][2]int64{{1, 3}, {4, 5}, {6, 6}, {7, 9}} {
		for seq := part[0]; seq <= part[1]; seq++ {
			if err := s.Update(t.Context(), adds("y", seq, seq, 8)); err != nil {
				t.Fatal(err)
			}
		}
		tails[fmt.Sprintf("%d-%d", part[0], part[1])] = readTail(t, path)
		restarts(t, s)
	}
	return tails
}

// foreignWriter writes an event in a file as a program does that does not know of the tail.
func foreignWriter(t *testing.T, path, name string) {
	t.Helper()
	db := raw(t, path)
	run(t, db, fmt.Sprintf("INSERT INTO events (%s) VALUES (4, 'a', 'request.created', '', '', '{}', 'x-3', '', '%s-4', 0, '')", eventColumns, name))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTailLeftBehind: who copies a ledger without its tail has what is in the file, in one chain, and another ledger's tail is
// nothing to it if nobody has left anything there.
func TestTailLeftBehind(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := holder(t, path)
	keeps(t, s, 1, 3)
	settles(t, s)
	keeps(t, s, 4, 6)
	copied := crash(t, path)
	if err := os.Remove(copied + tail.Suffix); err != nil {
		t.Fatal(err)
	}
	bothRead(t, copied, 1, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copied = crash(t, path)
	writeTail(t, copied, tailClosed(t))
	if diff := cmp.Diff(from(1, 6), foundBy(t, openings[0].open, copied)); diff != "" {
		t.Errorf("beside another ledger's closed tail (-want +got):\n%s", diff)
	}
}

// tailClosed returns the tail of another ledger whose file has all commits.
func tailClosed(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := holder(t, path)
	if err := s.Update(t.Context(), adds("y", 1, 3, 8)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return readTail(t, path)
}

// TestTailWithoutRoom: the file takes nothing, and the tail does. Commits go on until it is full, and then they are refused; what was
// acknowledged is there when the file takes something again, and nothing else is.
func TestTailWithoutRoom(t *testing.T) {
	tests := []struct {
		name         string
		spoil, amend func(t *testing.T, s *Store)
		want         error
		remedy       string
	}{
		{"full", func(t *testing.T, s *Store) {
			pages, err := s.writer.number("PRAGMA page_count")
			if err == nil {
				_, err = s.writer.number("PRAGMA max_page_count = " + format(pages))
			}
			if err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, s *Store) {
			if _, err := s.writer.number("PRAGMA max_page_count = 1000000"); err != nil {
				t.Fatal(err)
			}
		}, ErrFull, "make room"},
		{"not-to-write", func(t *testing.T, s *Store) { queryOnly(t, s, "1") }, func(t *testing.T, s *Store) { queryOnly(t, s, "0") },
			ErrReadOnly, "this user needs to write"},
	}
	for _, tt := range tests {
		for _, closes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/closed-meanwhile=%t", tt.name, closes), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "ledger.db")
				s := holder(t, path)
				keeps(t, s, 1, 1)
				settles(t, s)
				tt.spoil(t, s)
				const size = 1 << 20
				last, err := int64(1), error(nil)
				for ; err == nil; last++ {
					err = s.Update(t.Context(), adds("x", last+1, last+1, size))
				}
				if last--; last != tail.Capacity/size {
					t.Errorf("it has taken %d events", last)
				}
				refused(t, err, tt.want, path, tt.remedy)
				refused(t, s.Update(t.Context(), adds("x", last+1, last+1, size)), tt.want, path, tt.remedy)
				_, err = found(s)
				refused(t, err, tt.want, path, tt.remedy)
				_, err = found(s)
				refused(t, err, tt.want, path, tt.remedy)
				inFile := func(tx ledger.Tx) error {
					return errors.Join(tx.PutToken(ledger.Token{ID: "k"}), adds("x", last+1, last+1, 8)(tx))
				}
				refused(t, s.Update(t.Context(), inFile), tt.want, path, tt.remedy)
				if closes {
					err := s.Close()
					refused(t, err, tt.want, path, tt.remedy)
					if n := strings.Count(err.Error(), tt.remedy); n != 1 {
						t.Errorf("it says %d times what to do: %v", n, err)
					}
					bothRead(t, path, 1, last)
					return
				}
				tt.amend(t, s)
				if err := s.Update(t.Context(), adds("x", last+1, last+1, size)); err != nil {
					t.Fatal(err)
				}
				keeps(t, s, last+2, last+3)
				bothRead(t, crash(t, path), 1, last+3)
			})
		}
	}
}

func queryOnly(t *testing.T, s *Store, value string) {
	t.Helper()
	if _, err := s.writer.exec(t.Context(), "PRAGMA query_only = "+value); err != nil {
		t.Fatal(err)
	}
}

// TestTailFails: a commit that the tail has not taken is refused, and those after it are written in the file.
func TestTailFails(t *testing.T) {
	s := holder(t, filepath.Join(t.TempDir(), "ledger.db"))
	keeps(t, s, 1, 3)
	s.tail.updating <- struct{}{}
	err := s.tail.failed(fmt.Errorf("%s%s: %w", s.path, tail.Suffix, syscall.EIO))
	<-s.tail.updating
	refused(t, err, syscall.EIO, s.path+tail.Suffix, "")
	kept := s.Stats().Kept
	commits(t, s, 4, 6)
	if s.Stats().Kept != kept || s.tail.held {
		t.Error("a tail that failed is used")
	}
	if pending := s.tail.pending; len(pending) != 0 {
		t.Errorf("%d commits were left", len(pending))
	}
	bothRead(t, crash(t, s.path), 1, 6)
	// Another process may find it in order.
	other := holder(t, s.path)
	keeps(t, other, 7, 7)
}

// TestTailTakenAway: a user removes or replaces the tail of a ledger that is held. Nothing is recorded or read until it is put back, and
// nothing that was acknowledged is lost.
func TestTailTakenAway(t *testing.T) {
	tests := []struct {
		name string
		take func(path string) error // away; it stands in path.away then
	}{
		{"moved", func(string) error { return nil }},
		{"replaced", func(path string) error { return os.WriteFile(path+tail.Suffix, nil, 0o600) }},
		{"copied", func(path string) error {
			text, err := os.ReadFile(path + ".away")
			return errors.Join(err, os.WriteFile(path+tail.Suffix, text, 0o600))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			s := holder(t, path)
			keeps(t, s, 1, 3)
			rename(t, path+tail.Suffix, path+".away")
			if err := tt.take(path); err != nil {
				t.Fatal(err)
			}
			none := func(ledger.Reader) error { return nil }
			for _, err := range []error{
				s.Update(t.Context(), adds("x", 4, 4, 8)),
				s.Update(t.Context(), func(tx ledger.Tx) error {
					return errors.Join(tx.PutToken(ledger.Token{ID: "k"}), adds("x", 4, 4, 8)(tx))
				}),
				s.View(t.Context(), none),
				s.Glance(t.Context(), none),
			} {
				if err == nil || !strings.Contains(err.Error(), path+tail.Suffix) || !strings.Contains(err.Error(), "put back") {
					t.Errorf("error %v, want one about the tail", err)
				}
			}
			rename(t, path+".away", path+tail.Suffix)
			keeps(t, s, 4, 5)
			got, err := found(s)
			if want := from(1, 5); err != nil || !slices.Equal(got, want) {
				t.Errorf("it has %v, %v, want %v", got, err, want)
			}
			bothRead(t, crash(t, path), 1, 5)
		})
	}
}

// TestTailForeignWriter: a program that does not know of the tail writes in the file while the ledger is held. What it has written
// stands where commits in the tail should: no more are acknowledged.
func TestTailForeignWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := holder(t, path)
	keeps(t, s, 1, 3)
	settles(t, s)
	keeps(t, s, 4, 4)
	foreignWriter(t, path, "z")
	_, err := found(s)
	refused(t, err, ErrNotLedger, path+tail.Suffix, "another event")
	for range 2 {
		refused(t, s.Update(t.Context(), adds("x", 5, 5, 8)), ErrNotLedger, path+tail.Suffix, "another event")
	}
	refused(t, s.Close(), ErrNotLedger, path+tail.Suffix, "another event")
	_, err = Open(path, Options{})
	refused(t, err, ErrNotLedger, path+tail.Suffix, "another event")
}

// TestTailOfALink: an auditor knows the ledger by another name. Its tail stands beside the file, and not beside the link.
func TestTailOfALink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	s := holder(t, path)
	keeps(t, s, 1, 3)
	left := crash(t, path)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(left, link); err != nil {
		t.Skip(err) // Windows, without the right to
	}
	if diff := cmp.Diff(from(1, 3), foundBy(t, OpenReadOnly, link)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if names, err := filepath.Glob(link + "*"); err != nil || len(names) != 1 {
		t.Errorf("there are %v, %v", names, err)
	}
}
