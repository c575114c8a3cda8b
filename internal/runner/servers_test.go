package runner

import (
	"testing"

	"pgfsm/policy"
)

// TestOldListingsDoNotReplaceNewOnes: sessions cache listings of their own, and a reload reads them again.
func TestOldListingsDoNotReplaceNewOnes(t *testing.T) {
	var s serverStates
	note := func(version string, number uint64, want string) {
		t.Helper()
		s.noteListing(policy.Listing{Server: "a", Status: policy.ServerUp, Version: version}, number, "2026-11-26T00:00:00.000Z")
		if state, _ := s.lastSeen("a"); state.listing.Version != want {
			t.Errorf("after listing %d the last one is of version %s, want %s", number, state.listing.Version, want)
		}
	}
	note("1", 5, "1")
	note("2", 7, "2")
	note("1", 5, "2")
	s.noteListing(policy.Listing{Server: "a", Status: policy.ServerDown}, 0, "2026-11-26T00:00:00.000Z")
	note("1", 6, "")
	note("2", 7, "2")
}
