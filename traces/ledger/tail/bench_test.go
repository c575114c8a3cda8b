package tail

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkAppend is a record of the size of a usual commit, beside what appending to a file and flushing it costs.
func BenchmarkAppend(b *testing.B) {
	record := make([]byte, 4<<10)
	b.Run("tail", func(b *testing.B) {
		f, _ := fresh(b, 0)
		begin(b, f)
		b.ReportAllocs()
		for b.Loop() {
			if f.Room() < int64(len(record)) {
				if err := f.Restart(); err != nil {
					b.Fatal(err)
				}
			}
			if err := f.Append(record); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("floor", func(b *testing.B) {
		f, err := os.OpenFile(filepath.Join(b.TempDir(), "file"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, fileMode)
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := f.Write(record); err != nil {
				b.Fatal(err)
			}
			if err := f.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkTransaction is what a transaction that is not appended costs, and what asking for the bell does between two
// that are.
func BenchmarkTransaction(b *testing.B) {
	f, _ := fresh(b, room)
	begin(b, f)
	b.Run("rung", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if f.Rung() {
				b.Fatal("nobody rings")
			}
		}
	})
	if err := f.Unlock(); err != nil {
		b.Fatal(err)
	}
	b.Run("shared-and-pending", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ok, err := f.TryShared()
			if !ok || err != nil {
				b.Fatal(ok, err)
			}
			if _, err := f.Pending(); err != nil {
				b.Fatal(err)
			}
			if err := f.Unlock(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
