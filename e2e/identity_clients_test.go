package e2e

import (
	"testing"

	"pgfsm/traces/ledger"
)

// TestServeIdentityClients: policies can read the client, so one client of a subject does not get what another one asked for.
func TestServeIdentityClients(t *testing.T) {
	t.Parallel()
	o := provide(t, inFile, peopleHold)
	run := o.held(t, o.agent("/mcp", o.robot("ci")), `{"n":1}`)
	o.decide(t, "approve", run, o.person("carol"))
	o.ended(t, run, ledger.Executed, "")
	if other := o.held(t, o.agent("/mcp", o.robot("ci", "client_id", "desk")), `{"n":1}`); other == run {
		t.Error("one client gets the result of another one's call")
	}
	o.u.Reached(t, 1)
	verifies(t, o.dir)
}
