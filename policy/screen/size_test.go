package screen

import "testing"

// Rules are kept in the record of every run.
func TestDefaults_AreSmall(t *testing.T) {
	total := 0
	for _, r := range Defaults() {
		t.Log(r.ID, len(r.Pattern))
		total += len(r.Pattern)
	}
	const limit = 24 << 10
	if total > limit {
		t.Errorf("the default patterns have %d bytes together, want at most %d", total, limit)
	}
}
