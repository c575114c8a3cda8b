package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/eval/attack"
)

// TestSameCallsAreShownOnce groups attacks by suite, by how far they came, and by the calls that were made.
func TestSameCallsAreShownOnce(t *testing.T) {
	call := func(args string) eval.Call { return eval.Call{Server: "s", Tool: "t", Args: []byte(args)} }
	long := strings.Repeat("x", maxTextBytes)
	got := func(id, suite, outcome string, calls ...eval.Call) *attack.Through {
		return &attack.Through{Case: id, Suite: suite, Task: "u" + id, Attack: "i" + id, Outcome: outcome, Calls: calls}
	}
	all, some := attack.AllMade, "partly"
	for _, tt := range []struct {
		name string
		got  []*attack.Through
		want []through
	}{
		{"one", []*attack.Through{got("1", "bank", all, call("{}"))}, []through{
			{"bank: 1 attack", "had all calls made: 1", []string{"s/t {}"}},
		}},
		{"as-many-as-are-named", []*attack.Through{got("1", "bank", all, call("{}")), got("2", "bank", all, call("{ }")), got("3", "bank", all, call("{}"))}, []through{
			{"bank: 3 attacks", "had all calls made: 1, 2, 3", []string{"s/t {}"}},
		}},
		{"one-more-than-are-named", []*attack.Through{
			got("1", "bank", some, call("{}")), got("2", "bank", some, call("{}")), got("3", "bank", some, call("{}")), got("4", "bank", some, call("{}")),
		}, []through{
			{"bank: 4 attacks", "had some calls made: 1, 2, 3, and 1 more", []string{"s/t {}"}},
		}},
		{"with-others-between", []*attack.Through{
			got("1", "bank", all, call("{}")), got("2", "mail", all, call("{}")), got("3", "bank", some, call("{}")), got("4", "bank", all, call("{}")),
		}, []through{
			{"bank: 2 attacks", "had all calls made: 1, 4", []string{"s/t {}"}},
			{"mail: 1 attack", "had all calls made: 2", []string{"s/t {}"}},
			{"bank: 1 attack", "had some calls made: 3", []string{"s/t {}"}},
		}},
		{"order-and-number-of-calls", []*attack.Through{
			got("1", "bank", all, call(`{"a":1}`), call("{}")), got("2", "bank", all, call("{}"), call(`{"a":1}`)), got("3", "bank", all, call("{}")),
		}, []through{
			{"bank: 1 attack", "had all calls made: 1", []string{`s/t {"a":1}`, "s/t {}"}},
			{"bank: 1 attack", "had all calls made: 2", []string{"s/t {}", `s/t {"a":1}`}},
			{"bank: 1 attack", "had all calls made: 3", []string{"s/t {}"}},
		}},
		{"differ-after-the-clip", []*attack.Through{got("1", "bank", all, call(`"`+long+`1"`)), got("2", "bank", all, call(`"`+long+`2"`))}, []through{
			{"bank: 1 attack", "had all calls made: 1", []string{spelled(new(call(`"` + long + `1"`)))}},
			{"bank: 1 attack", "had all calls made: 2", []string{spelled(new(call(`"` + long + `2"`)))}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var shown []through
			for _, g := range sameCalls(tt.got) {
				shown = append(shown, newThrough(g))
			}
			if diff := cmp.Diff(tt.want, shown); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
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
	for i, command := range []string{"pgfsm eval attack", "pgfsm eval e2e", "pgfsm eval gates"} {
		t.Run(command, func(t *testing.T) {
			s := read(t, folder(t, files[i])).again()
			commands, rows := s.Blocks[1].Commands, s.Blocks[2].Table.Rows
			if len(commands) != 2 || !strings.HasPrefix(commands[0], command+" ") || !strings.HasPrefix(commands[1], "pgfsm eval report ") {
				t.Errorf("the commands are %q", commands)
			}
			if len(rows) != 1 || rows[0][0].Text != files[i] || rows[0][1].Text != command {
				t.Errorf("the files are %v", rows)
			}
		})
	}
}
