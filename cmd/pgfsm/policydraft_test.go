package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/cli"
	"pgfsm/internal/runner"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/mcp/demo"
	"pgfsm/states"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
	"pgfsm/traces/ledger/sqlite"
)

// TestDraftFromTwoWeeks drafts policies from a ledger of two weeks, in which agents call tools of the
// demo. The words that they search for change from day to day, and in the last two days there is one
// policy more to fetch.
func TestDraftFromTwoWeeks(t *testing.T) {
	t.Parallel()
	fleet := demoFleet(t)
	dir := clitest.Folder(t, "pgfsm.yaml", fmt.Sprintf(`version: 1
servers:
  mcp-sharepoint: {type: http, url: %q}
  mcp-servicenow: {type: http, url: %q}
  mcp-policy-kb: {type: http, url: %q}
allowlist: allowlist.json
policy: policy.yaml
ledger: "sqlite:ledger.db"
`, fleet.URL(demo.SharePoint, "mcp"), fleet.URL(demo.ServiceNow, "mcp"), fleet.URL(demo.PolicyKB, "mcp")),
		"allowlist.json", `{
  "mcp-sharepoint": ["search_sharepoint", "fetch_sharepoint_doc", "delete_sharepoint_doc"],
  "mcp-servicenow": ["search_servicenow_tickets", "get_ticket", "close_ticket"],
  "mcp-policy-kb": ["search_policy_kb", "fetch_policy_entry", "delete_policy_entry"]
}`,
		"policy.yaml", `version: 1
policies:
  - {id: board, match: {tool: "*_doc"}, when: args.doc_id == "doc-009", effect: deny}
  - {id: everything, effect: allow}
`)
	config := filepath.Join(dir, "pgfsm.yaml")
	const days, perDay = 14, 30
	recordDays(t, config, filepath.Join(dir, "ledger.db"), days, perDay)

	traces, drafted := filepath.Join(dir, "traces"), filepath.Join(dir, "draft.yaml")
	command(t.Context(), nil, "ledger", "trace", "--all", "-c", config, "-o", traces).Want(t, cli.ExitYes)
	r := command(t.Context(), nil, "policy", "draft", "--json", "-c", config, filepath.Join(dir, "policy.yaml"), "--traces", traces, "-o", drafted)
	const held = days * perDay / heldOut
	r.Want(t, cli.ExitYes, "/narrower/status", "proved", "/tried", strconv.Itoa(held), "/learned", strconv.Itoa(days*perDay-held))

	refused := strings.Count(r.Member("/refused"), "draft-")
	t.Logf("%d of %d held-out calls refused; allowed: %s\n%s", refused, held, r.Member("/allowed"), clitest.Read(t, drafted))
	newest := strings.Count(r.Member("/refused"), "fetch_policy_entry")
	if newest != 1 || refused-newest > held/100 {
		t.Errorf("of %d calls that the draft did not learn from, it refuses %d of an entry that was new, and %d others:\n%s", held, newest,
			refused-newest, r.Member("/refused"))
	}
	if before, after := r.Member("/allowed/before"), r.Member("/allowed/after"); !strings.HasPrefix(before, "0.87") || !strings.HasPrefix(after, "0.43") {
		t.Errorf("today %s of the combinations of cells are allowed, and %s with the draft", before, after)
	}
}

// recordDays records calls of days in a ledger.
func recordDays(t *testing.T, config, path string, days, perDay int) {
	t.Helper()
	store, err := sqlite.Open(path)
	check.NoError(t, err)
	clock := ledgertest.NewClock(t)
	l, err := ledger.Open(t.Context(), store, ledger.Options{Clock: clock.Now})
	check.NoError(t, err)
	defer func() { check.NoError(t, errors.Join(l.Close(), store.Close())) }()

	o := options{config: config}
	check.NoError(t, o.withApp(world{getenv: func(string) (string, bool) { return "", false }}, func(a *app) error {
		if err := a.Start(t.Context()); err != nil {
			return err
		}
		parts := a.Runner()
		parts.Ledger = l
		agents, err := runner.New(parts)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(1, 38))
		for day := range days {
			for range perDay {
				result, err := agents.Run(t.Context(), runner.Request{
					Actor: "local:agent",
					Kind:  states.KindCall,
					Text:  dailyCall(random, day),
				}, nil)
				if err != nil || result.Outcome.Effect != states.EffectDone {
					return fmt.Errorf("a call ended as %+v: %w", result.Outcome, err)
				}
				clock.Add(24 * time.Hour / time.Duration(perDay))
			}
		}
		return nil
	}))
}

// topics are searched for, each from a day on.
var topics = []string{
	"vpn", "retention", "phishing", "backup", "laptop encryption", "vendor risk", "log masking", "password reset", "Büro",
	"restore test", "finance share", "PII", "incident 42", "credential rotation", "access (urgent)", "export \"orders\"",
	"classification?", "mail & calendar", "disk", "on-call", "audit 2026-11", "keys", "wi-fi", "board", "printer", "questionnaire",
}

// dailyCall returns a call that an agent makes on a day.
func dailyCall(random *rand.Rand, day int) []byte {
	server, tool, name, value := demo.ServiceNow, "get_ticket", "ticket_id", fmt.Sprintf("INC00100%02d", 1+day/2+random.IntN(12))
	switch random.IntN(8) {
	case 0, 1:
		server, tool, name = demo.SharePoint, "search_sharepoint", "query"
	case 2:
		server, tool, name = demo.ServiceNow, "search_servicenow_tickets", "query"
	case 3:
		server, tool, name = demo.PolicyKB, "search_policy_kb", "query"
	case 4:
		server, tool, name, value = demo.SharePoint, "fetch_sharepoint_doc", "doc_id", fmt.Sprintf("doc-%03d", 1+random.IntN(8))
	case 5:
		server, tool, name, value = demo.PolicyKB, "fetch_policy_entry", "policy_id", fmt.Sprintf("policy-%03d", 1+random.IntN(6+day/12))
	}
	if name == "query" {
		value = topics[day+random.IntN(len(topics)-13)] + strings.Repeat(" "+strconv.Itoa(day), random.IntN(2))
	}
	return fmt.Appendf(nil, `{"type":"call_tool","server":%q,"tool":%q,"args":{%q:%q}}`, server, tool, name, value)
}
