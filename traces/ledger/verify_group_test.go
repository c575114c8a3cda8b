package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"pgfsm/traces/ledger"
)

// Entries that indexes must find have their own row. In a rewritten file, such an entry can be in another row: a full read finds it, and a lookup does not.
func TestVerifyNamesWhatMustHaveARowOfItsOwn(t *testing.T) {
	path := onDisk(t, func(d *desk) {
		d.passes(3)
		d.Clock.Set(t, "2026-11-21T09:35:00Z")
		d.prunes("2026-11-21T09:35:00Z")
		d.passing()
		d.passing()
		d.passes(1)
	})
	const spelled = `'[{"at":'||json_quote(at)||',"by":'||json_quote(by)||',"hash":'||json_quote(hash)||',"payload":'||payload||` +
		`',"prev":'||json_quote(prev)||',"run_prev":'||json_quote(run_prev)||',"type":'||json_quote(type)||'}]'`
	for _, tt := range []struct{ name, which string }{
		{"a-prune", "type = 'ledger.pruned'"},
		{"about-no-run", "type = 'mcp.passed' AND seq = (SELECT min(seq) FROM events WHERE type = 'mcp.passed')"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, path)
			seq := b.texts(t, "SELECT seq FROM events WHERE "+tt.which)[0]
			b.do(t, "UPDATE events SET earlier = 1, before = (SELECT "+spelled+" FROM events WHERE seq = ?1) WHERE seq = ?1 + 1", seq)
			b.do(t, "DELETE FROM events WHERE seq = ?", seq)
			_, err := verify(t, b.path, ledger.VerifyOptions{})
			var fault *ledger.Fault
			if !errors.As(err, &fault) || fault.Table != "events" || !strings.Contains(fault.What, "a row of its own") {
				t.Errorf("Verify() = %v, want a fault of events", err)
			}
		})
	}
}
