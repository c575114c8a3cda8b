package tail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gofrs/flock"
)

const sector = 512

// A fault is what happens at an operation that changes something.
type fault int

const (
	fine    fault = iota
	refused       // nothing is done
	lost          // of a flush nothing is done, nor will it ever be
	partial       // of a write one half is done, and of a flush some sectors, and never the others
	dies          // the process ends before it
)

// errDied is what a process panics with that ends.
var errDied = errors.New("the process ended")

// A platter is a file in memory of which it is known what is on disk and what is not yet.
type platter struct {
	cache, disk []byte
	dirty       map[int]bool // sectors of the cache that are not on disk
	named       bool         // whether its name is on disk
	calls       int
	at, times   int // the first call that goes wrong, and how many do
	fault       fault
	chance      *rand.Rand
}

// happens says what happens at the next operation.
func (p *platter) happens() fault {
	p.calls++
	if p.calls >= p.at && p.calls < p.at+p.times {
		if p.fault == dies {
			panic(errDied)
		}
		return p.fault
	}
	return fine
}

func (p *platter) ReadAt(b []byte, at int64) (int, error) {
	n := copy(b, p.cache[min(int(at), len(p.cache)):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (p *platter) WriteAt(b []byte, at int64) (int, error) {
	var err error
	switch p.happens() {
	case refused, lost:
		return 0, syscall.EIO
	case partial:
		if int(at)/sector == (int(at)+len(b)-1)/sector {
			return 0, syscall.ENOSPC // nothing tears what lies in one sector
		}
		b, err = b[:len(b)/2], syscall.ENOSPC
	}
	if end := int(at) + len(b); end > len(p.cache) {
		p.cache = append(p.cache, make([]byte, end-len(p.cache))...)
	}
	copy(p.cache[at:], b)
	for i := int(at) / sector; i*sector < int(at)+len(b); i++ {
		p.dirty[i] = true
	}
	return len(b), err
}

func (p *platter) Truncate(size int64) error {
	if p.happens() != fine {
		return syscall.EIO
	}
	p.cache = p.cache[:size]
	return nil
}

// land writes a sector of the cache to disk.
func (p *platter) land(i int) {
	end := min((i+1)*sector, len(p.cache))
	if i*sector >= end {
		return // it was cut off
	}
	if end > len(p.disk) {
		p.disk = append(p.disk, make([]byte, end-len(p.disk))...)
	}
	copy(p.disk[i*sector:end], p.cache[i*sector:end])
}

func (p *platter) flush() error {
	what := p.happens()
	if what == refused {
		return syscall.EIO
	}
	for _, i := range slices.Sorted(maps.Keys(p.dirty)) {
		if what == fine || what == partial && p.chance.IntN(2) == 0 {
			p.land(i)
		}
	}
	clear(p.dirty)
	if what != fine {
		return syscall.EIO
	}
	return nil
}

func (p *platter) Sync() error { return p.flush() }

func (p *platter) flushName() error {
	if p.happens() != fine {
		return syscall.EIO
	}
	p.named = true
	return nil
}

func (p *platter) Stat() (fs.FileInfo, error) { return length{size: len(p.cache)}, nil }
func (p *platter) Close() error               { return nil }

// A length is all that is known of a file in memory.
type length struct {
	fs.FileInfo
	size int
}

func (l length) Size() int64 { return int64(l.size) }

// inMemory opens a tail on a platter, with its exclusive lock.
func inMemory(p *platter) *File {
	return &File{path: "ledger.db-tail", capacity: simulated, disk: p, hold: exclusive, lock: flock.New("/none/ledger.db-tail")}
}

// simulated is the capacity there: of some records.
const simulated = recordsAt + 4*sector

// after returns what is there when the power has failed: of what was not flushed nothing, everything, or each sector by
// chance.
func (p *platter) after(landing int) *platter {
	q := &platter{disk: bytes.Clone(p.disk), cache: p.cache, named: p.named, chance: rand.New(rand.NewPCG(uint64(p.at), uint64(landing)))}
	for _, i := range slices.Sorted(maps.Keys(p.dirty)) {
		if landing == 1 || landing > 1 && q.chance.IntN(2) == 0 {
			q.land(i)
		}
	}
	if !p.named && landing != 1 {
		q.disk = nil // nor has it a name
	}
	return &platter{cache: q.disk, dirty: map[int]bool{}, chance: q.chance}
}

// An account is what a program knows of its records.
type account struct {
	t    *testing.T
	f    *File
	next int

	elsewhere []string // are in the ledger
	there     []string // were acknowledged, and are not
	never     []string // it was said that they are not recorded
	undecided []string // nobody can say, or nobody was told yet
}

// record appends a record of another size than those around it.
func (a *account) record() {
	text := fmt.Sprintf("record %d %s", a.next, strings.Repeat("x", a.next*131%400))
	a.next++
	a.undecided = append(a.undecided, text)
	switch err := a.f.Append([]byte(text)); {
	case errors.Is(err, ErrUndecided):
		a.over(a.f.Restart)
		return
	case err == nil:
		a.there = append(a.there, text)
	default:
		a.never = append(a.never, text)
	}
	a.undecided = a.undecided[:len(a.undecided)-1]
}

// over brings what is there elsewhere and says so.
func (a *account) over(say func() error) {
	a.elsewhere, a.there = append(a.elsewhere, a.there...), nil
	for range 2 {
		if say() == nil {
			a.never, a.undecided = append(a.never, a.undecided...), nil
			return
		}
	}
}

// works is a program that appends, and fills, begins again, ends and begins the file.
func (a *account) works() {
	defer func() {
		if r := recover(); r != nil && r != errDied {
			panic(r)
		}
	}()
	for range 2 {
		if err := a.f.Begin(); err != nil {
			if err = a.f.Begin(); err != nil { // once more
				continue
			}
		}
		for range 3 {
			a.record()
		}
		a.over(a.f.Restart)
		for range 2 {
			a.record()
		}
		a.over(a.f.Restart)
		a.record()
		a.over(a.f.End)
	}
	if a.f.Begin() == nil {
		a.record()
		a.record()
	}
}

// finds checks what is left, when the program has ended or the power has failed.
func (a *account) finds(when string, p *platter) {
	a.t.Helper()
	f := inMemory(p)
	pending, err := f.Pending()
	if err != nil {
		a.t.Fatalf("%s: Pending: %v", when, err)
	}
	if !pending && len(a.there) > 0 {
		a.t.Fatalf("%s: %d records are lost", when, len(a.there))
	}
	var found []string
	for r, err := range f.Left() {
		text := string(r.Bytes)
		known := slices.Contains(a.elsewhere, text)
		undecided := slices.Contains(a.undecided, text)
		switch {
		case err != nil:
			a.t.Fatalf("%s: Left: %v", when, err)
		case slices.Contains(a.never, text):
			a.t.Fatalf("%s: record %d, %q, was found, and it was said that it is not there", when, r.Index, text)
		case !known && r.Gap:
			a.t.Fatalf("%s: record %d, %q, stands behind a gap", when, r.Index, text)
		case !known && !undecided && !slices.Contains(a.there, text):
			a.t.Fatalf("%s: record %d, %q, was never appended", when, r.Index, text)
		case !known && !undecided:
			found = append(found, text)
		}
	}
	same(a.t, when+": what was acknowledged", a.there, found)
	if err := f.Restart(); err != nil {
		a.t.Fatalf("%s: Restart: %v", when, err)
	}
	add(a.t, f, "afterwards")
	same(a.t, when+": afterwards", []string{"0 afterwards"}, left(a.t, f))
}

// forEver is how often something goes wrong that does not go right again.
const forEver = 1 << 20

// TestFaults: at each operation of a program, each thing that can happen, some times and for ever. In the end the
// process is killed, or the power fails. What was acknowledged is there then, and what was said not to be there is not.
func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault fault
		times []int
	}{
		{"nothing-happens", fine, []int{1}},
		{"operations-are-refused", refused, []int{1, 2, 3, forEver}},
		{"flushes-are-lost", lost, []int{1, 2, 3, forEver}},
		{"half-of-an-operation-is-done", partial, []int{1, 2, 3, forEver}},
		{"the-process-ends", dies, []int{1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			acknowledged, undecided := 0, 0
			for _, times := range tc.times {
				for at, last := 1, false; !last; at++ {
					p := &platter{dirty: map[int]bool{}, at: at, times: times, fault: tc.fault, chance: rand.New(rand.NewPCG(uint64(times), uint64(at)))}
					a := &account{t: t, f: inMemory(p)}
					a.works()
					acknowledged, undecided = acknowledged+len(a.there), undecided+len(a.undecided)
					when := fmt.Sprintf("%d times from operation %d", times, at)
					for landing := range 6 {
						a.finds(fmt.Sprintf("%s, the power fails (%d)", when, landing), p.after(landing))
					}
					last, p.times = p.calls < at, 0
					a.finds(when+", the process is killed", p)
				}
			}
			if acknowledged == 0 || tc.fault == dies && undecided == 0 {
				t.Errorf("%d records were to be there in all, and %d were undecided: too few", acknowledged, undecided)
			}
		})
	}
}

// TestFullDisk: a file that does not get its length leaves the room to others, and gets it the next time.
func TestFullDisk(t *testing.T) {
	for _, tc := range []struct {
		name  string
		at    int // of its name, the header, the zeros, and the flush
		fault fault
	}{
		{"its-name", 1, refused}, {"its-header", 2, refused}, {"its-zeros", 3, refused}, {"half-its-zeros", 3, partial},
		{"its-flush", 4, refused}, {"half-its-flush", 4, partial}, {"its-flush-is-lost", 4, lost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &platter{dirty: map[int]bool{}, chance: rand.New(rand.NewPCG(1, 1)), at: tc.at, times: 1, fault: tc.fault}
			f := inMemory(p)
			if err := f.Begin(); !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), f.path) {
				t.Fatalf("Begin = %v", err)
			}
			if len(p.cache) != 0 || f.Room() != 0 {
				t.Errorf("it has %d bytes, and room for %d", len(p.cache), f.Room())
			}
			pends(t, f, false)
			begin(t, f, "one")
			same(t, "the next time", []string{"0 one"}, left(t, inMemory(p.after(0))))
		})
	}
}

