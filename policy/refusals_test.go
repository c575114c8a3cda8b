package policy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgfsm/internal/canonical"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/golden"
	"pgfsm/policy"
	"pgfsm/states"
	"pgfsm/states/statestest"
)

// recordedTools is a tools/list result that interop/record-tools.mjs recorded.
type recordedTools struct {
	Package string          `json:"package"`
	Version string          `json:"version"`
	List    json.RawMessage `json:"tools"`
	Tools   []struct {
		Name  string `json:"name"`
		Input struct {
			More any `json:"additionalProperties"`
		} `json:"inputSchema"`
	} `json:"-"`
}

// recordedCalls returns arguments that the recorded schemas allow, by list and tool. The first of a tool has only what it requires.
func recordedCalls(t *testing.T) (calls map[string]map[string][]json.RawMessage) {
	t.Helper()
	doc, err := os.ReadFile("../interop/fixtures/tool-calls.json")
	check.NoError(t, err)
	unusual := canonical.AppendText(nil, "Grüße, 東京 👩‍👩‍👧 \"עברית\" e\u0301 \\ \u202e\u0000\n\t")
	texts := strings.NewReplacer("‹large›", strings.Repeat("word ", 40_000), `"‹unusual›`, strings.TrimSuffix(string(unusual), `"`))
	check.NoError(t, json.Unmarshal([]byte(texts.Replace(string(doc))), &calls))
	return calls
}

// refusals counts what became of the calls of one server.
type refusals struct {
	calls, refused, undeclared, undeclaredRefused int
}

const refusalsPage = "../docs/internals/evaluation-figures.md"

// TestFalseRefusals takes calls that the schemas of popular servers allow through the machine, as agents send them and
// under the default limits and input rules. None is refused, unless it has a key that the tool does not declare.
func TestFalseRefusals(t *testing.T) {
	paths, err := filepath.Glob("../interop/fixtures/tools/*.json")
	if err != nil || len(paths) < 15 {
		t.Fatalf("there are %d recorded lists, %v; want 15", len(paths), err)
	}
	calls := recordedCalls(t)
	var page strings.Builder
	page.WriteString("| server | version | tools | calls | refused | with an undeclared key | refused |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	var all refusals
	tools := 0
	for _, path := range paths {
		doc, err := os.ReadFile(path)
		check.NoError(t, err)
		var recorded recordedTools
		if err := json.Unmarshal(doc, &recorded); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if err := json.Unmarshal(recorded.List, &recorded.Tools); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got := callTools(t, &recorded, calls[filepath.Base(path)])
		fmt.Fprintf(&page, "| `%s` | %s | %d | %d | %d | %d | %d |\n", recorded.Package, recorded.Version, len(recorded.Tools),
			got.calls, got.refused, got.undeclared, got.undeclaredRefused)
		tools += len(recorded.Tools)
		all.calls, all.refused = all.calls+got.calls, all.refused+got.refused
		all.undeclared, all.undeclaredRefused = all.undeclared+got.undeclared, all.undeclaredRefused+got.undeclaredRefused
	}
	fmt.Fprintf(&page, "| %d servers | | %d | %d | %d | %d | %d |\n", len(paths), tools, all.calls, all.refused, all.undeclared, all.undeclaredRefused)
	holdRefusalsPage(t, page.String())
}

// holdRefusalsPage holds the table of docs/internals/evaluation-figures.md to what was counted.
func holdRefusalsPage(t *testing.T, table string) {
	t.Helper()
	const begin, end = "<!-- false refusals -->\n", "<!-- end of false refusals -->"
	golden.Section(t, refusalsPage, begin, end, table)
}

// callTools makes the calls of each tool of a server.
func callTools(t *testing.T, recorded *recordedTools, calls map[string][]json.RawMessage) (got refusals) {
	t.Helper()
	page := `{"tools":` + string(recorded.List) + "}"
	content := statestest.Content()
	content.Input.Rules, content.Allowlist, content.Outputs = policy.DefaultRules(), []policy.Allowance{{Server: statestest.Server}}, nil
	for _, tool := range recorded.Tools {
		content.Allowlist[0].Tools = append(content.Allowlist[0].Tools, tool.Name)
	}
	bundle, machine := statestest.MustBundle(content, nil), statestest.MustMachine(t)
	listing := statestest.Listings(page)[0]
	call := func(tool string, args []byte) states.Outcome {
		world := statestest.NewWorld()
		world.Listed = []states.Event{statestest.CachedListing(listing, tool)}
		world.Returned = &states.ToolReturned{Result: canonical.Text(`{"content":[]}`)}
		request := states.Request{
			Actor: "ci-agent", At: statestest.At, Kind: states.KindAgent, Text: canonical.Text(policy.CallPlan(statestest.Server, tool, args)),
		}
		run := states.NewRun("019aa5f3-7c00-7000-8000-000000000001", request, bundle)
		outcome, err := machine.Advance(context.Background(), run, world.Effects(), forgets{})
		if err != nil {
			t.Fatalf("%s %s: %v", recorded.Package, tool, err)
		}
		return outcome
	}
	for _, tool := range recorded.Tools {
		if len(calls[tool.Name]) < 2 {
			t.Errorf("%s %s: %d calls are recorded, want two or more", recorded.Package, tool.Name, len(calls[tool.Name]))
			continue
		}
		for _, args := range calls[tool.Name] {
			got.calls++
			if o := call(tool.Name, args); o.Type == states.TypeBlocked || o.Type == states.TypeFailed {
				got.refused++
				t.Errorf("%s %s: %s: %s\narguments: %.300s", recorded.Package, tool.Name, o.Code, o.Reason, args)
			}
		}

		got.undeclared++
		o := call(tool.Name, withKey(t, calls[tool.Name][0]))
		if o.Type == states.TypeBlocked {
			got.undeclaredRefused++
		}
		if open := tool.Input.More != nil && tool.Input.More != false; open == (o.Type == states.TypeBlocked) {
			t.Errorf("%s %s with an undeclared key: %s, and its schema says that more keys may come: %t", recorded.Package, tool.Name, o.Type, open)
		}
	}
	return got
}

// withKey adds a key that no tool declares.
func withKey(t *testing.T, args []byte) []byte {
	t.Helper()
	var o map[string]any
	check.NoError(t, json.Unmarshal(args, &o))
	o["x_undeclared"] = "x"
	args, err := json.Marshal(o)
	check.NoError(t, err)
	return args
}

// forgets is a recorder that keeps nothing.
type forgets struct{}

func (forgets) Append(context.Context, states.Step) error { return nil }
