package api

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/present"
	"pgfsm/policy"
	"pgfsm/traces"
	"pgfsm/traces/ledger"
)

// A Service is what the API and the console show: a ledger, and what one process knows besides.
type Service struct {
	// Ledger contains the calls and counts the votes. Without a ledger, the API serves only the
	// health checks, and there is no console.
	Ledger *ledger.Ledger
	// Replayer executes the records of runs again. With a ledger it must not be nil.
	Replayer *traces.Replayer
	// Hosts are the accepted values of the Host header: name and port, as a browser writes them.
	// Without hosts every request is rejected. The console serves names of this machine without
	// TLS; a proxy serves the others with TLS.
	Hosts []string
	// Voted is called after each vote that counted. It must not block. It may be nil.
	Voted func(ledger.Ballot)
	// Checkpoints is the folder of signed checkpoints; empty: there is none.
	Checkpoints string
	// Result returns the result of a request's call, or nil and the reason why the caller may not
	// see it. If Result is nil, no result is shown.
	Result func(context.Context, ledger.Reader, *ledger.RunRow) (result jsontext.Value, note string, err error)
	// Bundle returns the bundle that judges the calls of this service. Nil: the service makes no
	// calls, and the bundle is the one that a gateway last activated.
	Bundle func() *policy.Bundle
	// Servers returns the servers as this service last saw them, and a note about missing
	// information. Nil: the service has no servers.
	Servers func() (all []present.Server, note string)
	// Log writes one line with details that callers must not learn. Lines that anybody can cause
	// are limited to one a second. It may be nil.
	Log func(line string)
}

// WithDefaults returns the service with functions that do nothing in place of missing ones.
func (s Service) WithDefaults() Service {
	if s.Voted == nil {
		s.Voted = func(ledger.Ballot) {}
	}
	if s.Log == nil {
		s.Log = func(string) {}
	}
	return s
}

// ActiveBundle returns the bundle of this service; nil: the service has none.
func (s *Service) ActiveBundle() *policy.Bundle {
	if s.Bundle == nil {
		return nil
	}
	return s.Bundle()
}

// AddResult adds the result of a run's call, or a note why it is not shown. It reports whether
// there is a result.
func (s *Service) AddResult(ctx context.Context, r ledger.Reader, run *ledger.RunRow, details *present.Details) bool {
	if s.Result == nil {
		return false
	}

	result, note, err := s.Result(ctx, r, run)
	if err != nil {
		s.Log("the result of run " + run.RunID + " cannot be shown: " + err.Error())
		note = "the result cannot be shown; the service's log says why"
	}
	details.ResultNote = note
	if result == nil {
		return false
	}

	details.Result = result
	return true
}

// RunFilter returns the filter of runs that query parameters choose.
func (s *Service) RunFilter(parameter func(name string) string) (ledger.Filter, error) {
	f := ledger.Filter{
		Who:    parameter("actor"),
		Task:   parameter("task"),
		Server: parameter("server"),
		Tool:   parameter("tool"),
		Policy: parameter("policy"),
		Code:   parameter("code"),
		Text:   parameter("text"),
	}
	var statuses []string
	if names := parameter("status"); names != "" {
		statuses = strings.Split(names, ",")
	}
	err := f.Choose(statuses, parameter("since"), parameter("until"), s.Ledger.Now())
	return f, err
}

// ParseEntryIndex reads the index before which a page of the log begins; 0 for an empty text.
func ParseEntryIndex(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, errors.New("before must be the index of an entry, as next says it")
	}
	return n, nil
}
