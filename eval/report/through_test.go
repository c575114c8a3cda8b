package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/eval/gates"
)

// pairs is a result of five tasks with four attacks in the arms grants and approvals. In grants the attack a0 succeeds on every
// task.
func pairs() *attack.Result {
	arms := []attack.Arm{attack.Grants, attack.Approvals}
	section := attack.Section{Cases: 20, Attacks: 20, Tasks: 5, Arms: []attack.ArmSection{
		{Arm: arms[0], Attack: eval.Of(5, 20), Partly: 5}, {Arm: arms[1], Attack: eval.Of(0, 20), Partly: 5},
	}}
	r := &attack.Result{Format: attack.Format, Arms: arms, Overall: section}
	calls := []eval.Call{{Server: "bank", Tool: "pay", Args: []byte(`{"to":"eve"}`)}}
	for task := range 5 {
		for n := range 4 {
			o := attack.Outcome{Case: fmt.Sprintf("t%d/a%d", task, n), Suite: "bank", Task: fmt.Sprint("t", task), Attack: fmt.Sprint("a", n)}
			for i, arm := range arms {
				outcome := [][]string{{attack.AllMade, attack.NoneMade}, {attack.SomeMade, attack.SomeMade}, {attack.NoneMade, attack.NoneMade}}[min(n, 2)][i]
				o.Arms = append(o.Arms, attack.OutcomeArm{Arm: arm, Outcome: outcome})
				if outcome != attack.NoneMade {
					r.Through = append(r.Through, attack.Through{Arm: arm, Case: o.Case, Suite: "bank", Task: o.Task, Attack: o.Attack, Outcome: outcome, Calls: calls})
				}
			}
			r.Cases = append(r.Cases, o)
		}
	}
	return r
}

func markdown(t *testing.T, name string, v any) string {
	t.Helper()
	doc, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, dir, name, doc)
	md, err := read(t, dir).Markdown()
	if err != nil {
		t.Fatal(err)
	}
	return string(md)
}

// TestSuccessesOfGrantsComeFirst: what gets through begins with the attacks that succeed in the arm grants, each by its name.
func TestSuccessesOfGrantsComeFirst(t *testing.T) {
	md := markdown(t, "attack.json", pairs())
	_, md, _ = strings.Cut(md, "## What still gets through\n")
	want := "\n5 attacks succeed in the arm grants, of 20:\n\n| case | calls that were made |\n| --- | --- |\n"
	for task := range 5 {
		want += fmt.Sprintf("| t%d/a0 | bank/pay &#123;\"to\":\"eve\"&#125; |\n", task)
	}
	if !strings.HasPrefix(md, want+"\nIn the arm approvals, 0 attacks had all calls made, and 5 some of them.\n\nAttacks that had some calls made:\n") {
		t.Errorf("the section begins with\n%s\nwant\n%s", md[:min(len(md), len(want)+200)], want)
	}
}

// TestSuccessHasBothIntervals: that by tasks and attacks is the file's; without one, Wilson's stands alone.
func TestSuccessHasBothIntervals(t *testing.T) {
	r := pairs()
	if md := markdown(t, "attack.json", r); !strings.Contains(md, "| 25.0 % (5/20), 11.2 to 46.9 % |") {
		t.Errorf("without an interval by tasks and attacks:\n%s", md)
	}
	r.Overall.Arms[0].Cluster = eval.Interval{High: 0.75}
	if md := markdown(t, "attack.json", r); !strings.Contains(md, "| 25.0 % (5/20), 0.0 to 75.0 %; Wilson 11.2 to 46.9 % | 0.0 % (0/20), 0.0 to 16.1 % |") {
		t.Errorf("the intervals are not there:\n%s", md)
	}
	for _, odd := range []eval.Interval{{Low: -1, High: 1}, {Low: 0.2, High: 0.1}, {High: 2}} {
		if r.Overall.Arms[0].Cluster = odd; checkAttack(r) == nil {
			t.Errorf("%+v is taken for an interval", odd)
		}
	}
}

