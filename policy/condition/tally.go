package condition

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// A Tally answers a query from the calls that it is about.
type Tally struct {
	query Query
	calls int
	sum   big.Rat
}

// Tally returns a tally without a call.
func (q Query) Tally() *Tally { return &Tally{query: q} }

// Calls returns the number of calls that were added.
func (t *Tally) Calls() int { return t.calls }

// Add adds a call. Only a sum needs its arguments. After an error there is no answer.
func (t *Tally) Add(args jsontext.Value) error {
	t.calls++
	if t.query.Of != QuerySum {
		return nil
	}
	value := args
	for name := range strings.SplitSeq(t.query.Path, ".") {
		var next jsontext.Value
		for member, v := range canonical.Members(value) {
			if member == name {
				next = v
			}
		}
		if next == nil {
			return fmt.Errorf("its arguments have no %q", t.query.Path)
		}
		value = next
	}

	literal := string(value)
	if value.Kind() != '0' {
		return fmt.Errorf("its argument %q is no number", t.query.Path)
	}
	// Numbers outside the range of a double are rejected before they are written in full.
	mantissa, _, _ := strings.Cut(strings.ToLower(literal), "e")
	if f, err := strconv.ParseFloat(literal, 64); err != nil || math.IsInf(f, 0) ||
		f == 0 && strings.ContainsAny(mantissa, "123456789") {
		return fmt.Errorf("its argument %q is a number that double does not hold", t.query.Path)
	}
	n, ok := new(big.Rat).SetString(literal)
	if !ok {
		return fmt.Errorf("its argument %q is no number", t.query.Path)
	}
	t.sum.Add(&t.sum, n)
	return nil
}

// Answer returns the answer.
func (t *Tally) Answer() Answer {
	if t.query.Of != QuerySum {
		return t.query.Answer(strconv.Itoa(t.calls))
	}
	digits, _ := t.sum.FloatPrec() // the sum is exact, because each summand is a decimal
	return t.query.Answer(t.sum.FloatString(digits))
}
