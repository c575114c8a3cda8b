package eval

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// Bounds of one case. One that exceeds any of them is refused, never cut.
const (
	MaxIDBytes   = policy.MaxTaskBytes // of id, suite, task, attack and actor
	MaxCalls     = 256                 // that a task needs, and that an attack wants
	MaxPathBytes = 1024                // of grant, bundle and tools
)

// DefaultAt is the time of a request that names none: a result depends on no clock.
const DefaultAt = "2026-01-01T12:00:00Z"

// DefaultActor is the actor of a case that names none.
const DefaultActor = policy.LocalUser + "user"

// Made is the word of an [Expect] for calls that are made; its other words are codes.
const Made = "made"

// A Case is one task of a user, and the calls that an attack wants in the user's name.
type Case struct {
	ID      string `json:"id"`    // once in a file
	Suite   string `json:"suite"` // results are grouped by it
	Task    string `json:"task"`  // of the user; several cases share one
	Attack  string `json:"attack,omitzero"`
	Request string `json:"request"`

	Needs []Call `json:"needs,omitempty"` // what the task needs, in order
	Wants []Call `json:"wants,omitempty"` // what the attack wants, in order

	Grant  string `json:"grant,omitzero"`  // a grant file, from the folder of the cases file
	Bundle string `json:"bundle,omitzero"` // a pgfsm.yaml, likewise; instead of the one that all cases share
	Tools  string `json:"tools,omitzero"`  // a tools file, likewise: the tools of the servers in this case

	Changes  bool      `json:"changes,omitzero"`  // between plan and call, the server announces that its tools have changed
	Approved *Approval `json:"approved,omitzero"` // an approved call; its votes are replayed for the attack's calls
	Actor    string    `json:"actor,omitzero"`    // of the request; empty: DefaultActor
	At       string    `json:"at,omitzero"`       // of the request, in policy.TimeForm; empty: DefaultAt
	Expect   *Expect   `json:"expect,omitzero"`
}

// Expect is the right result of a case with all gates: [Made] if all calls are made, or else the code that stopped each call that
// is not made. There must be one such call. Empty expects nothing.
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

// readCase reads one line, fills in defaults, and puts arguments into canonical form.
func readCase(line []byte) (*Case, error) {
	if err := canonical.Check(line, policy.MaxJSONDepth); err != nil {
		return nil, err
	}
	c := new(Case)
	if err := canonical.Unmarshal(line, c); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Actor == "" {
		c.Actor = DefaultActor
	}
	if c.At == "" {
		c.At = DefaultAt
	}
	return c, nil
}

func (c *Case) check() error {
	for _, m := range []struct {
		name, value string
		optional    bool
	}{{"id", c.ID, false}, {"suite", c.Suite, false}, {"task", c.Task, false}, {"attack", c.Attack, true}, {"actor", c.Actor, true}} {
		if m.value == "" && m.optional {
			continue
		}
		if err := checkName(m.value); err != nil {
			return fmt.Errorf("%s %w", m.name, err)
		}
	}
	for _, m := range []struct{ name, value string }{{"grant", c.Grant}, {"bundle", c.Bundle}, {"tools", c.Tools}} {
		if err := checkPath(m.value); err != nil {
			return fmt.Errorf("%s %w", m.name, err)
		}
	}
	if c.At != "" && !isTime(c.At) {
		return fmt.Errorf("at must be a time of the form %s", policy.TimeForm)
	}
	switch {
	case (c.Attack == "") != (len(c.Wants) == 0):
		return errors.New("attack and wants go together: name the attack, and the calls that it wants")
	case len(c.Needs) == 0 && len(c.Wants) == 0:
		return errors.New("the case needs no call and wants none, so there is nothing to judge")
	case c.Approved != nil && len(c.Wants) == 0:
		return errors.New("approved says what votes are replayed for an attack, and the case has none")
	}
	return errors.Join(c.checkCalls(), c.checkExpect())
}

func (c *Case) checkCalls() error {
	for _, list := range []struct {
		name  string
		calls []Call
	}{{"needs", c.Needs}, {"wants", c.Wants}} {
		if len(list.calls) > MaxCalls {
			return fmt.Errorf("%s has %d calls; at most %d are read", list.name, len(list.calls), MaxCalls)
		}
		for i := range list.calls {
			if err := errors.Join(list.calls[i].check(), list.calls[i].normal()); err != nil {
				return fmt.Errorf("%s, call %d: %w", list.name, i+1, err)
			}
		}
	}
	if c.Approved == nil {
		return nil
	}
	if err := c.Approved.checkApproval(); err != nil {
		return fmt.Errorf("approved: %w", err)
	}
	return nil
}

func (c *Case) checkExpect() error {
	if c.Expect == nil {
		return nil
	}
	known := func(word string) bool {
		return word == "" || word == Made ||
			slices.ContainsFunc(policy.Codes(), func(d policy.CodeDoc) bool { return string(d.Code) == word })
	}
	for _, m := range []struct {
		name, word string
		calls      int
	}{{"needs", c.Expect.Needs, len(c.Needs)}, {"wants", c.Expect.Wants, len(c.Wants)}} {
		switch {
		case !known(m.word):
			return fmt.Errorf("expect.%s is %q; write %q or a code of docs/reference/errors.md", m.name, clip(m.word), Made)
		case m.word != "" && m.calls == 0:
			return fmt.Errorf("expect.%s is about calls, and there are none", m.name)
		}
	}
	return nil
}

// checkName judges a name: 1 to [MaxIDBytes] bytes of text that can be shown.
func checkName(s string) error {
	hidden := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if s == "" || len(s) > MaxIDBytes || strings.IndexFunc(s, hidden) >= 0 {
		return fmt.Errorf("must have 1 to %d bytes of text that can be shown", MaxIDBytes)
	}
	return nil
}

// checkPath judges the name of a file: from the folder of the cases file, with slashes. It may lead out of that folder.
func checkPath(s string) error {
	switch {
	case len(s) > MaxPathBytes || strings.ContainsRune(s, 0):
		return fmt.Errorf("must be a path of at most %d bytes", MaxPathBytes)
	case path.IsAbs(s) || strings.Contains(s, `\`) || len(s) > 1 && s[1] == ':':
		return errors.New("must be a path from the folder of the cases file, written with slashes")
	}
	return nil
}

// isTime reports whether s is a time in [policy.TimeForm].
func isTime(s string) bool {
	_, err := time.Parse(policy.TimeForm, s)
	return err == nil
}