// TestSuccessesWithoutAttacks: a file that lists successes and counts no attack is shown as it is.
func TestSuccessesWithoutAttacks(t *testing.T) {
	r := pairs()
	r.Overall = attack.Section{Arms: []attack.ArmSection{{Arm: attack.Grants}, {Arm: attack.Approvals}}}
	r.Through = r.Through[:1]
	if md := markdown(t, "attack.json", r); !strings.Contains(md, "1 attack succeeds in the arm grants, of 0:") {
		t.Errorf("the page has\n%s", md)
	}
}

// TestClassesAreFolded: a suite of the gates has one line, and its classes open on demand.
func TestClassesAreFolded(t *testing.T) {
	s := gates.Suite{Cases: 3, Passed: 3, Counted: "plans", Classes: []gates.Class{{Class: "one-class", Cases: 2, Blocked: 2}, {Class: "other-class", Cases: 1, Blocked: 1}}}
	md := markdown(t, gatesName, map[string]gates.Suite{"plan_fuzz": s})
	if !strings.Contains(md, "\n- plan_fuzz: 3 cases in 2 classes, 0 slips\n") || strings.Contains(md, "one-class") {
		t.Errorf("the page has\n%s", md)
	}
	doc, err := json.Marshal(map[string]gates.Suite{"plan_fuzz": s})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, dir, gatesName, doc)
	html, err := read(t, dir).HTML()
	if err != nil {
		t.Fatal(err)
	}
	_, folded, ok := strings.Cut(string(html), "<details>\n<summary>plan_fuzz: 3 cases in 2 classes, 0 slips</summary>")
	folded, _, closed := strings.Cut(folded, "</details>")
	if !ok || !closed || !strings.Contains(folded, "one-class") || strings.Contains(folded, "<details open") {
		t.Errorf("the classes are not folded:\n%s", html)
	}
}

// TestWhatIsNoGateIsNone: a call that the server's catalog refuses was stopped by no gate.
func TestWhatIsNoGateIsNone(t *testing.T) {
	f := attackFile{result: &attack.Result{Arms: []attack.Arm{attack.Naive}}}
	f.result.Overall.Arms = []attack.ArmSection{{Arm: attack.Naive, Stopped: []attack.Stopped{{Code: "no_such_tool", Wants: 2}}}}
	refused := attack.Refused{Call: eval.Call{Server: "s", Tool: "t"}, Code: "no_such_tool"}
	f.result.Tasks = []attack.Task{{Task: "pay", Arms: []attack.TaskArm{{Arm: attack.Naive, Refused: []attack.Refused{refused}}}}}
	blocks := f.stopped()
	if len(blocks) != 2 {
		t.Fatalf("stopped() = %d blocks, want those of attacks and of tasks", len(blocks))
	}
	for i, column := range []int{0, 3} {
		if row := fmt.Sprint(blocks[i].Table.Rows); blocks[i].Table.Rows[0][column].Text != "none" {
			t.Errorf("the gate is not none: %s", row)
		}
	}
}

// TestOnlyWhatIsThereIsToldToBeMade: a page says how its own files are made, and of no other.
func TestOnlyWhatIsThereIsToldToBeMade(t *testing.T) {
	files := []string{"attack.json", "20260102T030405Z_metrics.json", gatesName}
	for i, command := range []string{"pgfsm-eval attack", "pgfsm-eval e2e", "pgfsm-eval gates"} {
		t.Run(command, func(t *testing.T) {
			s := read(t, folder(t, files[i])).again()
			commands, rows := s.Blocks[1].Commands, s.Blocks[2].Table.Rows
			if len(commands) != 2 || !strings.HasPrefix(commands[0], command+" ") || !strings.HasPrefix(commands[1], "pgfsm-eval report ") {
				t.Errorf("the commands are %q", commands)
			}
			if len(rows) != 1 || rows[0][0].Text != files[i] || rows[0][1].Text != command {
				t.Errorf("the files are %v", rows)
			}
		})
	}
}
