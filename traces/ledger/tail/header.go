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

// A generation is a random value in all records since the last Begin or Restart.
type generation [16]byte

// A state is the header's state of the records.
type state uint32

const (
	unused state = iota // there has never been a header
	open
	closed
)

// A header is the header of a file.
type header struct {
	generation generation
	capacity   int64 // on disk; 0 before the first Begin
	state      state
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errLeft means that Begin would lose pending records.
var errLeft = errors.New("it has records that are not in the ledger")

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

// zeros returns [ErrDamaged] unless the file has only zeros. A file that was never used is usually empty.
func (f *File) zeros() error {
	info, err := f.disk.Stat()
	if err != nil {
		return err
	}
	most := min(chunk, info.Size()) // 0 if the tail was never used
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

// put writes a header. It fits one sector, so after a crash the file has the old or the new header.
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

// Begin makes the file ready for records. It fails if records are pending, because they would be lost. The header is flushed with the first record.
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

// Restart begins again with a new generation, like [File.Begin]. The caller has flushed all records to the ledger. Restart does not change a damaged file,
// whose records may exist nowhere else.
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

// End marks the file as closed, after the caller has flushed all records to the ledger. The header is not flushed: see the package's comment.
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

// change replaces the header after all records were moved. After [ErrUndecided] it flushes the header, so that the undecided record is certainly invalid.
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

// preallocate gives the file its whole length, once. The header has the length only after the length and the file's name are on disk.
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
		// If the disk is full, free the space that was written.
		return fmt.Errorf("%s cannot get its length of %d bytes: %w", f.path, f.capacity, errors.Join(err, f.disk.Truncate(info.Size())))
	}
	return nil
}

// lengthen writes zeros after the part that is certainly on disk.
func (f *File) lengthen(h header, size int64) error {
	if err := f.disk.flushName(); err != nil {
		return err
	}
	if h.state == unused {
		// From now on, the header shows that the file has no records.
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
