package tail

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const room = recordsAt + 4096 // what most tests need

// in opens the tail of a ledger that is not there, and takes its exclusive lock.
func in(t testing.TB, ledger string, o Options) *File {
	t.Helper()
	f, err := Open(ledger, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if ok, err := f.TryExclusive(); !ok || err != nil {
		t.Fatalf("TryExclusive = %t, %v", ok, err)
	}
	return f
}

// fresh opens a new tail, and says of which ledger.
func fresh(t testing.TB, capacity int64) (*File, string) {
	t.Helper()
	ledger := filepath.Join(t.TempDir(), "ledger.db")
	return in(t, ledger, Options{Create: true, capacity: capacity}), ledger
}

func begin(t testing.TB, f *File, records ...string) {
	t.Helper()
	if err := f.Begin(); err != nil {
		t.Fatal(err)
	}
	add(t, f, records...)
}

func add(t testing.TB, f *File, records ...string) {
	t.Helper()
	for _, r := range records {
		if err := f.Append([]byte(r)); err != nil {
			t.Fatal(err)
		}
	}
}

func pends(t testing.TB, f *File, want bool) {
	t.Helper()
	if got, err := f.Pending(); err != nil || got != want {
		t.Fatalf("Pending = %t, %v, want %t", got, err, want)
	}
}

// left returns what is left as text: "index text", and "index text!" behind a gap.
func left(t testing.TB, f *File) []string {
	t.Helper()
	all, err := collected(f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func collected(f *File) (all []string, err error) {
	for r, err := range f.Left() {
		if err != nil {
			return all, err
		}
		text := fmt.Sprintf("%d %s", r.Index, r.Bytes)
		if r.Gap {
			text += "!"
		}
		all = append(all, text)
	}
	return all, nil
}

func same(t testing.TB, what string, want, got []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// another opens the same tail again, as the next process does.
func another(t testing.TB, f *File, ledger string) *File {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return in(t, ledger, Options{capacity: f.capacity})
}

func TestRecordsComeBack(t *testing.T) {
	f, ledger := fresh(t, room)
	pends(t, f, false)
	same(t, "in a new file", nil, left(t, f))
	long := strings.Repeat("x", 1000)
	begin(t, f, "one", "", long)
	want := []string{"0 one", "1 ", "2 " + long}
	same(t, "in this process", want, left(t, f))

	f = another(t, f, ledger)
	pends(t, f, true)
	same(t, "in another", want, left(t, f))
	if err := f.Begin(); !errors.Is(err, errLeft) {
		t.Fatalf("Begin = %v with records that are not in the ledger", err)
	}
	same(t, "after Begin was refused", want, left(t, f))
	if err := f.End(); err != nil {
		t.Fatal(err)
	}
	pends(t, f, false)
	same(t, "after the end", nil, left(t, f))

	begin(t, f, "four")
	same(t, "in a new generation", []string{"0 four"}, left(t, f))
	if info, err := os.Stat(ledger + Suffix); err != nil || info.Size() != room {
		t.Errorf("%d bytes, %v, want %d", info.Size(), err, room)
	}
}

// TestRestartHidesOldRecords, also those that stand whole behind the new ones.
func TestRestartHidesOldRecords(t *testing.T) {
	f, ledger := fresh(t, room)
	begin(t, f, "aaaa", "bbbb", "cccc")
	if err := f.Restart(); err != nil {
		t.Fatal(err)
	}
	pends(t, f, true)
	same(t, "after a restart", nil, left(t, f))
	add(t, f, "dddd")
	f = another(t, f, ledger)
	same(t, "one record later", []string{"0 dddd"}, left(t, f))
}

func TestCapacity(t *testing.T) {
	f, ledger := fresh(t, recordsAt+2*int64(recordBytes)+10)
	begin(t, f, "12345")
	if f.Room() != 5 {
		t.Errorf("Room = %d, want 5", f.Room())
	}
	if err := f.Append([]byte("123456")); !errors.Is(err, ErrFull) {
		t.Errorf("one byte too many: %v, want ErrFull", err)
	}
	same(t, "after what does not fit", []string{"0 12345"}, left(t, f))
	add(t, f, "54321")
	if f.Room() != 0 {
		t.Errorf("Room = %d, want 0", f.Room())
	}
	if err := f.Append(nil); !errors.Is(err, ErrFull) {
		t.Errorf("nothing, in a full file: %v, want ErrFull", err)
	}
	same(t, "a full file", []string{"0 12345", "1 54321"}, left(t, another(t, f, ledger)))
	small, _ := fresh(t, recordsAt+3)
	begin(t, small)
	if err := small.Append(nil); !errors.Is(err, ErrFull) || small.Room() != 0 {
		t.Errorf("what never fits: %v with room for %d, want ErrFull", err, small.Room())
	}
}

// changed changes the file of a tail while it is closed.
func changed(t testing.TB, ledger string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(ledger + Suffix)
	if err == nil {
		err = os.WriteFile(ledger+Suffix, change(b), fileMode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTornLastRecord: its first bytes are there, and behind them what was there before.
func TestTornLastRecord(t *testing.T) {
	const last = "the last one"
	from := recordsAt + 2*recordBytes + 8
	for _, tc := range []struct {
		name   string
		before func(t *testing.T, f *File)
		torn   func(b []byte)
	}{
		{"behind-it-are-zeros", func(*testing.T, *File) {}, func(b []byte) { clear(b) }},
		{"behind-it-is-old-garbage", func(*testing.T, *File) {}, func(b []byte) {
			for i := range b {
				b[i] = byte(i*7 + 3)
			}
		}},
		{"behind-it-are-old-records", func(t *testing.T, f *File) {
			add(t, f, "0000", "1111", "2222", "3333", "4444")
			if err := f.Restart(); err != nil {
				t.Fatal(err)
			}
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, ledger := fresh(t, room)
			begin(t, f)
			tc.before(t, f)
			add(t, f, "aaaa", "bbbb")
			old, err := os.ReadFile(ledger + Suffix)
			if err != nil {
				t.Fatal(err)
			}
			if tc.torn != nil {
				tc.torn(old[from:])
			}
			add(t, f, last)
			f = another(t, f, ledger)
			same(t, "whole", []string{"0 aaaa", "1 bbbb", "2 " + last}, left(t, f))
			whole, err := os.ReadFile(ledger + Suffix)
			if err != nil {
				t.Fatal(err)
			}
			for n := range recordBytes + len(last) {
				torn := append(bytes.Clone(whole[:from+n]), old[from+n:]...)
				if bytes.Equal(torn, whole) {
					continue // what is missing is what was there before
				}
				if err := os.WriteFile(ledger+Suffix, torn, fileMode); err != nil {
					t.Fatal(err)
				}
				same(t, fmt.Sprintf("%d bytes of the last", n), []string{"0 aaaa", "1 bbbb"}, left(t, f))
			}
		})
	}
}

// TestDamagedMiddle: what comes behind a record that is not whole is found, and it is said that it does.
func TestDamagedMiddle(t *testing.T) {
	f, ledger := fresh(t, room)
	begin(t, f, "aaaa", "bbbb", "cccc", "dddd")
	f = another(t, f, ledger)
	whole, err := os.ReadFile(ledger + Suffix)
	if err != nil {
		t.Fatal(err)
	}
	const each = recordBytes + 4
	for i := recordsAt + each; i < recordsAt+2*each; i++ {
		changed(t, ledger, func([]byte) []byte { return replaced(whole, i, whole[i]^0x10) })
		same(t, fmt.Sprintf("byte %d is another", i), []string{"0 aaaa", "2 cccc!", "3 dddd!"}, left(t, f))
	}
	changed(t, ledger, func([]byte) []byte { return replaced(whole, recordsAt, whole[recordsAt]^0x10) })
	same(t, "the first is damaged", []string{"1 bbbb!", "2 cccc!", "3 dddd!"}, left(t, f))
	changed(t, ledger, func([]byte) []byte {
		b := bytes.Clone(whole)
		copy(b[recordsAt+each:], whole[recordsAt+2*each:])
		return b
	})
	same(t, "one is missing", []string{"0 aaaa", "2 cccc!", "3 dddd!"}, left(t, f))
	changed(t, ledger, func([]byte) []byte {
		b := bytes.Clone(whole)
		copy(b[recordsAt+2*each+1:], whole[recordsAt+2*each:])
		return b
	})
	same(t, "something stands between", []string{"0 aaaa", "1 bbbb", "2 cccc!", "3 dddd!"}, left(t, f))
	changed(t, ledger, func([]byte) []byte {
		b := bytes.Clone(whole)
		copy(b[recordsAt+2*each:recordsAt+3*each], whole[recordsAt:])
		return b
	})
	if all, err := collected(f); !errors.Is(err, ErrDamaged) {
		t.Errorf("Left = %q, %v: one stands there twice, want ErrDamaged", all, err)
	}
}

func TestHeaders(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func([]byte) []byte
		damaged string // nothing: it is as if it were not used
	}{
		{"empty", func([]byte) []byte { return nil }, ""},
		{"a-short-file-of-zeros", func([]byte) []byte { return make([]byte, headerAt+7) }, ""},
		{"all-zero", func(b []byte) []byte { clear(b); return b }, ""},
		{"a-zero-header-before-records", func(b []byte) []byte { clear(b[:recordsAt]); return b }, "no header, but something else"},
		{"something-before-a-zero-header", func(b []byte) []byte { clear(b); b[3] = 1; return b }, "no header, but something else"},
		{"half-a-header", func(b []byte) []byte { return b[:headerAt+headerSize/2] }, "the sum of its header"},
		{"another-version", func(b []byte) []byte { b[headerAt+12]++; return b }, "another version"},
		{"text", func(b []byte) []byte { copy(b[headerAt:], "Dear diary, today I "); return b }, "another version"},
		{"another-generation", func(b []byte) []byte { b[headerAt+generationAt]++; return b }, "the sum of its header"},
		{"another-capacity", func(b []byte) []byte { b[headerAt+capacityAt]++; return b }, "the sum of its header"},
		{"another-state", func(b []byte) []byte { b[headerAt+stateAt] = byte(closed); return b }, "the sum of its header"},
		{"another-sum", func(b []byte) []byte { b[headerAt+headerSumAt]++; return b }, "the sum of its header"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, ledger := fresh(t, room)
			begin(t, f, "one")
			f = another(t, f, ledger)
			changed(t, ledger, tc.change)
			pending, err := f.Pending()
			all, failed := collected(f)
			if tc.damaged == "" {
				if pending || err != nil || all != nil || failed != nil {
					t.Errorf("Pending = %t, %v; Left = %q, %v", pending, err, all, failed)
				}
				begin(t, f, "two")
				same(t, "begun again", []string{"0 two"}, left(t, f))
				return
			}
			for _, err := range []error{err, failed, f.Begin()} {
				if !errors.Is(err, ErrDamaged) || !strings.Contains(fmt.Sprint(err), tc.damaged) || !strings.Contains(err.Error(), ledger+Suffix) {
					t.Errorf("%v, want ErrDamaged: %s", err, tc.damaged)
				}
			}
			if pending || all != nil {
				t.Errorf("Pending = %t; Left = %q", pending, all)
			}
		})
	}
}

// TestEmptyTailTakesNoMemory looks at a tail that nobody has kept commits in, as each transaction of a ledger that is not served does.
func TestEmptyTailTakesNoMemory(t *testing.T) {
	f, _ := fresh(t, room)
	const looks = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range looks {
		pends(t, f, false)
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) / looks; took > 4<<10 {
		t.Errorf("a look takes %d bytes of memory; the file has none", took)
	}
}

// TestHeadersThatNobodyWrites have a good sum.
func TestHeadersThatNobodyWrites(t *testing.T) {
	for _, h := range []header{
		{capacity: room, state: 3}, {capacity: recordsAt - 1, state: open}, {capacity: -1, state: closed},
		{capacity: maxCapacity + 1, state: closed},
	} {
		f, _ := fresh(t, room)
		if err := f.put(h); err != nil {
			t.Fatal(err)
		}
		if pending, err := f.Pending(); pending || !errors.Is(err, ErrDamaged) {
			t.Errorf("%+v: Pending = %t, %v, want ErrDamaged", h, pending, err)
		}
	}
}

func TestCutOff(t *testing.T) {
	f, ledger := fresh(t, room)
	begin(t, f, "one")
	f = another(t, f, ledger)
	changed(t, ledger, func(b []byte) []byte { return b[:len(b)-1] })
	pends(t, f, true)
	if all, err := collected(f); !errors.Is(err, ErrDamaged) || all != nil {
		t.Errorf("Left = %q, %v, want ErrDamaged", all, err)
	}
}

// TestCutOffAndEnded: what was ended gets its length again.
func TestCutOffAndEnded(t *testing.T) {
	for _, size := range []int{headerAt + headerSize, recordsAt + 1, room - 1} {
		f, ledger := fresh(t, room)
		begin(t, f, "one")
		if err := f.End(); err != nil {
			t.Fatal(err)
		}
		f = another(t, f, ledger)
		changed(t, ledger, func(b []byte) []byte { return b[:size] })
		begin(t, f, "two")
		same(t, fmt.Sprintf("cut off after %d bytes", size), []string{"0 two"}, left(t, f))
	}
}

// TestAnotherCapacity: that of the header counts for what is left, and that of the program for what comes.
func TestAnotherCapacity(t *testing.T) {
	for _, capacity := range []int64{room - 1000, room + 1000} {
		f, ledger := fresh(t, room)
		begin(t, f, strings.Repeat("x", 4000))
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		f = in(t, ledger, Options{capacity: capacity})
		if all := left(t, f); len(all) != 1 {
			t.Fatalf("%d records are left, want 1", len(all))
		}
		if err := f.Restart(); err != nil {
			t.Fatal(err)
		}
		if want := capacity - recordsAt - int64(recordBytes); f.Room() != want {
			t.Errorf("Room = %d, want %d", f.Room(), want)
		}
		add(t, f, strings.Repeat("y", int(f.Room())))
		if all := left(t, f); len(all) != 1 {
			t.Errorf("%d records are left, want 1", len(all))
		}
	}
}

func TestWhatNeedsALock(t *testing.T) {
	f, ledger := fresh(t, room)
	begin(t, f, "one")
	if err := f.Unlock(); err != nil {
		t.Fatal(err)
	}
	pending := func() error { _, err := f.Pending(); return err }
	left := func() error { _, err := collected(f); return err }
	calls := func(want error, calls ...func() error) {
		t.Helper()
		for i, call := range calls {
			if err := call(); !errors.Is(err, want) {
				t.Errorf("call %d: %v, want %v", i, err, want)
			}
		}
	}
	add := func() error { return f.Append(nil) }
	calls(ErrBusy, pending, left, f.Begin, add, f.Restart, f.End)
	if ok, err := f.TryShared(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	calls(ErrBusy, left, f.Begin, add, f.Restart, f.End)
	calls(nil, pending)
	if ok, err := f.TryExclusive(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	calls(ErrBusy, add) // where the next record goes is known to who began only
	calls(nil, pending, left, f.Restart, add, f.End)
	calls(ErrBusy, add)
	if f.Room() != 0 {
		t.Errorf("Room = %d at the end", f.Room())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f = in(t, ledger, Options{ReadOnly: true, capacity: room})
	calls(fs.ErrPermission, f.Begin, add, f.Restart, f.End)
	calls(nil, pending, left)
}
