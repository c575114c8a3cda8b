package ledger_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
	"pgfsm/traces/ledger/ledgertest"
)

// TestPruneLeavesNothingReadable looks for the arguments of pruned calls in the bytes of the ledger's files.
func TestPruneLeavesNothingReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pgfsm.db")
	d, _ := fixtureInFile(t, path, ledgertest.NewClock(t))
	found := func() (n int) {
		files, err := filepath.Glob(path + "*")
		check.NoError(t, err)
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.IsDir() {
				continue
			}
			text, err := os.ReadFile(file)
			check.NoError(t, err)
			n += bytes.Count(text, []byte("needle-"))
		}
		return n
	}
	for i := range 60 { // of sizes for a cell, for pages of their own, and for blobs
		name := []string{"policy-allows", "agent-tool-not-allowed"}[i%2]
		s := statestest.Find(t, name)
		needles := strings.Repeat(fmt.Sprintf("needle-%d ", i), 1+i*i/4)
		s.Request.Kind, s.Request.Text = states.KindCall, canonical.Text(strings.Replace(statestest.GoodPlan, `"args":{`, `"args":{"sections":["`+needles+`"],`, 1))
		if _, _, err := d.play(ledgertest.NewID(t), &s); err != nil {
			t.Fatal(err)
		}
	}
	d.Clock.Add(time.Hour)
	if before := found(); before == 0 {
		t.Fatal("the needle is nowhere before the prune: the test is blind")
	}
	d.prunes(d.Clock.Now().Format(policy.TimeForm))
	if n := found(); n != 0 {
		t.Errorf("after the prune %d places of the files have the arguments", n)
	}
}
