package main

import (
	"bytes"
	"strings"
	"testing"

	"pgfsm/eval"
	"pgfsm/eval/attack"
)

// TestAttacksWithoutAClusteredInterval: no interval is printed as none, and not as 0 to 0.
func TestAttacksWithoutAClusteredInterval(t *testing.T) {
	var out bytes.Buffer
	printAttackSuite(&out, &attack.Section{Attacks: 8, Arms: []attack.ArmSection{{Arm: attack.Grants, Attack: eval.NewShare(3, 8)}}})
	if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, "grants 3/8 37.5 - [13.7, 69.4]") {
		t.Errorf("printed:\n%s", out.String())
	}
}
