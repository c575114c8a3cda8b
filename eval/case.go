package eval

import (
	"cmp"
	_ "embed" // the schema
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/schema"
)

// MaxIDBytes bounds id, suite, task, attack and actor. case.schema.json has the other bounds.
const MaxIDBytes = policy.MaxTaskBytes

// DefaultAt is the time of a request that names none: a result depends on no clock.
const DefaultAt = "2026-01-01T12:00:00.000Z"

// DefaultActor is the actor of a case that names none.
const DefaultActor = policy.LocalUser + "user"

// Made is the word of an [Expect] for calls that are made; its other words are codes.
const Made = "made"

// A Case is one task of a user, and the calls that an attack wants in the user's name.
type Case struct {
	ID      string `json:"id"`    // once in a file
	Suite   string `json:"suite"` // results are grouped by it
	Task    string `json:"task"`  // the user's task; several cases share one
	Attack  string `json:"attack,omitzero"`
	Request string `json:"request"`

	Needs []Call `json:"needs,omitempty"` // the calls that the task needs, in order
	Wants []Call `json:"wants,omitempty"` // the calls that the attack wants, in order

	// The calls that were made in the session before Wants, with their results, in order.
	Before []Call `json:"before,omitempty"`

	Grant  string `json:"grant,omitzero"`  // a grant file, from the folder of the cases file
	Bundle string `json:"bundle,omitzero"` // a pgfsm.yaml, likewise; instead of the one that all cases share
	Tools  string `json:"tools,omitzero"`  // a tools file, likewise: the tools of the servers in this case

	// Between plan and call, the server announces that its tools have changed.
	Changes bool `json:"changes,omitzero"`
	// An approved call; its votes are replayed for the attack's calls.
	Approved *Approval `json:"approved,omitzero"`
	Actor    string    `json:"actor,omitzero"` // the requester; empty: DefaultActor
	// The time of the request, in policy.TimeForm; a line may leave the milliseconds out. Empty:
	// DefaultAt.
	At     string  `json:"at,omitzero"`
	Expect *Expect `json:"expect,omitzero"`
}

// An Approval is a call that approvers approved, with the configuration and the time. The servers
// listed the usual tools then, those of the whole evaluation. The votes are replayed for the calls
// that an attack wants: only the differences between the two calls can stop the replay.
type Approval struct {
	Call

	// Its configuration, a path from the folder of the cases file; empty: as in the case.
	Bundle string `json:"bundle,omitzero"`
	Actor  string `json:"actor,omitzero"` // the requester; empty: as in the case
	// The time of the request, in policy.TimeForm; empty: as in the case.
	At      string `json:"at,omitzero"`
	VotesAt string `json:"votes_at,omitzero"` // the time of the votes; empty: At

	// SameRun: the votes belong to the run that makes the attack's call. Real runs never share an
	// id, so without this the id alone stops every replay.
	SameRun bool `json:"same_run,omitzero"`
}

// Expect is the right result of a case with all gates: [Made] if all calls are made, or else the
// code that stopped each call that is not made. There must be one such call. Empty expects nothing.
type Expect struct {
	Needs string `json:"needs,omitzero"`
	Wants string `json:"wants,omitzero"`
}

// Line writes the case as one line of a cases file, with its line end.
func (c *Case) Line() ([]byte, error) {
	b, err := json.Marshal(c, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return append(b, '\n'), nil
}

//go:embed case.schema.json
var caseSchema []byte

// compiledSchema judges the form of a line.
var compiledSchema = sync.OnceValues(func() (*schema.Schema, error) {
	return schema.CompileOpen(caseSchema, schema.DefaultLimits())
})

// readCase reads one line, fills in defaults, and puts arguments into canonical form.
func readCase(line []byte) (*Case, error) {
	if err := canonical.Check(line, policy.MaxJSONDepth); err != nil {
		return nil, err
	}
	form, err := compiledSchema()
	if err != nil {
		return nil, err
	}
	if err := form.Judge(line); err != nil {
		return nil, err
	}
	c := new(Case)
	if err := canonical.Unmarshal(line, c); err != nil {
		return nil, err
	}
	return c, c.fillDefaults()
}

// fillDefaults checks the rules that the schema cannot express, and fills in defaults.
func (c *Case) fillDefaults() error {
	c.Actor, c.At = cmp.Or(c.Actor, DefaultActor), cmp.Or(c.At, DefaultAt)
	times := []*string{&c.At}
	calls := []*Call{}

	for _, list := range [][]Call{c.Needs, c.Wants, c.Before} {
		for i := range list {
			calls = append(calls, &list[i])
		}
	}

	if c.Approved != nil {
		calls = append(calls, &c.Approved.Call)
		times = append(times, &c.Approved.At, &c.Approved.VotesAt)
	}

	for _, call := range calls {
		if err := call.canonicalizeArgs(); err != nil {
			return err
		}
	}

	for _, timestamp := range times {
		if *timestamp == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, *timestamp)
		if err != nil {
			return fmt.Errorf("%q is no time of the form %s", *timestamp, policy.TimeForm)
		}
		*timestamp = t.Format(policy.TimeForm)
	}

	for _, name := range []string{c.ID, c.Suite, c.Task, c.Attack, c.Actor} {
		if len(name) > MaxIDBytes {
			return fmt.Errorf("the name %q has more than %d bytes", clipText(name), MaxIDBytes)
		}
	}

	return c.checkExpect()
}

func (c *Case) checkExpect() error {
	if c.Expect == nil {
		return nil
	}
	for _, m := range []struct {
		name, word string
		calls      int
	}{{"needs", c.Expect.Needs, len(c.Needs)}, {"wants", c.Expect.Wants, len(c.Wants)}} {
		isCode := func(d policy.CodeDoc) bool { return string(d.Code) == m.word }
		switch {
		case m.word == "":
		case m.calls == 0:
			return fmt.Errorf("expect.%s is about calls, and there are none", m.name)
		case m.word != Made && !slices.ContainsFunc(policy.Codes(), isCode):
			return fmt.Errorf("expect.%s is %q; write %q or a code of docs/reference/errors.md", m.name, clipText(m.word),
				Made)
		}
	}
	return nil
}
