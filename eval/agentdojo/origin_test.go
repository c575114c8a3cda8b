package agentdojo_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/internal/config"
	"pgfsm/internal/safefile"
	"pgfsm/internal/test/golden"
	"pgfsm/internal/test/tool"
	"pgfsm/policy"
	"pgfsm/policy/origin"
	"pgfsm/policy/rules"
)

var (
	suites    = []string{"banking", "slack", "travel", "workspace"}
	attackers = []string{"static", "knows", "whole", "splits"}
)

// retargeted are the arguments that import.py changes.
var retargeted = []string{
	"amount", "channel", "city", "email", "event_id", "file_id", "filename", "hotel", "id", "location", "participants", "password",
	"recipient", "recipients", "street", "url", "user", "user_email",
}

// A variant is one row of the table: labels, roles, and whether grants are in force.
type variant struct {
	name       string
	labels     string // none, tools, items, ids, or all
	roles      string // ours, camel, or strict
	noGrants   bool
	substrings bool // each part of a result counts as a value of its own
}

// TestOriginFigures holds the tables about origins to AgentDojo's sessions, which are not part of this project.
func TestOriginFigures(t *testing.T) {
	data := os.Getenv("AGENTDOJO")
	if data == "" {
		t.Skip("AGENTDOJO names no folder with AgentDojo's data")
	}
	folder := t.TempDir()
	if text, err := exec.Command(tool.Path(t, "python3", "python3"), "import.py", data, folder).CombinedOutput(); err != nil {
		t.Fatalf("import.py: %v\n%s", err, text)
	}

	table := "| | whole tasks, of 86 | Wilson | held calls | attacks: " + strings.Join(attackers, " | ") +
		" | the worst, by tasks and attacks |\n" + strings.Repeat("| --- ", 5+len(attackers)) + "|\n"
	for _, v := range []variant{
		{"no labels", "none", "ours", false, false},
		{"**labels by tool**", "tools", "ours", false, false},
		{"also items", "items", "ours", false, false},
		{"also ids (`labels.yaml`)", "ids", "ours", false, false},
		{"every tool trusted", "all", "ours", false, false},
		{"labels by tool, CaMeL's roles", "tools", "camel", false, false},
		{"labels by tool, substrings", "tools", "ours", false, true},
		{"every tool trusted, substrings", "all", "ours", false, true},
		{"no labels, and no grants", "none", "ours", true, false},
		{"labels by tool, and no grants", "tools", "ours", true, false},
		{"also ids, and no grants", "ids", "ours", true, false},
		{"every tool trusted, and no grants", "all", "ours", true, false},
		{"every tool trusted, substrings, and no grants", "all", "ours", true, true},
	} {
		table += v.row(t, folder)
	}

	table += "\n| | retargeted writes that are made, of 92 | by tasks and attacks | whole tasks, of 50 |\n| --- | --- | --- | --- |\n"
	for _, v := range []variant{
		{"labels by tool", "tools", "ours", false, false},
		{"strict roles, no labels", "none", "strict", false, false},
		{"strict roles, labels by tool", "tools", "strict", false, false},
		{"strict roles, also ids", "ids", "strict", false, false},
	} {
		a := v.run(t, folder, "retargeted")
		table += fmt.Sprintf("| %s | %s | %s | %s |\n", v.name, share(a.Attack), interval(a.Cluster), share(a.Utility))
	}
	golden.Section(t, "../../docs/internals/evaluation-figures.md", "<!-- origin -->\n", "<!-- end of origin -->", table)
}

func share(s eval.Share) string { return fmt.Sprintf("%d (%.1f %%)", s.K, 100*s.Rate) }

func interval(i eval.Interval) string { return fmt.Sprintf("%.1f to %.1f %%", 100*i.Low, 100*i.High) }

// row measures a variant with each attacker.
func (v variant) row(t *testing.T, folder string) string {
	var cells string
	var first, worst attack.ArmSection
	for i, name := range attackers {
		a := v.run(t, folder, name)
		if i == 0 {
			first = a
		}
		if a.Attack.K >= worst.Attack.K {
			worst = a
		}
		cells += " " + share(a.Attack) + " |"
	}
	return fmt.Sprintf("| %s | %s | %s | %d |%s %s |\n", v.name, share(first.Utility),
		interval(eval.Interval{Low: first.Utility.Low, High: first.Utility.High}), first.Asked.Needs, cells, interval(worst.Cluster))
}