// TestUndecided: what comes after a record about which nobody can say anything has to be begun again.
func TestUndecided(t *testing.T) {
	p := &platter{dirty: map[int]bool{}, chance: rand.New(rand.NewPCG(1, 1))}
	f := inMemory(p)
	begin(t, f, "one")
	p.at, p.times, p.fault = p.calls+2, 2, refused // its flush, and that it is withdrawn
	if err := f.Append([]byte("two")); !errors.Is(err, ErrUndecided) || !errors.Is(err, syscall.EIO) {
		t.Fatalf("Append = %v, want ErrUndecided and why", err)
	}
	if err := f.Append([]byte("three")); !errors.Is(err, ErrUndecided) {
		t.Fatalf("Append = %v, want ErrUndecided: the disk is well again, but nobody can say", err)
	}
	same(t, "it is not there, or whole", []string{"0 one", "1 two"}, left(t, f))
	if err := f.Restart(); err != nil {
		t.Fatal(err)
	}
	same(t, "begun again, after the power has failed", nil, left(t, inMemory(p.after(0))))
	add(t, f, "three")
	same(t, "afterwards", []string{"0 three"}, left(t, inMemory(p.after(0))))
}

// TestRefusedAppends: a record that could not be appended leaves its place to the next one.
func TestRefusedAppends(t *testing.T) {
	for _, tc := range []struct {
		name  string
		after int // calls
		fault fault
		want  error
	}{
		{"a-write-that-is-refused", 1, refused, syscall.EIO},
		{"half-a-write", 1, partial, syscall.ENOSPC},
		{"a-flush-that-is-refused", 2, refused, syscall.EIO},
		{"a-flush-that-is-lost", 2, lost, syscall.EIO},
		{"half-a-flush", 2, partial, syscall.EIO},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &platter{dirty: map[int]bool{}, chance: rand.New(rand.NewPCG(1, 1))}
			f := inMemory(p)
			begin(t, f, "one")
			room := f.Room()
			p.at, p.times, p.fault = p.calls+tc.after, 1, tc.fault
			long := strings.Repeat("x", 700)
			if err := f.Append([]byte(long)); !errors.Is(err, tc.want) || errors.Is(err, ErrUndecided) || !strings.Contains(err.Error(), f.path) {
				t.Fatalf("Append = %v, want %v", err, tc.want)
			}
			if f.Room() != room {
				t.Errorf("there is room for %d bytes, and there was for %d", f.Room(), room)
			}
			same(t, "it is not there", []string{"0 one"}, left(t, f))
			same(t, "nor after the power has failed", []string{"0 one"}, left(t, inMemory(p.after(0))))
			add(t, f, "two")
			same(t, "the next one", []string{"0 one", "1 two"}, left(t, inMemory(p.after(0))))
		})
	}
}
