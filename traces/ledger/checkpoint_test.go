package ledger_test

import (
	"strings"
	"testing"

	"pgfsm/traces/ledger"
)

func TestCheckpointsAreReadStrictly(t *testing.T) {
	d := newDesk(t)
	d.passes(1)
	good := d.checkpoint()
	if got, err := ledger.ParseCheckpoint([]byte(good.String())); err != nil || got != good {
		t.Errorf("ParseCheckpoint() = %+v, %v, want %+v", got, err, good)
	}
	lines := strings.Split(good.String(), "\n")
	for _, c := range []struct{ name, text string }{
		{"nothing", ""},
		{"two-lines", lines[0] + "\n" + lines[1] + "\n"},
		{"size-with-a-sign", lines[0] + "\n+" + lines[1] + "\n" + lines[2] + "\n"},
		{"size-below-zero", lines[0] + "\n-1\n" + lines[2] + "\n"},
		{"no-hash", lines[0] + "\n" + lines[1] + "\nx\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := ledger.ParseCheckpoint([]byte(c.text)); err == nil {
				t.Errorf("ParseCheckpoint() = %+v", got)
			}
		})
	}
}