// run measures a variant with one attacker.
func (v variant) run(t *testing.T, folder, attacker string) attack.ArmSection {
	t.Helper()
	name := filepath.Join(folder, "all.sessions-"+attacker+".jsonl")
	if v.noGrants || v.substrings {
		name = v.changeCases(t, name)
	}
	contents := map[string]*policy.Content{}
	for _, suite := range suites {
		contents[suite] = v.content(t, suite)
	}
	result, err := attack.Run(t.Context(), attack.Options{
		Open: safefile.ReadTrusted, Tools: filepath.Join(folder, "all.tools.json"), Cases: name, Arms: []attack.Arm{attack.Origin},
		Content: func(c *eval.Case) *policy.Content { return contents[c.Suite] },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !result.OK() {
		t.Errorf("%s, %s: %v, %v", v.name, attacker, result.Slips, result.Broken)
	}
	return result.Overall.Arms[0]
}

// content returns the configuration of a suite with the labels and roles of the variant.
func (v variant) content(t *testing.T, suite string) *policy.Content {
	loaded, err := config.Load(suite+"/pgfsm.yaml", safefile.ReadTrusted, config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	content, labels := loaded.Content, *loaded.Content.Labels
	content.Labels = &labels
	labels.Tools, labels.Roles = v.toolLabels(labels.Tools, suite, content.Allowlist), slices.Clone(labels.Roles)
	switch v.roles {
	case "camel":
		labels.Roles = camelRoles(t, suite)
	case "strict":
		content.Policy = strict(content.Policy, labels.Roles)
	}
	return &content
}

// camelRoles returns the roles of a suite's arguments by CaMeL's policies.
func camelRoles(t *testing.T, suite string) []origin.RoleLabel {
	text, err := os.ReadFile("testdata/camel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	labels, _, err := config.ReadLabels("camel.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(labels.Roles, func(r origin.RoleLabel) bool { return r.Server != suite })
}

// toolLabels returns the labels of results that the variant has.
func (v variant) toolLabels(from []origin.ToolLabel, suite string, allowed []policy.Allowance) (labels []origin.ToolLabel) {
	if v.labels == "all" {
		for _, name := range allowed[0].Tools {
			labels = append(labels, origin.ToolLabel{Server: suite, Tool: name, Results: "trusted"})
		}
		return labels
	}
	for _, l := range from {
		if v.labels != "ids" {
			l.Trusted, l.Creates = nil, nil
		}
		if v.labels == "tools" {
			l.Items, l.TrustedIf = "", ""
		}
		if v.labels != "none" && (l.Results != "" || l.Items != "" || l.Trusted != nil || l.Creates != nil) {
			labels = append(labels, l)
		}
	}
	return labels
}

// strict makes every argument that is retargeted a target, and returns policies that hold each write whose targets are not found.
func strict(from *rules.Content, roles []origin.RoleLabel) *rules.Content {
	var writes []string
	for i := range roles {
		r := &roles[i]
		writes = append(writes, "'"+r.Tool+"'")
		r.Amount = nil
		for _, name := range retargeted {
			if !slices.Contains(r.Target, name) {
				r.Target = append(slices.Clone(r.Target), name)
			}
		}
	}
	changed := &rules.Content{Policies: slices.Clone(from.Policies)}
	for i := range changed.Policies {
		if p := &changed.Policies[i]; p.Effect == rules.Allow {
			p.RequireApprovalIf = "tool in [" + strings.Join(writes, ", ") + "] || (" + cmp.Or(p.RequireApprovalIf, "false") + ")"
		}
	}
	return changed
}

// changeCases writes the cases without grants, or with the values that are parts of a result beside it.
func (v variant) changeCases(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := eval.ReadCases(name, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var changed []byte
	for _, c := range cases {
		if v.noGrants {
			c.Grant = ""
		}
		if v.substrings {
			addParts(t, c.Before, c.Wants)
			addParts(t, c.Needs, c.Needs)
		}
		line, err := c.Line()
		if err != nil {
			t.Fatal(err)
		}
		changed = append(changed, line...)
	}
	name = filepath.Join(filepath.Dir(name), "changed.jsonl")
	if err := os.WriteFile(name, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// addParts adds to each result the values of calls that are parts of its texts.
func addParts(t *testing.T, results, calls []eval.Call) {
	t.Helper()
	var values []string
	for _, call := range calls {
		values = append(values, scalars(t, call.Args)...)
	}
	for i := range results {
		result := results[i].Result
		if result == nil {
			continue
		}
		texts := strings.Join(scalars(t, result), "\x00")
		parts := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !strings.Contains(texts, v) })
		made, err := json.Marshal(map[string]any{"result": json.RawMessage(result), "parts": parts})
		if err != nil {
			t.Fatal(err)
		}
		results[i].Result = made
	}
}

// scalars returns the texts, numbers and member names of a document.
func scalars(t *testing.T, doc []byte) (texts []string) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(doc))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		switch v := token.(type) {
		case string:
			texts = append(texts, v)
		case json.Number:
			texts = append(texts, v.String())
		}
	}
}
