package tail

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/traces/ledger"
)

// A filler gives every field of a value one that no other field has, whatever fields there are.
type filler struct {
	t    testing.TB
	n    int64
	rows int // that a list gets
}

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i))
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(fmt.Appendf(nil, `"%d"`, f.n))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), f.rows, f.rows))
		for i := range f.rows {
			f.fill(v.Index(i))
		}
	case reflect.String:
		v.SetString(fmt.Sprint(f.n))
	case reflect.Int, reflect.Int64:
		v.SetInt(f.n * (1 - 2*(f.n%2))) // every other one is negative
	case reflect.Bool:
		v.SetBool(true)
	default:
		f.t.Fatalf("a field of type %s: the commit's spelling does not know it", v.Type())
	}
}

// full returns a commit in which every field is set, with so many rows in each list.
func full(t testing.TB, rows int) *Commit {
	c := new(Commit)
	(&filler{t: t, rows: rows}).fill(reflect.ValueOf(c).Elem())
	return c
}

// least returns a commit with one row in each list that is chosen by its bit, with no field set.
func least(lists int) *Commit {
	c := new(Commit)
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		if lists&(1<<i) != 0 {
			v.Field(i).Set(reflect.MakeSlice(v.Field(i).Type(), 1, 1))
		}
	}
	return c
}

// TestEveryFieldOfACommitComesBack fails when a field is added to a row, until the spelling has it.
func TestEveryFieldOfACommitComesBack(t *testing.T) {
	for rows := range 4 {
		want := full(t, max(rows, 1))
		if rows == 0 {
			want = new(Commit)
		}
		b := want.Append([]byte("before"))
		if !bytes.HasPrefix(b, []byte("before")) {
			t.Fatalf("what was there is gone: %q", b)
		}
		b = b[len("before"):]
		got, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			b[i] = 0xff // what came back is no part of it
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d rows a list came back otherwise (-want +got):\n%s", rows, diff)
		}
	}
}

func TestExtremeValuesComeBack(t *testing.T) {
	want := full(t, 1)
	want.Events[0].Seq, want.Requests[0].Seq = 1<<63-1, -1<<63
	want.Requests[0].New = false
	want.Blobs[0].Text = strings.Repeat("\xff\x00", 1<<17)
	want.Steps[0].Facts = ""
	got, err := Parse(want.Append(nil))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v; it came back otherwise (-want +got):\n%s", err, diff)
	}
}

// TestEmptyAndNoneAreTheSame: the ledger does not tell them apart either.
func TestEmptyAndNoneAreTheSame(t *testing.T) {
	some, none := full(t, 1), full(t, 1)
	some.Requests[0].Approvers, none.Requests[0].Approvers = []string{}, nil
	some.Events[0].Payload, none.Events[0].Payload = []byte{}, nil
	some.Blobs, none.Blobs = []ledger.Blob{}, nil
	got, err := Parse(some.Append(nil))
	if diff := cmp.Diff(none, got); err != nil || diff != "" {
		t.Errorf("%v; it came back otherwise (-want +got):\n%s", err, diff)
	}
}

// TestLeastRows: the bounds of how many rows there can be are those of rows without a field set.
func TestLeastRows(t *testing.T) {
	none := len(new(Commit).Append(nil))
	for i, want := range []int{leastBlob, leastStep, leastDecision, leastPut, leastEvent} {
		if got := len(least(1<<i).Append(nil)) - none; got != want {
			t.Errorf("a row of list %d has at least %d bytes, and %d are supposed", i, got, want)
		}
	}
}

// canonical fails unless what is parsed has exactly this spelling.
func canonical(t *testing.T, b []byte) {
	t.Helper()
	if c, err := Parse(b); err == nil && !bytes.Equal(c.Append(nil), b) {
		t.Fatalf("%x is parsed, and has another spelling: %x", b, c.Append(nil))
	}
}

func TestEveryTruncationOfACommitIsRefused(t *testing.T) {
	b := full(t, 2).Append(nil)
	for n := range b {
		if _, err := Parse(b[:n:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are parsed", n, len(b))
		}
	}
}

func TestEveryChangedByteOfACommitIsRefusedOrAnotherCommit(t *testing.T) {
	b := full(t, 1).Append(nil)
	for i, was := range b {
		for to := range 256 {
			b[i] = byte(to)
			canonical(t, b)
		}
		b[i] = was
	}
}

func TestCommitsThatAreNone(t *testing.T) {
	none := new(Commit).Append(nil)
	if diff := cmp.Diff([]byte{version, 0, 0, 0, 0, 0}, none); diff != "" {
		t.Fatalf("no rows (-want +got):\n%s", diff)
	}
	request := least(1 << 3).Append(nil)
	for _, tc := range []struct {
		name string
		b    []byte
		want string
	}{
		{"nothing", nil, "at byte 0"},
		{"another-version", append([]byte{version + 1}, none[1:]...), "at byte 0: its version"},
		{"something-behind", append(slices.Clone(none), 0), "at byte 6: nothing more"},
		{"a-count-with-a-longer-spelling", []byte{version, 0x80, 0, 0, 0, 0, 0}, "at byte 1: the number has a shorter spelling"},
		{"more-rows-than-fit", []byte{version, 2, 0, 0, 0, 0, 0}, "2 things of 3 bytes"},
		{"as-many-rows-as-a-number-says", append(binary.AppendUvarint([]byte{version}, 1<<63), 0, 0, 0), "more than is left"},
		{"a-number-beyond-64-bits", append(bytes.Repeat([]byte{0xff}, 10), 2), "at byte 0"},
		{"a-count-beyond-64-bits", append([]byte{version}, append(bytes.Repeat([]byte{0xff}, 9), 2)...), "at byte 1: the number is too large"},
		{"a-count-without-an-end", append([]byte{version}, bytes.Repeat([]byte{0x80}, 20)...), "at byte 1: the number is too large"},
		{"the-end-within-a-number", []byte{version, 0x80}, "at byte 1: it ends within"},
		{"a-text-longer-than-what-is-left", []byte{version, 1, 6, 'a', 'b', 'c', 0, 0}, "6 things of 1 bytes"},
		{"neither-true-nor-false", replaced(request, 5+leastPut-1, 2), "want 0 or 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Parse(tc.b)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse = %+v, %v, want %q", c, err, tc.want)
			}
		})
	}
}

func replaced(b []byte, at int, by byte) []byte {
	b = slices.Clone(b)
	b[at] = by
	return b
}

func TestAppendingACommitAllocatesNothingElse(t *testing.T) {
	c := full(t, 3)
	b := make([]byte, 0, 2*len(c.Append(nil)))
	if n := testing.AllocsPerRun(10, func() { b = c.Append(b[:0]) }); n != 0 {
		t.Errorf("%v allocations with room for all of it", n)
	}
}

func FuzzParse(f *testing.F) {
	for lists := range 1 << 5 {
		f.Add(least(lists).Append(nil))
	}
	f.Add(full(f, 1).Append(nil))
	f.Add(full(f, 3).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) { canonical(t, b) })
}

func BenchmarkCommit(b *testing.B) {
	c := full(b, 4)
	text := c.Append(nil)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			text = c.Append(text[:0])
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Parse(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
