package fromtraces

import (
	"strings"
	"testing"

	"pgfsm/eval"
	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

const aRun = "01a1fd20-a47b-755b-89de-7c5c3de87485"

func TestNameOf(t *testing.T) {
	most := strings.Repeat("a", maxNameBytes)
	plan := &canonical.Text{}
	for _, tt := range []struct {
		name string
		call eval.Call
		want string
	}{
		{"a-tool", eval.Call{Tool: "get_ticket"}, "get_ticket/" + aRun},
		{"a-tool-with-a-slash", eval.Call{Tool: "get/ticket"}, "get/ticket/" + aRun},
		{"a-plan", eval.Call{Plan: plan}, "input_denied/" + aRun},
		{"what-does-not-show", eval.Call{Tool: "get\x1b[2J\u202e\u00a0"}, `get\u001b[2J\u202e\u00a0/` + aRun},
		{"as-long-as-fits", eval.Call{Tool: most}, most + "/" + aRun},
		{"one-longer", eval.Call{Tool: most + "a"}, most + "…/" + aRun},
		{"cut-between-characters", eval.Call{Tool: most[1:] + "é"}, most[1:] + "…/" + aRun},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := nameOf(&tt.call, policy.CodeInputDenied, aRun)
			if got != tt.want {
				t.Errorf("nameOf() = %s, want %s", got, tt.want)
			}
			tt.call.Server = "crm"
			tt.call.Args = []byte("{}")
			if tt.call.Plan != nil {
				tt.call = eval.Call{Plan: plan}
			}
			if err := fits(&eval.Case{ID: got, Suite: suite, Task: aRun, Request: "x", Needs: []eval.Call{tt.call}}); err != nil {
				t.Errorf("%s: %v", got, err)
			}
		})
	}
}
