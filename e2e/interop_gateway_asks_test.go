package e2e

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/cli"
	"pgfsm/traces/ledger"
)

// askingTools are the tools of server-everything that ask the client something before they answer: it has each only for clients that
// declare that they can be asked. The answers are what the client below says.
var askingTools = []struct{ tool, args, asks, text string }{
	{"trigger-elicitation-request", `{}`, elicitation, "- Name: Ada"},
	{"trigger-sampling-request", `{"prompt": "one word"}`, sampling, `"text": "bright"`},
	{"get-roots-list", `{}`, rootsList, "URI: file:///work"},
}

// An askedOrder is an order with what the client answers to servers that ask, by method, and an askedReport says what they asked.
type askedOrder struct {
	clientOrder
	Replies map[string]jsontext.Value `json:"replies,omitzero"`
}

type askedReport struct {
	clientReport
	Asked []string `json:"asked"`
}

// driveAsked is drive for a client that answers.
func (in interop) driveAsked(t *testing.T, mode string, order askedOrder) (report askedReport) {
	t.Helper()
	input, err := json.Marshal(order)
	check.NoError(t, err)
	script, err := filepath.Abs(filepath.Join(repository, "interop", "clients", "sdk-v2.mjs"))
	check.NoError(t, err)
	output := in.runs(t, bytes.NewReader(input), script, mode)
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return report
}

// TestGatewayLetsServersAsk: server-everything asks as servers with sessions do, and the SDK's client is asked by requests in its session. Of a
// stateless client the server learns no capabilities, so it does not list the tools that ask.
func TestGatewayLetsServersAsk(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	replies := map[string]jsontext.Value{
		elicitation: jsontext.Value(`{"action": "accept", "content": {"name": "Ada"}}`),
		sampling:    jsontext.Value(`{"model": "m", "role": "assistant", "content": {"type": "text", "text": "bright"}}`),
	}
	for _, c := range []struct {
		name, mode, protocol, expose string
		declares, works              bool
	}{
		{"session", "legacy", withSessions, "tools, sampling, elicitation, roots", true, true},
		{"session-not-exposed", "legacy", withSessions, "tools", true, false},
		{"session-not-declared", "legacy", withSessions, "tools, sampling, elicitation, roots", false, false},
		{"stateless-client", "auto", withoutThem, "tools, sampling, elicitation, roots", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			journal := filepath.Join(t.TempDir(), "journal")
			config := fmt.Sprintf("version: 1\nallowlist: allowlist.json\nledger: sqlite:pgfsm.db\nservers:\n  everything: %s\n",
				in.scribed(t, journal, "everything", ", sessions: session, expose: ["+c.expose+"]"))
			order := askedOrder{}
			if c.declares {
				order.Roots, order.Replies = []string{"file:///work"}, replies
			}
			var names, asked, reached []string
			for _, a := range askingTools {
				names = append(names, a.tool)
				order.Calls = append(order.Calls, clientCall{Name: a.tool, Arguments: jsontext.Value(a.args)})
				if c.works {
					asked = append(asked, a.asks)
					reached = append(reached, "everything "+a.tool+" "+strings.ReplaceAll(a.args, ": ", ":"))
				}
			}
			g := serve(t, cli.Folder(t, "pgfsm.yaml", config, "allowlist.json", `{"everything": ["`+strings.Join(names, `", "`)+`"]}`))
			order.URL = g.base + "/servers/everything/mcp"
			report := in.driveAsked(t, c.mode, order)
			g.stop(t, exitYes)
			if report.Protocol != c.protocol {
				t.Errorf("revision = %q, want %q", report.Protocol, c.protocol)
			}
			for i, a := range askingTools {
				if got := report.Answers[i]; c.works != (got.Fault == "" && !got.IsError && strings.Contains(got.Text, a.text)) {
					t.Errorf("%s = %+v, want %q: %t", a.tool, got, a.text, c.works)
				}
			}
			slices.Sort(asked)
			slices.Sort(report.Asked)
			if got := slices.Compact(report.Asked); !slices.Equal(got, asked) { // for roots the server asks when it likes, too
				t.Errorf("the client was asked %q, want %q", got, asked)
			}
			if d := cmp.Diff(reached, journalCalls(t, "everything", journal)); d != "" {
				t.Errorf("calls that reached the server (-want +got):\n%s", d)
			}
			sent := 0
			for _, q := range recorded(t, g.dir) {
				if q.Sent != "" && q.Status == ledger.Executed {
					sent++
				}
			}
			if sent != len(reached) {
				t.Errorf("%d runs have made their call, want %d", sent, len(reached))
			}
			verifies(t, g.dir)
		})
	}
}
