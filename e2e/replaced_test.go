package e2e

import (
	"strings"
	"sync/atomic"
	"testing"

	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger"
)

// TestServeHeldCallOfAReplacedDefinition: a server replaces a tool without a word while calls of it are held. The first refusal tells the gateway, so
// that the next call is held by the new definition, and not in vain by the cached one.
func TestServeHeldCallOfAReplacedDefinition(t *testing.T) {
	t.Parallel()
	var replaced atomic.Bool
	o := &office{u: mcptest.New(t, func(method string) string {
		tools := mcptest.TwoTools
		if replaced.Load() {
			tools = strings.Replace(mcptest.TwoTools, `"title"`, `"description":"new","title"`, 1)
		}
		return mcptest.But("tools/list", tools)(method)
	})}
	o.dir = gatewayFolder(t, o.u, inOffice+"catalog_max_age: 10m\n")
	o.writes(t, "policy.yaml", holdLook)
	o.served = serve(t, o.dir)
	o.bob, o.ci = makeToken(t, o.config, "approver", "bob"), makeToken(t, o.config, "agent", "ci")
	a := o.agent("/mcp", o.ci)
	definition := func(run string) string {
		show := command(t.Context(), nil, "ledger", "show", run, "--json", "-c", o.config)
		show.Want(t, exitYes)
		return show.Member("/request/definition")
	}

	first := o.held(t, a, `{"n":1}`)
	replaced.Store(true)
	o.decide(t, "approve", first, o.bob)
	o.ended(t, first, ledger.Denied, "tool_definition_changed")
	second := o.held(t, a, `{"n":2}`)
	if definition(first) == definition(second) {
		t.Fatal("the next call is held by the definition that the server has replaced")
	}
	o.decide(t, "approve", second, o.bob)
	o.ended(t, second, ledger.Executed, "")
	o.u.Reached(t, 1)
}
