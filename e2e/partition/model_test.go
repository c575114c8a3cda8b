//go:build linux

package partition_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"pgfsm/traces/ledger"
)

// The approval of one run as clients see it: people vote while it is pending, the vote that decides ends that, and an approved call is made once.

// A standing is the state of the model.
type standing struct {
	status ledger.Status // empty: not held yet
	agreed int
	voters string // names, each with a comma
}

// Statuses of the model that the ledger has as others.
const (
	made  ledger.Status = "made"  // the call was made
	ended ledger.Status = "ended" // without a decision
)

// The operations.
type (
	holding struct{}
	casting struct {
		by      string
		approve bool
		quorum  int
	}
	calling struct{} // the call arrived at the server
	ending  struct{} // the run ended without a call, for another reason than a vote
)

// unknown is the outcome of an operation that may have happened, or may yet happen, or not.
const unknown = ""

var approvals = porcupine.NondeterministicModel{
	Partition: func(all []porcupine.Operation) (parts [][]porcupine.Operation) {
		at := make(map[any]int)
		for _, o := range all {
			i, known := at[o.Metadata]
			if !known {
				i = len(parts)
				at[o.Metadata], parts = i, append(parts, nil)
			}
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() []any { return []any{standing{}} },
	Step: func(state, input, output any) (next []any) {
		s, out := state.(standing), output.(string)
		if out == unknown {
			next = append(next, s) // it did not happen
		}
		if after, result, ok := s.after(input); ok && (out == unknown || agree(out, result)) {
			next = append(next, after)
		}
		return next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%T%+v: %q", input, input, output) },
}

// after is the state after an operation, and what a client is told of it. It is not ok if the operation cannot happen.
func (s standing) after(input any) (next standing, result string, ok bool) {
	switch in := input.(type) {
	case holding:
		return standing{status: ledger.Pending}, "held", s.status == ""
	case calling:
		next, ok := s, s.status == ledger.Approved
		next.status = made
		return next, "called", ok
	case ending:
		next, ok := s, s.status == ledger.Pending || s.status == ledger.Approved
		next.status = ended
		return next, "ended", ok
	case casting:
		return s.vote(in)
	}
	panic("no such operation")
}

func (s standing) vote(in casting) (next standing, result string, ok bool) {
	switch {
	case s.status == "":
		return s, "request_unknown", true
	case s.status == ended:
		return s, "ended", true
	case s.status != ledger.Pending:
		return s, "request_decided", true
	case strings.Contains(s.voters, in.by+","):
		return s, "already_voted", true
	}
	s.voters += in.by + ","
	switch {
	case !in.approve:
		s.status = ledger.Denied
	default:
		if s.agreed++; s.agreed == in.quorum {
			s.status = ledger.Approved
		}
	}
	return s, string(s.status), true
}

// agree reports whether a client was told what the model says. A run that ended without a decision is reported in one of several ways.
func agree(told, says string) bool {
	if says == "ended" {
		return slices.Contains([]string{"ended", "approval_expired", "request_not_held", "request_decided"}, told)
	}
	return told == says
}

// operations are what the model is asked about: each run that was held, by its id.
func (c *checker) operations() (all []porcupine.Operation) {
	client := make(map[string]int) // the numbers of people, for the picture of a fault
	add := func(run, who string, in any, call, back int64, out string) {
		if _, known := client[who]; !known {
			client[who] = len(client)
		}
		all = append(all, porcupine.Operation{ClientId: client[who], Input: in, Call: call, Output: out, Return: back, Metadata: run})
	}
	for _, run := range c.order {
		q := c.runs[run]
		if q.Binding == "" {
			continue
		}
		asked := c.asked[c.opOf[run]]
		if asked.run == run {
			add(run, asked.actor, holding{}, asked.asked, asked.held, "held")
		} else {
			add(run, asked.actor, holding{}, asked.asked, never, "held")
		}
		if q.Ended != "" && q.Sent == "" && !slices.ContainsFunc(c.votesOf[run], func(v recordedVote) bool { return !v.approve }) {
			add(run, "pgfsm", ending{}, asked.asked, never, unknown)
		}
		if at := c.arrivals[c.opOf[run]]; q.Sent != "" && len(at) == 1 && c.sentOf[c.opOf[run]] == 1 {
			add(run, "pgfsm", calling{}, asked.asked, at[0], "called")
		}
	}
	for _, v := range c.votes {
		q, known := c.runs[v.run]
		if !known || v.result == "token_refused" {
			continue // checked elsewhere
		}
		out := v.result
		if v.answered == never {
			out = unknown
		}
		add(v.run, v.by, casting{v.by, v.approve, q.Quorum}, v.asked, v.answered, out)
	}
	return all
}

// linear checks the approvals of all runs.
func (c *checker) linear(t *testing.T) {
	t.Helper()
	model := approvals.ToModel()
	var wrong int
	for _, part := range model.Partition(c.operations()) {
		switch porcupine.CheckOperationsTimeout(model, part, time.Minute) {
		case porcupine.Illegal:
			if wrong++; wrong <= 5 {
				var text strings.Builder
				slices.SortFunc(part, func(a, b porcupine.Operation) int { return int(a.Call/1e6 - b.Call/1e6) })
				for _, o := range part {
					fmt.Fprintf(&text, "\n  %8.3f–%8.3f s  %s", seconds(o.Call), seconds(o.Return), approvals.DescribeOperation(o.Input, o.Output))
				}
				c.fault("approvals", "no order of these operations explains what clients saw of run %s:%s", part[0].Metadata, &text)
			}
		case porcupine.Unknown:
			c.fault("approvals", "run %s has too many operations to judge: %d", part[0].Metadata, len(part))
		}
	}
}

// TestModel: the model accepts what approvals allow, and nothing else.
func TestModel(t *testing.T) {
	const run = "run"
	type list = []porcupine.Operation
	op := func(in any, call, back int64, out string) porcupine.Operation {
		return porcupine.Operation{Input: in, Call: call, Return: back, Output: out, Metadata: run}
	}
	held := op(holding{}, 1, 2, "held")
	vote := func(by string, approve bool, call, back int64, out string) porcupine.Operation {
		return op(casting{by, approve, 2}, call, back, out)
	}
	called := func(at int64) porcupine.Operation { return op(calling{}, 1, at, "called") }
	for _, c := range []struct {
		name string
		all  list
		want bool
	}{
		{"two-approve-and-it-is-made", list{held, vote("a", true, 3, 4, "pending"), vote("b", true, 5, 6, "approved"), called(7)}, true},
		{"made-with-one", list{held, vote("a", true, 3, 4, "pending"), called(7)}, false},
		{"made-with-one-and-one-unknown", list{held, vote("a", true, 3, 4, "pending"), vote("b", true, 5, never, unknown), called(7)}, true},
		{"made-before-the-second", list{held, vote("a", true, 3, 4, "pending"), called(5), vote("b", true, 6, 7, "approved")}, false},
		{"made-twice", list{held, vote("a", true, 3, 4, "pending"), vote("b", true, 5, 6, "approved"), called(7), called(8)}, false},
		{"made-after-a-denial", list{held, vote("a", false, 3, 4, "denied"), called(7)}, false},
		{"both-decide", list{held, vote("a", false, 3, 5, "denied"), vote("b", false, 4, 6, "denied")}, false},
		{"one-person-twice", list{held, vote("a", true, 3, 4, "pending"), vote("a", true, 5, 6, "approved")}, false},
		{"one-person-again", list{held, vote("a", true, 3, 4, "pending"), vote("a", true, 5, 6, "already_voted")}, true},
		{"a-vote-is-forgotten", list{held, vote("a", true, 3, 4, "pending"), vote("b", true, 5, 6, "pending")}, false},
		{"expired-for-one-open-for-another", list{held, op(ending{}, 1, never, unknown), vote("a", true, 3, 4, "approval_expired"),
			vote("b", true, 5, 6, "pending")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := porcupine.CheckOperations(approvals.ToModel(), c.all); got != c.want {
				t.Errorf("CheckOperations() = %v, want %v", got, c.want)
			}
		})
	}
}

func seconds(at int64) float64 {
	if at == never {
		return -1
	}
	return time.Duration(at).Seconds()
}
