package condition

import (
	"errors"
	"math"
)

// Budgets of one decision, in the units of [MaxCost]. Risk rules and policies have one together, and policies on trial
// have one of their own, so that they take nothing from what decides. What decides can pay any one expression for arguments
// of [MaxArgs] bytes, or sixteen for [AnyInput] bytes. A decision takes at most about three seconds: a unit is at most some
// 20 nanoseconds, for most conditions 5. A thousand policies with conditions that neither loop nor match patterns take less
// than 1 % of it, whatever the arguments are.
const (
	MaxDecision = MaxCost * (MaxArgs / AnyInput)
	MaxTrial    = MaxDecision / 4
)

// ErrSpent is why nothing more is evaluated for a decision: its budget is spent.
var ErrSpent = errors.New("the budget of the decision for conditions is spent")

// An account is who pays for what is evaluated.
const (
	deciding = iota
	onTrial
	accounts
)

// WithBudget sets what may be spent on s from now on, in units, by what decides and by what is on trial, and returns s.
// More than [MaxDecision] and [MaxTrial], which a new Subject has, counts as these. It is for a further decision about
// the same call, and for tests.
func (s *Subject) WithBudget(decision, trial int64) *Subject {
	s.left = [accounts]int64{min(decision, MaxDecision), min(trial, MaxTrial)}
	return s
}

// OnTrial says who pays from now on: what is on trial, or what decides, as in the beginning.
func (s *Subject) OnTrial(yes bool) {
	s.account = deciding
	if yes {
		s.account = onTrial
	}
}

// Charge takes units off the budget before they are spent, and reports whether they were there. If not, the budget is
// spent: whatever is asked for later is not there either, however little it is.
func (s *Subject) Charge(units int64) bool {
	left := &s.left[s.account]
	if units < 0 || units > *left {
		*left = -1
		return false
	}
	*left -= units
	return true
}

// Spent reports whether who pays has asked for more than there was.
func (s *Subject) Spent() bool { return s.left[s.account] < 0 }

// What a price depends on. The size of arguments is their bytes, which no value in them exceeds; the name is the longest
// of all names. Names stand first: where two sizes are multiplied, the first of them counts at its most (see
// [meter.product]). So the price of an expression grows in proportion with arguments beyond [AnyInput]; it would not if
// two of the others were multiplied, but no expression that does so is within [MaxCost].
const (
	sizeName = iota
	sizeArgs
	sizeRoles
	sizeRules
	sizeCount
)

type sizes [sizeCount]int64

// mostSizes is what the cost of an expression is reckoned with.
var mostSizes = [sizeCount]float64{sizeName: 1 + MaxName, sizeArgs: AnyInput, sizeRoles: AnyInput, sizeRules: AnyInput}

// sizesOf measures a call. A name that is too long to be used counts as one that is not.
func sizesOf(in *Input) (s sizes) {
	s[sizeName] = 1 + int64(min(max(len(in.Server), len(in.Tool), len(in.Env), len(in.Actor.ID)), MaxName))
	s[sizeArgs] = int64(len(in.Args))
	s[sizeRoles] = sizeOfList(in.Actor.Roles)
	return s
}

// weigh measures the risk of a call.
func (s *sizes) weigh(r *Risk) {
	s[sizeName] = max(s[sizeName], 1+int64(min(len(r.Mode), MaxName)))
	s[sizeRules] = sizeOfList(r.Rules)
}

func sizeOfList(list []string) int64 {
	size := int64(1)
	for _, text := range list {
		size += 1 + int64(len(text))
	}
	return size
}

// perShift: a price holds what 1,024 units of size cost, so that it is reckoned in integers, which are the same on every
// machine.
const perShift = 10

// A price is what an expression costs at most, for inputs of any size.
type price struct {
	fixed int64 // units
	per   sizes // units for 1<<perShift of each size
}

// priceOf rounds a bound up. Only the sizes of what is named are left in it: all loops are closed.
func priceOf(b bound) price {
	p := price{fixed: int64(math.Ceil(b[0]))}
	for i, factor := range b[1:] {
		p.per[i] = int64(math.Ceil(factor * (1 << perShift)))
	}
	return p
}

// of returns the price for one call.
func (p *price) of(s *sizes) int64 {
	sum := int64(1<<perShift - 1) // rounds up
	for i := range p.per {
		sum += p.per[i] * s[i]
	}
	return p.fixed + sum>>perShift
}
