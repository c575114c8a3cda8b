package sqlite

import (
	"path/filepath"
	"testing"

	"pgfsm/traces/ledger/tail"
)

// TestTailMakesRoom: a tail of which much is used is begun again before it is full, whatever was kept meanwhile, and one of which little
// is used is not.
func TestTailMakesRoom(t *testing.T) {
	for _, tt := range []struct {
		name   string
		events int64
		size   int
		begun  bool
	}{
		{"little-is-used", 3, 1 << 10, false},
		{"half-is-used", 4, tail.Capacity/2/4 - 1<<10, false},
		{"more-than-half-is-used", 4, tail.Capacity / 2 / 4, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			s := holder(t, path)
			for seq := int64(1); seq <= tt.events; seq++ {
				if err := s.Update(t.Context(), adds("x", seq, seq, tt.size)); err != nil {
					t.Fatal(err)
				}
			}
			settles(t, s)
			keeps(t, s, tt.events+1, tt.events+1) // meanwhile
			before := s.tail.file.Room()
			s.tail.makeRoom()
			if begun := s.tail.file.Room() > before; begun != tt.begun {
				t.Errorf("begun again: %v, want %v", begun, tt.begun)
			}
			keeps(t, s, tt.events+2, tt.events+2)
			if all, err := found(s); err != nil || len(all) != int(tt.events)+2 {
				t.Errorf("%d are found, %v, want %d", len(all), err, tt.events+2)
			}
		})
	}
}

// TestTailMakesRoomBeside: what is kept while the tail is to begin again is brought in without anybody who commits waiting for it, but for a
// few commits.
func TestTailMakesRoomBeside(t *testing.T) {
	for _, tt := range []struct {
		name string
		kept int64 // meanwhile
		left int   // for who commits to wait for
	}{
		{"few-were-kept", restartBelow - 1, restartBelow - 1},
		{"more-were-kept", restartBelow, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := holder(t, filepath.Join(t.TempDir(), "ledger.db"))
			if err := s.Update(t.Context(), adds("x", 1, 1, tail.Capacity/2)); err != nil {
				t.Fatal(err)
			}
			settles(t, s)
			keeps(t, s, 2, tt.kept+1)
			s.tail.updating <- struct{}{} // a goroutine commits
			due := s.tail.nearlySettled()
			<-s.tail.updating
			if left := len(s.tail.pending); left != tt.left || !due {
				t.Errorf("%d are left, want %d; due: %v", left, tt.left, due)
			}
		})
	}
}

// TestTailOfWhichMuchIsUsedIsNotLeft: it is begun again at the next tick, however few commits stand in it alone.
func TestTailOfWhichMuchIsUsedIsNotLeft(t *testing.T) {
	for _, tt := range []struct {
		name  string
		size  int
		begun bool
	}{
		{"half-is-used", tail.Capacity/2 - 1<<10, false},
		{"more-than-half-is-used", tail.Capacity / 2, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := holder(t, filepath.Join(t.TempDir(), "ledger.db"))
			if err := s.Update(t.Context(), adds("x", 1, 1, tt.size)); err != nil {
				t.Fatal(err)
			}
			before := s.tail.file.Room()
			if !s.tail.tick() {
				t.Error("the ledger is not held any more")
			}
			if begun := s.tail.file.Room() > before; begun != tt.begun || begun != (len(s.tail.pending) == 0) {
				t.Errorf("begun again: %v, want %v; %d commits are left", begun, tt.begun, len(s.tail.pending))
			}
		})
	}
}
