package fromtraces

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/states/statestest"
	"pgfsm/traces"
)

const (
	aRun   = "01a1fd20-a47b-755b-89de-7c5c3de87485"
	itsEnd = "7c5c3de87485"
)

func TestNameOf(t *testing.T) {
	most := strings.Repeat("a", maxNameBytes)
	plan := &canonical.Text{}
	for _, tt := range []struct {
		name string
		call eval.Call
		want string
	}{
		{"a-tool", eval.Call{Tool: "get_ticket"}, "get_ticket/" + itsEnd},
		{"a-tool-with-a-slash", eval.Call{Tool: "get/ticket"}, "get/ticket/" + itsEnd},
		{"a-plan", eval.Call{Plan: plan}, "input_denied/" + itsEnd},
		{"what-does-not-show", eval.Call{Tool: "get\x1b[2J\u202e\u00a0"}, `get\u001b[2J\u202e\u00a0/` + itsEnd},
		{"as-long-as-fits", eval.Call{Tool: most}, most + "/" + itsEnd},
		{"one-longer", eval.Call{Tool: most + "a"}, most + "…/" + itsEnd},
		{"cut-between-characters", eval.Call{Tool: most[1:] + "é"}, most[1:] + "…/" + itsEnd},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := nameOf(&tt.call, policy.CodeInputDenied, lastGroup(aRun))
			if got != tt.want {
				t.Errorf("nameOf() = %s, want %s", got, tt.want)
			}
			tt.call.Server = "crm"
			tt.call.Args = []byte("{}")
			if tt.call.Plan != nil {
				tt.call = eval.Call{Plan: plan}
			}
			for _, id := range []string{got, strings.TrimSuffix(got, itsEnd) + aRun} {
				if err := fits(&eval.Case{ID: id, Suite: suite, Task: aRun, Request: "x", Needs: []eval.Call{tt.call}}); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			}
		})
	}
}

// TestNameApart: runs whose ids end alike, which nobody drew at random, are told apart all the same.
func TestNameApart(t *testing.T) {
	const other = "01a1fd20-a47b-755b-89df-7c5c3de87485"
	var cases []*taken
	for _, c := range [][2]string{{"look", aRun}, {"look", other}, {"find", other}} {
		cases = append(cases, &taken{c: &eval.Case{ID: c[0] + "/" + lastGroup(c[1]), Task: c[1]}})
	}
	nameApart(cases)
	var got []string
	for _, c := range cases {
		got = append(got, c.c.ID)
	}
	if d := cmp.Diff([]string{"look/" + aRun, "look/" + other, "find/" + itsEnd}, got); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
}

// TestSuiteNamesApart: a file in which an id stood twice could not be read.
func TestSuiteNamesApart(t *testing.T) {
	m := statestest.MustMachine(t)
	maker, err := NewMaker(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	trace, run := reread(t, museumPaths(t)[1], traces.NewReplayer(m, nil))
	if err := maker.Add("one", trace, run); err != nil {
		t.Fatal(err)
	}
	g := maker.order[0]
	same := *g.cases[0].c
	same.Task = "00000000" + same.Task[8:]
	g.cases = append(g.cases, &taken{"other", &same})
	suites, left, err := maker.Finish(t.Context(), m, os.ReadFile)
	if err != nil || len(left) > 0 || len(suites) != 1 || suites[0].Count != 2 {
		t.Fatalf("suites = %+v, left out %v, %v, want one with two cases", suites, left, err)
	}
	if cases := casesOf(t, suites[0].Cases); len(cases) != 2 || cases[0].ID == cases[1].ID {
		t.Errorf("%d cases, want two of different ids", len(cases))
	}
}
