package ledger

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPrunedAfterACheckpoint: a checkpoint names the entries that it covers and that later prunes removed.
func TestPrunedAfterACheckpoint(t *testing.T) {
	prunes := []Prune{{Entry: 10, Entries: []Range{{2, 3}}}, {Entry: 20, Entries: []Range{{1, 5}, {12, 14}}}, {Entry: 30, Entries: []Range{{16, 18}, {21, 25}}}}
	for _, tt := range []struct {
		name string
		size int64
		want []Range
	}{
		{"nothing", 0, nil},
		{"before-all-prunes", 4, []Range{{1, 3}}},
		{"without-the-first-prune", 10, []Range{{1, 5}}},
		{"behind-the-first-prune", 11, []Range{{1, 1}, {4, 5}}},
		{"within-a-range", 14, []Range{{1, 1}, {4, 5}, {12, 13}}},
		{"with-two-prunes", 21, []Range{{16, 18}}},
		{"with-all-prunes", 31, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, prunedAfter(prunes, tt.size)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
