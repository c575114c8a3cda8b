package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type clientScenario struct {
	revision, name string
	passed         int
}

// golden names the file with what the suite says of the SDK's client directly.
func (s clientScenario) golden() string { return "client-" + s.revision + "-" + s.name }

// clientScenarios are those of the suite's scenarios for clients that a proxy can be judged by, with the checks that the
// SDK's client passes directly. [TestConformanceOfConnections] has those of OAuth.
var clientScenarios = []clientScenario{
	{"2025-11-25", "initialize", 1},
	{"2025-11-25", "tools_call", 2},
	{"2025-11-25", "elicitation-sep1034-client-defaults", 5},
	{"2025-11-25", "sse-retry", 3},
	{"2025-11-25", "json-schema-2020-12-preservation", 9},
	{"2026-07-28", "tools_call", 2},
	{"2026-07-28", "request-metadata", 6},
	{"2026-07-28", "sep-2322-client-request-state", 5},
	{"2026-07-28", "http-standard-headers", 9},
	{"2026-07-28", "http-custom-headers", 18},
	{"2026-07-28", "http-invalid-tool-headers", 12},
	{"2026-07-28", "json-schema-ref-no-deref", 1},
	{"2026-07-28", "json-schema-2020-12-preservation", 9},
}

// refusedChecks are those that are passed directly and need a call that the gateway refuses: its argument is null where the
// schema says boolean.
var refusedChecks = map[string]bool{"http-custom-headers sep-2243-client-omit-null SUCCESS": true}

// TestGatewayConformanceOfClients: the suite's own servers, hostile ones among them, judge the gateway with a client of
// the SDK in front of it as they judge that client alone.
func TestGatewayConformanceOfClients(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	client := sdkProgram(t, "everything-client")
	for _, s := range clientScenarios {
		t.Run(s.revision+"-"+s.name, func(t *testing.T) { // one after the other: some judge times
			direct := goldenVerdicts(t, s.golden())
			through := in.judgedClient(t, "between "+s.revision+" "+client, s)
			if s.name == "initialize" { // each session that the gateway opens is judged
				through = slices.Compact(through)
			}
			for i, v := range direct {
				if refusedChecks[v] {
					direct[i] = strings.TrimSuffix(v, "SUCCESS") + "FAILURE"
				}
			}
			if d := cmp.Diff(direct, through); d != "" {
				t.Errorf("verdicts (-direct +through the gateway):\n%s", d)
			}
		})
	}
}

// judgedClient lets the suite judge a client. What it only notes is left out: requests and answers, of which a gateway
// may make more or fewer.
func (in interop) judgedClient(t *testing.T, client string, s clientScenario) []string {
	t.Helper()
	return slices.DeleteFunc(in.judged(t, notPassed, "client", "--command", client, "--scenario", s.name, "--spec-version", s.revision, "--force"),
		func(v string) bool { return strings.HasSuffix(v, " INFO") })
}
