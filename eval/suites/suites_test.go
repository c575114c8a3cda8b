// Package suites_test tests the attacks of our own, each suite a folder in the neutral format of package eval: what servers offer
// (tools.json), what is needed and wanted of them (cases.jsonl), a configuration that an operator would write (pgfsm.yaml and
// what it names), and a README that says where the attack is from, what stops it and what still gets through.
//
// Every case states its expected outcome. An attack that still gets through is there as well: its id begins with [remains]. The
// folders within a suite hold configurations that take its protection away, servers that show other tools, and grants.
//
// The files hold ASCII only: the hidden text of an attack is escaped, and readers of the file see it.
package suites_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/eval"
	"pgfsm/eval/attack"
	"pgfsm/internal/test/check"
)

// remains begins the ids of attacks that no gate stops.
const remains = "remains-"

// figures is what comes of a suite: attacks of which all calls are made, in each arm.
type figures struct {
	Attacks int
	Made    map[attack.Arm]int
	Open    int // by the last arm, with the protection taken away

	Clustered string // interval by tasks and attacks of Made in the last arm, in percent

	Needs, Unattended int // calls that tasks need, and those of them that are made though nobody answers
}

// suite is how a suite is run here.
type suite struct {
	name string
	open string // the configuration that takes its protection away; empty: none does
	want figures
}

// table says what comes of each suite. A figure that falls is good news, and a figure that rises is none: both are looked at.
var table = []suite{
	{"tool-poisoning", "unpinned", figures{36, byArm(36, 25, 6, 4, 3, 3), 20, "0.0 to 33.3", 8, 7}},
	{"parameter-smuggling", "unconditional", figures{81, byArm(81, 81, 24, 20, 6, 6), 54, "0.0 to 17.5", 12, 9}},
	{"parser-differentials", "", figures{58, byArm(58, 4, 3, 3, 3, 3), 0, "0.0 to 18.2", 58, 58}},
	{"confused-deputy", "trusting", figures{44, byArm(44, 42, 9, 6, 3, 3), 30, "0.0 to 23.1", 11, 8}},
	{"approval-replay", "unheld", figures{36, byArm(36, 34, 31, 30, 2, 3), 30, "0.0 to 25.6", 7, 4}},
	{"exfiltration", "open", figures{51, byArm(51, 51, 18, 15, 9, 9), 47, "3.3 to 35.1", 16, 14}},
}

// byArm are figures in the order of the arms.
func byArm(made ...int) map[attack.Arm]int {
	by := make(map[attack.Arm]int, len(made))
	for i, arm := range attack.Usual() {
		by[arm] = made[i]
	}
	return by
}

const configuration = "pgfsm.yaml"

func run(t *testing.T, o attack.Options) *attack.Result {
	t.Helper()
	o.Open = os.ReadFile
	r, err := attack.Run(t.Context(), o)
	check.NoError(t, err)
	return r
}

// options run a suite as it stands, or by the configuration in one of its folders.
func options(name, variant string) attack.Options {
	return attack.Options{
		Tools: filepath.Join(name, "tools.json"), Cases: filepath.Join(name, "cases.jsonl"), Bundle: filepath.Join(name, variant, configuration),
	}
}

// made counts the attacks of which all calls were made.
func made(r *attack.Result, arm attack.Arm) (n int) {
	for _, a := range r.Overall.Arms {
		if a.Arm == arm {
			n = a.Attack.K
		}
	}
	return n
}

func cases(t *testing.T, name string) (all []*eval.Case) {
	t.Helper()
	path := filepath.Join(name, "cases.jsonl")
	f, err := os.Open(path)
	check.NoError(t, err)
	defer f.Close()
	all, err = eval.ReadCases(path, f)
	check.NoError(t, err)
	return all
}

// TestTheTableNamesAllSuites: each folder is a suite of the table.
func TestTheTableNamesAllSuites(t *testing.T) {
	folders, err := filepath.Glob("*/cases.jsonl")
	if err != nil || len(folders) != len(table) {
		t.Errorf("%d folders have cases, %v, want %d", len(folders), err, len(table))
	}
}

func TestEveryCaseSaysWhatMustComeOfIt(t *testing.T) {
	for _, s := range table {
		t.Run(s.name, func(t *testing.T) {
			attacks, tasks := 0, map[string]bool{}
			for _, c := range cases(t, s.name) {
				if c.Suite != s.name {
					t.Errorf("%s: its suite is %q", c.ID, c.Suite)
				}
				if c.Expect == nil {
					t.Errorf("%s expects nothing", c.ID)
					continue
				}
				if c.Attack != "" {
					attacks++
					if c.Expect.Wants == "" || (c.Expect.Wants == eval.Made) != strings.HasPrefix(c.ID, remains) {
						t.Errorf("%s expects %q of what the attack wants; those that are made begin with %q, and only those", c.ID, c.Expect.Wants, remains)
					}
				}
				if c.Expect.Needs == eval.Made {
					tasks[c.Task] = true
				}
			}
			if attacks < 12 || len(tasks) < 5 {
				t.Errorf("%d attacks and %d tasks that must be permitted are too few", attacks, len(tasks))
			}
		})
	}
}

func TestSuites(t *testing.T) {
	for _, s := range table {
		t.Run(s.name, func(t *testing.T) {
			r := run(t, options(s.name, ""))
			for _, b := range r.Broken {
				t.Errorf("%s, %s: want %s, got %s", b.Case, b.Side, b.Want, b.Got)
			}
			for _, slip := range r.Slips {
				t.Errorf("slip: %+v", slip)
			}
			got := figures{Attacks: r.Overall.Attacks, Made: map[attack.Arm]int{}}
			for _, a := range r.Overall.Arms {
				got.Made[a.Arm] = a.Attack.K
				got.Clustered = fmt.Sprintf("%.1f to %.1f", a.Cluster.Low*100, a.Cluster.High*100) // the last arm's stays
				if a.Arm == attack.Unattended {
					got.Needs, got.Unattended = a.Needs.N, a.Needs.K
				} else if a.Utility.K != a.Utility.N || a.Utility.N == 0 {
					t.Errorf("in the arm %s %d of %d tasks are permitted", a.Arm, a.Utility.K, a.Utility.N)
				}
			}
			for _, c := range r.Cases {
				last := c.Arms[len(c.Arms)-1].Outcome
				if (last == attack.AllMade) != strings.HasPrefix(c.Case, remains) {
					t.Errorf("%s: %s in the last arm", c.Case, last)
				}
				if c.Arms[0].Arm != attack.Naive || c.Arms[0].Outcome != attack.AllMade {
					t.Errorf("%s: %s without any gate", c.Case, c.Arms[0].Outcome)
				}
			}
			if s.open != "" {
				without := run(t, options(s.name, s.open))
				if got.Open = made(without, attack.Approvals); without.OK() || got.Open <= got.Made[attack.Approvals] {
					t.Errorf("with %s in the place of its protection the suite holds", s.open)
				}
			}
			if diff := cmp.Diff(s.want, got); diff != "" {
				t.Errorf("figures (-want +got):\n%s", diff)
			}
		})
	}
}
