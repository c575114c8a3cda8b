package explain

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// A Question asks about a call that nobody makes, in the form that a person writes.
type Question struct {
	Server, Tool, Actor string
	Identity            *policy.Identity // for an actor of an identity provider
	Env                 string           // empty: the configuration's
	Args                string           // a JSON object
	Task                string           // empty: none
	Agent               bool             // an agent asks, not an operator
	// Ask the servers for their tools, and the ledger for the earlier calls.
	Live        bool
	Pinned      *bool // nil: from the allowlist
	Annotations *policy.Annotations
	History     []string // each in the form QUERY=NUMBER
}

// A QuestionError reports a fault in a [Question].
type QuestionError struct{ Err error }

func (e *QuestionError) Error() string { return e.Err.Error() }
func (e *QuestionError) Unwrap() error { return e.Err }

// Sources provide the data for answers to questions.
type Sources struct {
	Bundle *policy.Bundle
	// Catalog returns the servers' current listings if live is true; otherwise the stored
	// definitions of pins, or nil without any.
	Catalog func(ctx context.Context, b *policy.Bundle, live bool) (*policy.Catalog, error)
	// History adds the facts about earlier calls that a run would read.
	History func(context.Context, *Explainer, *Call) error
	Now     string
}

// Answer explains the call that a question asks about. It makes no call and records nothing. The
// error is a [*QuestionError] if the question is at fault.
func Answer(ctx context.Context, s Sources, q Question) (*Explanation, error) {
	c, err := q.callOf()
	if err != nil {
		return nil, &QuestionError{err}
	}

	b := s.Bundle
	if q.Env != "" {
		content := *b.Content()
		content.Env = q.Env
		if b, err = policy.Compile(content); err != nil {
			return nil, &QuestionError{err}
		}
	}

	catalog, err := s.Catalog(ctx, b, q.Live)
	if err != nil {
		return nil, err
	}

	e := New(b, catalog, q.Live, s.Now)
	c.Facts = e.Facts(q.Server, q.Tool, q.Pinned, q.Annotations)
	if q.Live {
		if err := s.History(ctx, e, c); err != nil {
			return nil, err
		}
	}

	return e.Explain(c), nil
}

// callOf returns the call, without the facts about its tool.
func (q *Question) callOf() (c *Call, err error) {
	c = &Call{Server: q.Server, Tool: q.Tool, Actor: q.Actor, Identity: q.Identity, Agent: q.Agent}
	if c.History, err = parseHistory(q.History); err != nil {
		return nil, err
	}
	if c.Plan, err = Plan(q.Server, q.Tool, "args", q.Args); err != nil {
		return nil, err
	}
	if q.Task != "" {
		if err := policy.CheckTaskID(q.Task); err != nil {
			return nil, fmt.Errorf("task: %w", err)
		}
		c.Task = &policy.Task{ID: q.Task}
	}
	return c, nil
}

// Plan returns the plan of a call that a person writes. Errors call the arguments by the name in
// named. The arguments keep their bytes. Plan refuses arguments that are not exactly one JSON
// value, because they would change the plan around them; the gates judge the rest.
func Plan(server, tool, named, arguments string) ([]byte, error) {
	if !utf8.ValidString(server + " " + tool) {
		return nil, errors.New("SERVER and TOOL must be UTF-8")
	}
	if err := canonical.Check([]byte(arguments), 0); err != nil {
		return nil, fmt.Errorf("%s: %w; give one JSON object, such as '{\"doc_id\": \"doc-001\"}'", named, err)
	}
	return policy.CallPlan(server, tool, []byte(arguments)), nil
}
