// Package llm proposes: it turns a request into a plan, and a typed result into a summary. It decides nothing. Whatever
// stands behind these interfaces, an operator's routes or a model under an attacker's control, its output is bytes that
// the gates read strictly: the plan gate (INV-1) what [Planner] says, the evidence gate (INV-5) what [Summarizer] says.
//
// # Planners
//
// [Router] knows only the operator's routes, [Scripted] only what it was told to say. Both are functions of their
// input, need no network and never fail; [PlanFunc] makes them a [Planner].
//
// A plan is one JSON object of one of two shapes:
//
//	{"type":"call_tool","server":"…","tool":"…","args":{…}}
//	{"type":"final_answer","answer":"…","needs_more_info":true}
//
// # Routes
//
// Routes are tried in the operator's order against the request as it was written; the pattern decides about case. The
// first that matches is taken. In a string value of the route's args, at any depth, ${1} and ${name} stand for the
// pattern's groups, ${0} for the whole match, and $${ for the two characters ${. A group's text is put into the parsed
// value, never into JSON text: whatever a request holds, it stays inside its string. A dollar sign elsewhere is itself.
//
// A route whose args use a group that took no part in the match, or matched nothing, does not match: the operator asked
// for a value there, and the next route is tried rather than an empty one sent. Only the first place where the pattern
// matches is looked at. A request that is not UTF-8 matches no route.
//
// The router does not look at the allowlist before it routes. A plan for a tool that may not be called is refused by
// the gate whose work that is, with its code; an answer such as "no route" would hide the reason.
//
// # The extractive summarizer
//
// [Extractive] says sentences of the typed payload, word for word, each its own evidence. See there for the choice, and
// [sentences] in the source for where a sentence ends.
//
// # Models
//
// A model fits the same two interfaces. It gets a context because it waits, may fail, and reports in [Completion] the
// exact bytes that went and came, because both are recorded.
package llm

import (
	"bytes"
	"context"
)

// A Tool is one entry of the effective allowlist: what is discovered and allowed, by its native names.
type Tool struct{ Server, Name string }

// A Completion is the exact exchange with whatever made the proposal. Sent is empty when nothing was sent anywhere.
type Completion struct{ Sent, Received []byte }

// A Planner proposes what to do about a request, given the effective allowlist and nothing else of the world. An error
// means that no proposal came; a bad proposal is no error here but the plan gate's to refuse.
type Planner interface {
	Plan(ctx context.Context, request string, allowed []Tool) (Completion, error)
}

// A Summarizer proposes a summary {"items":[{"claim","evidence"}…]} of a typed payload. An error means that none came;
// what it says is the evidence gate's to judge.
type Summarizer interface {
	Summarize(ctx context.Context, request string, typed []byte) (Completion, error)
}

// PlanFunc makes a planner of a function that needs no world. The nil PlanFunc says nothing, which the plan gate
// refuses as empty. The only error is that of a context already done.
type PlanFunc func(request string, allowed []Tool) []byte

// Plan calls f.
func (f PlanFunc) Plan(ctx context.Context, request string, allowed []Tool) (Completion, error) {
	if err := ctx.Err(); err != nil || f == nil {
		return Completion{}, err
	}
	return Completion{Received: f(request, allowed)}, nil
}

// SummarizeFunc makes a summarizer of a function that needs no world. The nil SummarizeFunc says nothing, which the
// evidence gate refuses. The only error is that of a context already done.
type SummarizeFunc func(request string, typed []byte) []byte

// Summarize calls f.
func (f SummarizeFunc) Summarize(ctx context.Context, request string, typed []byte) (Completion, error) {
	if err := ctx.Err(); err != nil || f == nil {
		return Completion{}, err
	}
	return Completion{Received: f(request, typed)}, nil
}

// Scripted is a planner, for tests and evaluations, that says what it was told to say for each request, well-formed or
// not. For any other request it says nothing, which the plan gate refuses as empty.
type Scripted map[string][]byte

// Plan returns the bytes for the request, or nil. The caller owns them.
func (s Scripted) Plan(request string, _ []Tool) []byte { return bytes.Clone(s[request]) }
