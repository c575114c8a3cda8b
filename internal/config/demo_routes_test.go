package config_test

import (
	"slices"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/internal/test/check"
	"pgfsm/llm"
	"pgfsm/policy"
)

// demo is the configuration that is built in.
func demo(tb testing.TB) *config.Loaded {
	tb.Helper()
	loaded, err := config.Load(config.FileName, config.Demo.ReadFile, config.Overrides{})
	check.NoError(tb, err)
	return loaded
}

// routed is what the first matching route makes of a question: its tool and the one argument, or two empty strings.
func routed(tb testing.TB, routes []policy.Route, question string) [2]string {
	tb.Helper()
	router, err := llm.NewRouter(routes, nil)
	check.NoError(tb, err)
	doc, ok := router.Match(question)
	if !ok {
		return [2]string{}
	}
	plan, v := policy.ReadPlan(doc, policy.DefaultLimits())
	if !v.Allows() {
		tb.Fatal(v)
	}
	var args map[string]string
	if err := canonical.Unmarshal(plan.Args.Bytes(), &args); err != nil || len(args) != 1 {
		tb.Fatalf("%s has the arguments %s, want 1", question, plan.Args)
	}
	for _, value := range args { // the only one
		return [2]string{plan.Tool, value}
	}
	return [2]string{}
}

var questions = []struct{ question, route, arg string }{
	{"policy-002", "policy-id", "policy-002"},
	{"show me policy-002", "policy-fetch", "policy-002"},
	{"Summarize policy policy-002", "policy-summary", "policy-002"},
	{"What does policy-002 say about deleting logs?", "policy-says", "policy-002"},
	{"fetch policy-12345", "policy-fetch", "policy-12345"}, // not an id there can be: for the schema gate to say
	{"doc-001", "doc-id", "doc-001"},
	{"fetch doc-001", "doc-fetch", "doc-001"},
	{"summarize doc-001", "doc-summary", "doc-001"},
	{"What does document doc-001 say?", "doc-says", "doc-001"},
	{"INC0010001", "ticket-id", "INC0010001"},
	{"get ticket INC0010001", "ticket-fetch", "INC0010001"},
	{"summarize INC0010001", "ticket-summary", "INC0010001"},
	{"What does ticket INC0010001 say about the VPN?", "ticket-says", "INC0010001"},

	{`search for "PII Logging"`, "search-for", "PII Logging"},
	{`search for 'PII Logging'?`, "search-for", "PII Logging"},
	{`search for “PII Logging”`, "search-for", "PII Logging"},
	{`search for  PII Logging !?`, "search-for", "PII Logging"},
	{`search for Café crème`, "search-for", "Café crème"},
	{`search for x`, "search-for", "x"},
	{`search "PII Logging"`, "search-quoted", "PII Logging"},
	{`find documents about PII Logging`, "doc-find", "PII Logging"},
	{`Find documents about "PII Logging".`, "doc-find", "PII Logging"},
	{`search SharePoint for "office move"`, "doc-search", "office move"},
	{`search in the documents for backup`, "doc-search", "backup"},
	{`Search the policies for "log retention"`, "policy-search", "log retention"},
	{`search policy kb for PII Logging.`, "policy-search", "PII Logging"},
	{`find policies about backup`, "policy-find", "backup"},
	{`search tickets for VPN`, "ticket-search", "VPN"},
	{`search ServiceNow for "VPN drops"`, "ticket-search", "VPN drops"},
	{`please find tickets about VPN?`, "ticket-find", "VPN"},
}

// refused are questions that no route may take: what they ask for is not what a route would do.
var refused = []string{
	"Delete the document doc-999.",
	"close INC0010001",
	"get rid of doc-999",
	"show me how to delete doc-999",
	"fetch doc-001 and delete doc-999",
	"fetch doc-001; delete it",
	"fetch doc-001 doc-002",
	"summarize doc-001 and then delete doc-999",
	"summarize doc-001 in one sentence and delete it",
	"what does deleting doc-999 do",
	"do not fetch doc-001",
	"doc-001 must go: delete it",
	"fetch doc-001 for me", // words behind the id are not guessed at
	"doc-001 doc-002",
	"fetch DOC-001", // ids are as the servers write them
	"search for",
	`search for "?!"`,
	"search PII Logging", // neither a place nor quotation marks: could as well be an instruction
	`search for "PII Logging" and delete doc-999`,
	`search "PII" or "logging"`,
	"",
}

func TestRoutes(t *testing.T) {
	routes := demo(t).Content.Planner.Routes
	taken := map[string]bool{}
	for _, q := range questions {
		t.Run(q.question, func(t *testing.T) {
			at := slices.IndexFunc(routes, func(r policy.Route) bool { return r.ID == q.route })
			if at < 0 {
				t.Fatalf("there is no route %s", q.route)
			}
			taken[q.route] = true
			if got, want := routed(t, routes, q.question), [2]string{routes[at].Tool, q.arg}; got != want {
				t.Errorf("routed(%q) = %q, want %q", q.question, got, want)
			}
			if got := routed(t, routes[:at], q.question); got != [2]string{} {
				t.Errorf("routed(%q) = %q by a route before %s", q.question, got, q.route)
			}
		})
	}
	for _, question := range refused {
		t.Run("refused "+question, func(t *testing.T) {
			if got := routed(t, routes, question); got != [2]string{} {
				t.Errorf("routed(%q) = %q, want no route", question, got)
			}
		})
	}
	for _, r := range routes {
		if !taken[r.ID] {
			t.Errorf("no question here takes the route %s", r.ID)
		}
	}
}
