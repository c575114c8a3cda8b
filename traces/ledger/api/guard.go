package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"pgfsm/internal/web"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// contentPolicy forbids browsers to render, execute or frame an answer.
const contentPolicy = "default-src 'none'; frame-ancestors 'none'"

// checkOrigin rejects repeated headers, and requests for another host or of another origin.
func (h *Handler) checkOrigin(r *http.Request) error {
	err := h.guard.Check(r)
	switch {
	case errors.As(err, new(web.RepeatedHeader)):
		return newProblem(HeaderRepeated, err.Error())
	case errors.Is(err, web.ErrHost):
		return newProblem(HostRefused, err.Error()+"; pgfsm approvals serve --host adds a name")
	case err != nil:
		return newProblem(OriginRefused, err.Error())
	}
	return nil
}

// errCredentials means that an authenticator knows the kind of credentials, and that they are not
// valid.
var errCredentials = errors.New("the credentials are not valid")

// authenticate verifies the credentials of a request and returns the caller.
func (h *Handler) authenticate(r *http.Request) (ledger.Caller, error) {
	c, err := h.Callers.Authenticate(r)
	switch {
	case errors.Is(err, web.ErrNoCredentials):
		return ledger.Caller{}, newProblem(TokenMissing,
			"no token came: send Authorization: Bearer and a token of pgfsm token create")
	case err != nil:
		if !errors.As(err, new(*ledger.Refusal)) && !errors.Is(err, web.ErrUnavailable) {
			err = fmt.Errorf("%w: %w", errCredentials, err)
		}
		return ledger.Caller{}, problemOf(r, err, func(line string) { h.failed.Do(func() { h.Log(line) }) })
	}
	web.Authenticated(r.Context(), c.Name)
	return CallerOf(c), nil
}

// CallerOf returns the ledger's caller for a caller that an authenticator has verified.
func CallerOf(c web.Caller) ledger.Caller {
	caller := ledger.Caller{TokenID: c.Token, Name: c.Name, Roles: c.Roles, Identity: c.Identity}
	if !c.Expires.IsZero() {
		caller.Expires = c.Expires.UTC().Format(policy.TimeForm)
	}
	return caller
}

// readQuery reads the query and rejects unknown and repeated parameters.
func readQuery(r *http.Request, known []string) (map[string]string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, newProblem(QueryInvalid, "the query cannot be read")
	}
	out := make(map[string]string)
	for name, sent := range values { // in any order: each is checked on its own, and any refusal will do
		switch {
		case !slices.Contains(known, name):
			return nil, newProblem(QueryInvalid, describeParameters(known))
		case len(sent) > 1:
			return nil, newProblem(QueryInvalid, "a parameter of the query came more than once")
		case sent[0] == "":
			return nil, newProblem(QueryInvalid, "a parameter of the query is empty")
		}
		out[name] = sent[0]
	}
	return out, nil
}

func describeParameters(known []string) string {
	if len(known) == 0 {
		return "this path takes no query"
	}
	return fmt.Sprintf("a parameter of the query is not known; known are %s", strings.Join(known, ", "))
}
