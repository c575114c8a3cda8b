// Package llm proposes plans for requests, and summaries of typed results. It decides nothing: a
// proposal may come from an operator's routes or from a model under an attacker's control. The plan
// gate (INV-1) reads a [Planner]'s output strictly, and the evidence gate (INV-5) a [Summarizer]'s.
//
// # Planners
//
// [Router] plans by the operator's routes, and [Model] asks a language model. A Router can have a
// Model for the requests that no route matches.
//
// A plan is one JSON object of one of two shapes:
//
//	{"type":"call_tool","server":"…","tool":"…","args":{…}}
//	{"type":"final_answer","answer":"…","needs_more_info":true}
//
// # Routes
//
// Routes are tried in the operator's order against the request as it was written; the pattern
// decides about case. The first that matches is taken. In a string value of the route's args, at
// any depth, ${1} and ${name} stand for the pattern's groups, ${0} for the whole match, and $${ for
// the two characters ${. A group's text is put into the parsed value, never into JSON text:
// whatever a request holds, it stays inside its string. A dollar sign elsewhere is itself.
//
// A route whose args use a group that took no part in the match, or matched nothing, does not
// match: the operator asked for a value there, and the next route is tried rather than an empty one
// sent. Only the first place where the pattern matches is looked at. A request that is not UTF-8
// matches no route.
//
// The router does not look at the allowlist before it routes. A plan for a tool that may not be
// called is refused by the gate whose work that is, with its code; an answer such as "no route"
// would hide the reason.
//
// # The extractive summarizer
//
// [Extractive] quotes sentences of the typed payload, word for word, each with itself as evidence.
// See there for the choice, and [splitSentences] in the source for the end of a sentence.
//
// # Models
//
// [Model] asks one OpenAI-compatible endpoint, by POST to BASE/chat/completions, for a plan or a
// summary. It is treated as an attacker: this package returns its output unchanged, and the gates
// judge it.
//
// One completion is one request, or two: an endpoint that answers 400 or 422 is asked once more
// without response_format, which not every endpoint knows. No other request is repeated, no
// redirect is followed, and no Retry-After obeyed. The transport takes at most [MaxCompletionBytes]
// of an answer and never decompresses it, and this package reads it strictly. No environment
// variable changes the request or its target, except that https to other machines obeys HTTPS_PROXY
// and NO_PROXY, as in package mcp: the proxy sees ciphertext. The API key goes to the configured
// origin and nowhere else, over plain http only to this machine, which is checked on the connection
// too, and never into an error. An endpoint that echoes it can put it into [Exchange]: the recorder
// masks it there.
//
// An error is the context's own ([context.Canceled], [context.DeadlineExceeded]), [ErrTimeout] when
// the model's time ran out, [ErrPrompt] when nothing was sent, or else an [*EndpointError].
// [Completion] holds the exchanges so far even then, because they are recorded.
//
// The prompts, known by [PromptVersion], hold the request, and of the world only the effective
// allowlist or the typed result. Texts of servers are between two fixed lines, as one line of JSON
// each, with invisible characters and <, > and & as escapes: a text can end neither its line nor
// its block. The prompt asks the model to take none of it for an instruction. That is not
// guaranteed, and no gate relies on it.
package llm

import "context"

// A Tool is one entry of the effective allowlist: what is discovered and allowed, by its native
// names. All but Server comes from the server and is not trusted. InputSchema is one strict JSON
// object.
type Tool struct {
	Server, Name, Title, Description string

	InputSchema []byte
}

// A Completion is a proposal, with its exchanges.
type Completion struct {
	Content   []byte     // the proposal, as it was written; empty when there is none
	Refusal   string     // the model's text instead of a proposal, not trusted
	Exchanges []Exchange // the exchanges in order; none when nothing was sent
}

// An Exchange is one HTTP request with its response.
type Exchange struct {
	Sent     []byte // the request's body; whether it arrived is not known if Status is 0
	Received []byte // the response's body, as far as it was read; empty if it was too long
	Status   int    // the status of the response, 0 if none came
}

// A Planner proposes what to do about a request, given the effective allowlist and nothing else of
// the world. An error means that no proposal came, and the completion then holds the exchanges so
// far; a bad proposal is no error here but the plan gate's to refuse.
type Planner interface {
	Plan(ctx context.Context, request string, allowed []Tool) (Completion, error)
}

// A Summarizer proposes a summary {"items":[{"claim","evidence"}…]} of a typed payload. An error
// means that none came, and the completion then holds the exchanges so far; the evidence gate
// judges the summary.
type Summarizer interface {
	Summarize(ctx context.Context, request string, typed []byte) (Completion, error)
}
