package tail

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const (
	headerAt   = 512 // a sector of its own, behind the byte that Windows locks
	headerSize = 48
	recordsAt  = 4096

	magic = "pgfsm tail v1\x00\x00\x00"

	// maxCapacity bounds what is read into memory because a header says so.
	maxCapacity = 64 << 20
	// chunk is how many zeros are written or looked for at once.
	chunk = 256 << 10
)

// Where the parts of a header are.
const (
	generationAt = len(magic)
	capacityAt   = generationAt + len(generation{})
	stateAt      = capacityAt + 8
	headerSumAt  = stateAt + 4
)

// A generation is what all records have that were appended since the file was last begun.
type generation [16]byte

// A state is what a header says of the records behind it.
type state uint32

const (
	unused state = iota // there has never been a header
	open
	closed
)

// A header is the header of a file.
type header struct {
	generation generation
	capacity   int64 // that the file has on disk: 0 before it was begun first
	state      state
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errLeft says that a file is not to be begun again like that.
var errLeft = errors.New("it has records that nobody has brought into the ledger")

// Pending reports whether there may be records that are not in the ledger. It reads one header.
func (f *File) Pending() (bool, error) {
	if err := f.needs(shared); err != nil {
		return false, err
	}
	h, err := f.header()
	return h.state == open, err
}

// header reads the header.
func (f *File) header() (header, error) {
	b := f.head[:]
	n, err := f.disk.ReadAt(b, headerAt)
	if err != nil && !errors.Is(err, io.EOF) {
		return header{}, fmt.Errorf("%s: its header: %w", f.path, err)
	}
	clear(b[n:])
	if f.head == [headerSize]byte{} {
		return header{}, f.zeros()
	}
	h := header{
		generation: generation(b[generationAt:capacityAt]), capacity: int64(binary.LittleEndian.Uint64(b[capacityAt:])),
		state: state(binary.LittleEndian.Uint32(b[stateAt:])),
	}
	switch {
	case string(b[:len(magic)]) != magic:
		return header{}, fmt.Errorf("%s: %w: it does not begin like one, or was written by another version", f.path, ErrDamaged)
	case binary.LittleEndian.Uint32(b[headerSumAt:]) != crc32.Checksum(b[:headerSumAt], castagnoli):
		return header{}, fmt.Errorf("%s: %w: the sum of its header is another", f.path, ErrDamaged)
	case h.state != open && h.state != closed, h.capacity < 0 || h.capacity > maxCapacity, h.state == open && h.capacity < recordsAt:
		return header{}, fmt.Errorf("%s: %w: its header says state %d and capacity %d", f.path, ErrDamaged, h.state, h.capacity)
	}
	return h, nil
}

// zeros returns [ErrDamaged] unless the file has zeros only. One that was used has not; one that was not is empty, as a rule.
func (f *File) zeros() error {
	info, err := f.disk.Stat()
	if err != nil {
		return err
	}
	most := min(chunk, info.Size()) // nothing, where nobody has kept commits there
	b, none := make([]byte, most), make([]byte, most)
	for at := int64(0); at < info.Size(); at += chunk {
		n, err := f.disk.ReadAt(b[:min(chunk, info.Size()-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		if !bytes.Equal(b[:n], none[:n]) {
			return fmt.Errorf("%s: %w: it has no header, but something else", f.path, ErrDamaged)
		}
	}
	return nil
}

// put writes a header. It is in one sector, and so it is the old or the new one whatever happens.
func (f *File) put(h header) error {
	b := f.head[:]
	copy(b, magic)
	copy(b[generationAt:], h.generation[:])
	binary.LittleEndian.PutUint64(b[capacityAt:], uint64(h.capacity))
	binary.LittleEndian.PutUint32(b[stateAt:], uint32(h.state))
	binary.LittleEndian.PutUint32(b[headerSumAt:], crc32.Checksum(b[:headerSumAt], castagnoli))
	if _, err := f.disk.WriteAt(b, headerAt); err != nil {
		return fmt.Errorf("%s: its header: %w", f.path, err)
	}
	return nil
}

// Begin makes the file ready for records. It refuses to where some are pending, for nobody would find them any more.
// The header is flushed with the first record.
func (f *File) Begin() error {
	if err := f.writes(); err != nil {
		return err
	}
	pending, err := f.Pending()
	if err == nil && pending {
		err = fmt.Errorf("%s: %w", f.path, errLeft)
	}
	if err != nil {
		return err
	}
	return f.Restart()
}

// Restart says that everything is elsewhere, and begins again with a new generation, like [File.Begin]. A file that is
// damaged stays as it is: what it had may be nowhere else.
func (f *File) Restart() error {
	if err := f.writes(); err != nil {
		return err
	}
	f.at = 0
	if err := f.preallocate(); err != nil {
		return err
	}
	h := header{capacity: f.capacity, state: open}
	rand.Read(h.generation[:]) // never fails
	if err := f.change(h); err != nil {
		return err
	}
	f.generation, f.at, f.index = h.generation, recordsAt, 0
	return nil
}

// End says that everything is elsewhere, and that nothing is appended any more. The header is not flushed: see the
// package's comment.
func (f *File) End() error {
	if err := f.writes(); err != nil {
		return err
	}
	f.at = 0
	h, err := f.header()
	if err != nil {
		return err
	}
	return f.change(header{capacity: h.capacity, state: closed})
}

// change replaces the header where all records are elsewhere. After a record about which nobody can say whether it is
// there the header is flushed, and then it is not.
func (f *File) change(h header) error {
	if err := f.put(h); err != nil {
		return err
	}
	if f.undecided {
		if err := f.disk.flush(); err != nil {
			return fmt.Errorf("%s: its header: %w", f.path, err)
		}
	}
	f.undecided = false
	return nil
}

// preallocate gives the file its whole length, once. A header says so only after that is on disk, and the file's name
// is.
func (f *File) preallocate() error {
	h, err := f.header()
	if err != nil {
		return err
	}
	info, err := f.disk.Stat()
	if err != nil || min(h.capacity, info.Size()) >= f.capacity {
		return err
	}
	if err := f.lengthen(h, info.Size()); err != nil {
		// If the disk is full, others need what would be left to lie about.
		return fmt.Errorf("%s cannot get its length of %d bytes: %w", f.path, f.capacity, errors.Join(err, f.disk.Truncate(info.Size())))
	}
	return nil
}

// lengthen writes zeros behind what is surely on disk.
func (f *File) lengthen(h header, size int64) error {
	if err := f.disk.flushName(); err != nil {
		return err
	}
	if h.state == unused {
		// From now on it is seen without reading all of it that it has no records.
		if err := f.put(header{state: closed}); err != nil {
			return err
		}
	}
	zeros := make([]byte, chunk)
	for at := max(headerAt+headerSize, min(h.capacity, size)); at < f.capacity; {
		n, err := f.disk.WriteAt(zeros[:min(chunk, f.capacity-at)], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return f.disk.Sync()
}
