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

	// maxKept bounds the buffer that is reused for the next record.
	maxKept = 256 << 10
)

// A Record is one record that was found.
type Record struct {
	Index uint32 // from 0
	Gap   bool   // it, or an earlier one, does not directly follow a complete record
	Bytes []byte // the caller's
}

// Room returns the maximum size of the next record.
func (f *File) Room() int64 {
	if f.at == 0 {
		return 0
	}
	return max(0, f.capacity-f.at-int64(recordBytes))
}

// Append adds a record and flushes it. After an error, the record is not in the file and Append can be called again, unless the error is [ErrUndecided].
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

// withdraw invalidates a record that could not be appended. A failed flush may have dropped dirty pages, which the next flush does not report. So withdraw
// also writes the header again.
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

// Left yields the records of the header's generation, in order, if the header is open. After bytes that are no record, Left continues with the next
// complete record. A crash can tear only the last record: records after a gap are already in the ledger, or the file is damaged. After an error, Left
// yields nothing more.
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

// sum is the checksum of the preceding header fields and the record. It covers the generation: a torn record may have written only its generation, before
// the rest of an old record with the same index.
func sum(before, record []byte) uint32 {
	return crc32.Update(crc32.Checksum(before, castagnoli), castagnoli, record)
}
