package attack

import (
	"pgfsm/eval"
	"pgfsm/internal/canonical"
)

// Format names the shape of a [Result].
const Format = "pgfsm.attack/v1"

// A Result is the result of all cases. The lists have the order of the cases file unless a comment
// names another.
type Result struct {
	Format  string           `json:"format"`
	Machine canonical.Digest `json:"machine"` // the digest of the table
	// The digest of all that the outcome depends on: cases, tools, bundles, grants, machine, arms.
	Inputs canonical.Digest `json:"inputs"`
	Arms   []Arm            `json:"arms"`

	Overall Section   `json:"overall"`
	Suites  []Section `json:"suites"`

	Through []Through `json:"through"` // attacks that got through in the last arms, also in part
	Slips   []Slip    `json:"slips"`
	Broken  []Broken  `json:"broken"` // expectations that do not hold

	Tasks []Task    `json:"tasks"`
	Cases []Outcome `json:"cases"` // the cases with an attack
}

// A Section is a suite, or all of them.
type Section struct {
	Suite   string `json:"suite"` // empty: all
	Cases   int    `json:"cases"`
	Attacks int    `json:"attacks"` // cases with an attack
	// Each once, for all attacks on it and all suites that have it, unless it meets different
	// servers.
	Tasks int          `json:"tasks"`
	Arms  []ArmSection `json:"arms"`
}

// An ArmSection is a suite in one arm.
type ArmSection struct {
	Arm    Arm        `json:"arm"`
	Attack eval.Share `json:"attack"` // attacks of which all calls were made
	// The interval of the share of Attack, by [eval.Bootstrap]; none without attacks.
	Cluster eval.Interval `json:"attack_clustered,omitzero"`
	// Attacks of which some calls were made, and not all.
	Partly  int        `json:"partly"`
	Wants   eval.Share `json:"wants"`   // calls that attacks want and that were made
	Needs   eval.Share `json:"needs"`   // calls that tasks need and that were made
	Utility eval.Share `json:"utility"` // tasks of which all calls were made
	Asked   Asked      `json:"asked"`

	// The same without calls whose arguments only the environment of the cases' source resolves:
	// they have placeholders.
	AttackKnown  eval.Share    `json:"attack_known"`
	ClusterKnown eval.Interval `json:"attack_known_clustered,omitzero"`
	NeedsKnown   eval.Share    `json:"needs_known"`

	Stopped []Stopped `json:"stopped"` // most calls first
}

// Asked counts calls about which an approver was asked.
type Asked struct {
	Needs   int     `json:"needs"`    // calls that tasks need
	Tasks   int     `json:"tasks"`    // tasks with at least one
	PerTask float64 `json:"per_task"` // Needs by the number of tasks
	Wants   int     `json:"wants"`    // calls that attacks want
}

// Stopped counts the calls that one gate stopped with one code.
type Stopped struct {
	Gate  string `json:"gate"`
	Code  string `json:"code"`
	Wants int    `json:"wants"`
	Needs int    `json:"needs"`
}

// How far attacks come.
const (
	AllMade  = "made"
	SomeMade = "partly"
	NoneMade = "stopped"
)

// A Name names an attack.
type Name struct {
	Case   string `json:"case"`
	Suite  string `json:"suite"`
	Task   string `json:"task"`
	Attack string `json:"attack"`
}

// A Through is an attack that got through, at least in part, in one arm.
type Through struct {
	Arm Arm `json:"arm"`
	Name
	Outcome string      `json:"outcome"`
	Calls   []eval.Call `json:"calls"` // those that were made
}

// A Slip is something that the machine did and must never do.
type Slip struct {
	Case string `json:"case"`
	Arm  Arm    `json:"arm"`
	Side string `json:"side"` // "needs" or "wants"
	Call int    `json:"call"` // the number of the call, from 1
	Slip string `json:"slip"`
}

// A Broken expectation is the expected and the actual result of a case's calls.
type Broken struct {
	Case string `json:"case"`
	Side string `json:"side"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

// A Task is a task's own calls in every arm.
type Task struct {
	Suite string    `json:"suite"`
	Task  string    `json:"task"`
	Case  string    `json:"case"` // the first that has it
	Arms  []TaskArm `json:"arms"`
}

// A TaskArm is a task in one arm.
type TaskArm struct {
	Arm     Arm       `json:"arm"`
	Made    int       `json:"made"`
	Calls   int       `json:"calls"`
	Asked   int       `json:"asked"`
	Refused []Refused `json:"refused"`
}

// A Refused call is one that a task needs and that was not made.
type Refused struct {
	Call   eval.Call `json:"call"`
	Gate   string    `json:"gate"`
	Code   string    `json:"code"`
	Reason string    `json:"reason"`
}

// An Outcome is a case's attack in every arm.
type Outcome struct {
	Name
	Arms []OutcomeArm `json:"arms"`
}

// An OutcomeArm is an attack in one arm.
type OutcomeArm struct {
	Arm     Arm          `json:"arm"`
	Outcome string       `json:"outcome"`
	Calls   []CallResult `json:"calls"`
}

// A CallResult is the result of one call in one arm.
type CallResult struct {
	Made   bool   `json:"made"`
	Held   bool   `json:"held"` // an approver was asked
	Gate   string `json:"gate"` // the gate that stopped it
	Code   string `json:"code"`
	Reason string `json:"-"`
	Slip   string `json:"-"` // the forbidden thing that the machine did; empty: none
}

// OK reports whether nothing slipped and every expectation holds. How many attacks got through is a
// finding and no failure.
func (r *Result) OK() bool { return len(r.Slips) == 0 && len(r.Broken) == 0 }

// ResultStart begins every result, without its white space.
const ResultStart = `{"format":"pgfsm.attack/`
