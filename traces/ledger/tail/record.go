package tail

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
)

// Where the parts of a record are.
const (
	indexAt     = len(generation{})
	lengthAt    = indexAt + 4
	sumAt       = lengthAt + 4
	recordBytes = sumAt + 4

	// maxKept is how large the buffer of a record may be that is kept for the next one.
	maxKept = 256 << 10
)

// A Record is one record that was found.
type Record struct {
	Index uint32 // from 0
	Gap   bool   // it, or one before it, does not stand directly behind a whole record
	Bytes []byte // the caller's
}

// Room returns how many bytes a record may have now.
func (f *File) Room() int64 {
	if f.at == 0 {
		return 0
	}
	return max(0, f.capacity-f.at-int64(recordBytes))
}

// Append adds a record and flushes it. After an error it is not there, and the next one may be appended, unless the
// error is [ErrUndecided].
func (f *File) Append(record []byte) error {
	switch err := f.writes(); {
	case err != nil:
		return err
	case f.undecided:
		return fmt.Errorf("%s: the record before this one: %w", f.path, ErrUndecided)
	case f.at == 0:
		return fmt.Errorf("%s: %w: Begin was not called", f.path, ErrBusy)
	case f.at+int64(recordBytes)+int64(len(record)) > f.capacity:
		return fmt.Errorf("%s: %w: %d bytes do not fit behind %d records", f.path, ErrFull, len(record), f.index)
	}
	b := append(f.buffer[:0], f.generation[:]...)
	b = binary.LittleEndian.AppendUint32(b, f.index)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(record)))
	b = binary.LittleEndian.AppendUint32(b, sum(b, record))
	b = append(b, record...)
	if f.buffer = b; cap(b) > maxKept {
		f.buffer = nil
	}
	_, err := f.disk.WriteAt(b, f.at)
	if err == nil {
		err = f.disk.flush()
	}
	if err != nil {
		return f.withdraw(err)
	}
	f.at += int64(len(b))
	f.index++
	return nil
}

// withdraw makes a record that could not be appended one that nobody finds. A flush that failed may have dropped what
// it should have written, and the next one says nothing of that: so the header, which may have been part of it, is
// written again.
func (f *File) withdraw(why error) error {
	_, err := f.disk.WriteAt(make([]byte, recordBytes), f.at)
	if err == nil {
		err = f.put(header{generation: f.generation, capacity: f.capacity, state: open})
	}
	if err == nil {
		err = f.disk.flush()
	}
	if err != nil {
		f.undecided = true
		return fmt.Errorf("%s: %w: %w, and it could not be withdrawn: %w", f.path, ErrUndecided, why, err)
	}
	return fmt.Errorf("%s: %w", f.path, why)
}

// Left yields the records of the header's generation, in order, if the header is open. Behind what is no record it goes
// on with whatever whole records there are. Only one record can be torn by a crash, the last; what comes behind a gap
// is in the ledger already, or the file is damaged. After an error nothing comes.
func (f *File) Left() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		h, text, err := f.text()
		if err != nil {
			yield(Record{}, err)
			return
		}
		if h.state != open {
			return
		}
		at, next, gap := 0, int64(0), false
		for {
			r, length := whole(text[at:], h.generation)
			if length == 0 {
				i := bytes.Index(text[min(at+1, len(text)):], h.generation[:])
				if i < 0 {
					return
				}
				at, gap = at+1+i, true
				continue
			}
			if int64(r.Index) < next {
				yield(Record{}, fmt.Errorf("%s: %w: record %d stands behind record %d", f.path, ErrDamaged, r.Index, next-1))
				return
			}
			gap = gap || int64(r.Index) != next
			if r.Gap = gap; !yield(r, nil) {
				return
			}
			at, next = at+length, int64(r.Index)+1
		}
	}
}

// text reads all that can be records.
func (f *File) text() (header, []byte, error) {
	if err := f.needs(exclusive); err != nil {
		return header{}, nil, err
	}
	h, err := f.header()
	if err != nil || h.state != open {
		return h, nil, err
	}
	b := make([]byte, h.capacity-recordsAt)
	n, err := f.disk.ReadAt(b, recordsAt)
	switch {
	case n == len(b):
		return h, b, nil
	case errors.Is(err, io.EOF): // before it is opened first it has its length
		return h, nil, fmt.Errorf("%s: %w: it ends after %d bytes, and had %d", f.path, ErrDamaged, recordsAt+n, h.capacity)
	}
	return h, nil, fmt.Errorf("%s: %w", f.path, err)
}

// whole returns the record of that generation with which the text begins, and how many bytes it has with its header; 0
// if there is none.
func whole(text []byte, g generation) (Record, int) {
	if len(text) < recordBytes || generation(text[:indexAt]) != g {
		return Record{}, 0
	}
	length := binary.LittleEndian.Uint32(text[lengthAt:])
	if uint64(length) > uint64(len(text)-recordBytes) {
		return Record{}, 0
	}
	end := recordBytes + int(length)
	r := Record{Index: binary.LittleEndian.Uint32(text[indexAt:]), Bytes: text[recordBytes:end:end]}
	if binary.LittleEndian.Uint32(text[sumAt:]) != sum(text[:sumAt], r.Bytes) {
		return Record{}, 0
	}
	return r, end
}

// sum is that of what stands before it and of the record. The generation is part of it: of a torn record nothing but
// that may be there, right before what is left of an old record of the same index.
func sum(before, record []byte) uint32 {
	return crc32.Update(crc32.Checksum(before, castagnoli), castagnoli, record)
}
