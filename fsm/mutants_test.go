package fsm_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgfsm/fsm"
	"pgfsm/fsm/fsmtest"
)

func TestMutantsAreAllRefused(t *testing.T) {
	table := realistic()
	if _, err := fsm.Compile(table); err != nil {
		t.Fatalf("Compile(realistic) = %v, want nil", err)
	}
	mutants, kinds := fsmtest.Mutants(table), map[string]int{}
	for _, mutant := range mutants {
		kind, _, _ := strings.Cut(mutant.Name, " ")
		kinds[kind]++
		_, err := fsm.Compile(mutant.Table)
		var mistake *fsm.Mistake
		if !errors.As(err, &mistake) {
			t.Errorf("Compile(%s) = %v, want a mistake", mutant.Name, err)
		}
	}
	rows, places := len(table.Rows), len(table.Places)
	if kinds["remove"] != rows || kinds["drop"] != rows || kinds["redirect"] != rows*(places-1) || kinds["add"] < 14*2 {
		t.Errorf("Mutants(realistic) = %v, want every kind for every row", kinds)
	}
	t.Logf("%d mutants, all refused: %d removed, %d redirected, %d without guard, %d second ways into the effect",
		len(mutants), kinds["remove"], kinds["redirect"], kinds["drop"], kinds["add"])
}

// A table that claims little lets mutants live: so the harness above can fail.
func TestMutantsLiveWithoutClaims(t *testing.T) {
	table := realistic()
	table.Claims.Exits = nil
	lives := slices.ContainsFunc(fsmtest.Mutants(table), func(m fsmtest.Mutant[*subject]) bool {
		_, err := fsm.Compile(m.Table)
		return err == nil
	})
	if !lives {
		t.Error("Compile refused every mutant of a table without exit claims, want some to live")
	}
}
