package states_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/canonical"
	"pgfsm/states"
	"pgfsm/states/statestest"
)

// TestTraceContextCheck: only what pgfsm draws is a trace context.
func TestTraceContextCheck(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for _, tc := range []struct {
		name string
		c    *states.TraceContext
		good bool
	}{
		{"none", nil, true},
		{"whole", statestest.Traced("1"), true},
		{"of-an-approved-call", &states.TraceContext{Parent: good}, true},
		{"not-exported", &states.TraceContext{Parent: good[:53] + "00"}, true},
		{"longest-state", &states.TraceContext{Parent: good, State: strings.Repeat("a", 512)}, true},
		{"state-one-past", &states.TraceContext{Parent: good, State: strings.Repeat("a", 513)}, false},
		{"state-with-line-end", &states.TraceContext{Parent: good, State: "a=1\n"}, false},
		{"empty", &states.TraceContext{}, false},
		{"other-version", &states.TraceContext{Parent: "01" + good[2:]}, false},
		{"other-flags", &states.TraceContext{Parent: good[:53] + "03"}, false},
		{"upper-case", &states.TraceContext{Parent: strings.ToUpper(good)}, false},
		{"zero-trace", &states.TraceContext{Parent: "00-" + strings.Repeat("0", 32) + good[35:]}, false},
		{"zero-call", &states.TraceContext{Parent: good[:36] + strings.Repeat("0", 16) + "-01"}, false},
		{"trailing-text", &states.TraceContext{Parent: good + "-"}, false},
		{"zero-span", &states.TraceContext{Parent: good, Span: strings.Repeat("0", 16)}, false},
		{"long-span", &states.TraceContext{Parent: good, Span: strings.Repeat("1", 17)}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.c.Check(); (err == nil) != tc.good {
				t.Errorf("Check() = %v", err)
			}
			_ = tc.c.TraceID() // must not panic
		})
	}
}

// TestTheCallCarriesItsOwnTraceContext: the permit and the command have the context of the request, or of the approval if there was one. The binding that
// people approve does not change with it.
func TestTheCallCarriesItsOwnTraceContext(t *testing.T) {
	want := map[string]*states.TraceContext{
		"agent-traced": statestest.Traced("1"), "agent-traced-and-approved": statestest.Traced("2"), "agent-traced-and-approved-without-a-trace": nil,
		"agent-held-and-approved": nil,
	}
	permits, bindings := map[canonical.Digest]bool{}, map[canonical.Digest]bool{}
	n := 0
	for _, s := range statestest.Scenarios() {
		wanted, ok := want[s.Name]
		if !ok {
			continue
		}
		n++
		run := s.Run()
		if _, err := statestest.MustMachine(t).Advance(context.Background(), run, s.Entry(), &statestest.Memory{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, s.World.Calls[0].Trace); diff != "" {
			t.Errorf("%s: the call carries another context: %s", s.Name, diff)
		}
		if permits[run.Facts().Permitted.Permit] = true; run.Facts().Held != nil {
			bindings[run.Facts().Held.Binding] = true
		}
	}
	if n != len(want) || len(permits) != len(want)-1 || len(bindings) != 1 {
		t.Errorf("%d scenarios have %d permits and %d bindings", n, len(permits), len(bindings))
	}
}

// TestAnInvalidTraceContextCostsNoApproval: it is dropped.
func TestAnInvalidTraceContextCostsNoApproval(t *testing.T) {
	for _, s := range statestest.Scenarios() {
		if s.Name != "agent-traced-and-approved" {
			continue
		}
		s.World.Decided.(*states.Decided).Trace = &states.TraceContext{Parent: "01-"}
		if _, err := statestest.MustMachine(t).Advance(context.Background(), s.Run(), s.Entry(), &statestest.Memory{}); err != nil {
			t.Fatal(err)
		}
		if len(s.World.Calls) != 1 || s.World.Calls[0].Trace != nil {
			t.Errorf("calls %+v", s.World.Calls)
		}
	}
}
