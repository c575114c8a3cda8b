package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCheckpoints shows the settings with one key and with several, and that they are no part of the bundle.
func TestCheckpoints(t *testing.T) {
	load := func(more string) *Loaded {
		t.Helper()
		l, err := Load("etc/c.yaml", openMap(map[string]string{"etc/c.yaml": minimal + more, "etc/allow.json": "{}"}), Overrides{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	const ledger = "ledger: sqlite:pgfsm.db\n"
	plain := load(ledger)
	for _, tt := range []struct {
		name, text string
		want       Checkpoints
	}{
		{"none", "", Checkpoints{}},
		{"one-key", "checkpoints: {key: log.key}", Checkpoints{Keys: []string{"etc/log.key"}, Every: 3_600_000}},
		{"rotation", "checkpoints: {key: [log.key, /next.key], dir: out, every: 10m}",
			Checkpoints{Keys: []string{"etc/log.key", "/next.key"}, Dir: "etc/out", Every: 600_000}},
		{"origin", "checkpoints: {origin: example.com/log}", Checkpoints{Every: 3_600_000, Origin: "example.com/log"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := load(ledger + tt.text)
			if diff := cmp.Diff(tt.want, l.Checkpoints); diff != "" {
				t.Errorf("Checkpoints (-want +got):\n%s", diff)
			}
			if a, b := digestOf(t, l), digestOf(t, plain); a != b {
				t.Errorf("checkpoints change the bundle: %s, %s", a, b)
			}
		})
	}
}
