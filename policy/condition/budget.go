package condition

import (
	"errors"

	"cel.dev/cel-go/common/cost"
)

// Budgets of one decision, in units of CEL's cost model. Risk rules and policies share one;
// policies in shadow have a separate one, so that they cannot use up the other. A unit takes at
// most about 100 nanoseconds, and for most conditions 20; it allocates at most about 50 bytes.
const (
	MaxDecision = 10_000_000
	MaxTrial    = MaxDecision / 4
)

// ErrSpent means that the budget of a decision is spent: no more conditions are evaluated for it.
var ErrSpent = errors.New("the budget of the decision for conditions is spent")

// A budget is the number of units of one decision. Its tracker adds up the costs of all
// evaluations.
type budget struct {
	limit   uint64
	tracker *cost.Tracker // nil until something is evaluated
}

// WithBudget sets the two budgets of s, in units, for the decision and for policies in shadow, and
// returns s. They are at most [MaxDecision] and [MaxTrial], which a new Subject has. It is for a
// further decision about the same call, and for tests.
func (s *Subject) WithBudget(decision, trial int64) *Subject {
	s.deciding = budget{limit: uint64(max(0, min(decision, MaxDecision)))}
	s.trial = budget{limit: uint64(max(0, min(trial, MaxTrial)))}
	return s
}

// OnTrial chooses the budget that is charged from now on: that of shadow policies, or (initially)
// that of the decision.
func (s *Subject) OnTrial(yes bool) { s.onTrial = yes }

// chargedBudget returns the charged budget.
func (s *Subject) chargedBudget() *budget {
	if s.onTrial {
		return &s.trial
	}
	return &s.deciding
}

// Spent reports whether the charged budget is spent.
func (s *Subject) Spent() bool { return s.chargedBudget().isSpent() }

func (b *budget) isSpent() bool { return b.usedUnits() > b.limit }

func (b *budget) usedUnits() uint64 {
	if b.tracker == nil {
		return 0
	}
	return b.tracker.ActualCost()
}

// trackerFrom returns the tracker for the next evaluation. It is copied from the one of an
// environment, and stops an evaluation at the limit of b.
func (b *budget) trackerFrom(of *cost.Tracker) *cost.Tracker {
	if b.tracker == nil {
		tracker := *of
		b.tracker = &tracker
		b.tracker.Limit = &b.limit
	}
	return b.tracker
}
