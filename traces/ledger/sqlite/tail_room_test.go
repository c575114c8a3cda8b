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
