package front

import (
	"cmp"
	"context"
	"net/http"

	"pgfsm/internal/web"
	"pgfsm/mcp/gateway/session"
	"pgfsm/policy"
)

// A Delegator answers clients that make calls themselves, and ask first: hooks of coding agents, and policy
// enforcement points.
type Delegator interface {
	// Answer answers a POST with a body, or a GET. The path is one of those that [Delegator.Owns].
	Answer(ctx context.Context, from session.Identity, says *policy.Identity, path string, body []byte) Reply
	// Owns reports whether the delegator answers at a path, and whether without a token.
	Owns(method, path string) (owns, public bool)
}

// A Reply is a delegator's answer.
type Reply struct {
	Status int
	Type   string // media type of the body; empty: application/json
	Body   []byte // JSON
}

// headerRequestID is the name that a policy enforcement point gives its request (AuthZEN 1.0). The answer repeats it.
const headerRequestID = "X-Request-Id"

// serveDelegation answers at the paths of the delegator; owned is false for any other path. The client needs a token
// that [Settings.Askers] accepts, unless the answer is public.
func (x *exchange) serveDelegation(path string) (owned bool, refused *refusal) {
	d := x.front.hooks.Delegator
	if d == nil {
		return false, nil
	}
	owns, public := d.Owns(x.r.Method, path)
	if !owns {
		return false, nil
	}
	if ids := x.r.Header[headerRequestID]; len(ids) > 0 {
		x.w.Header()[headerRequestID] = ids[:1]
	}
	if !public {
		if x.from, x.identity, refused = x.authenticateAsker(); refused != nil {
			return true, refused
		}
		web.Authenticated(x.r.Context(), x.from.Name)
		if refused = x.front.checkRate(x.from, x.identity); refused != nil {
			return true, refused
		}
	}

	var body []byte
	if x.r.Method == http.MethodPost {
		if refused = checkContentType(x.r); refused != nil {
			refused.status = http.StatusBadRequest // as AuthZEN wants it
			return true, refused
		}
		if body, refused = x.readBody(); refused != nil {
			return true, refused
		}
	}
	if err := x.front.table.Requests.Enter(x.from); err != nil {
		return true, refusalOf(err)
	}
	defer x.front.table.Requests.Leave(x.from)
	// A hook that is gone must not lose the record of what it was told.
	reply := d.Answer(context.WithoutCancel(x.r.Context()), x.from, x.identity, path, body)
	x.writeBody(reply.Status, cmp.Or(reply.Type, mediaJSON), reply.Body)
	return true, nil
}

// authenticateAsker returns the client of a request about a call that the client makes itself. There is no
// anonymous one.
func (x *exchange) authenticateAsker() (session.Identity, *policy.Identity, *refusal) {
	asker := *x.settings
	asker.Clients, asker.Required = x.settings.Askers, true
	own := *x
	own.settings = &asker
	return own.authenticateBy(web.Authenticator.Authenticate, x.r)
}
