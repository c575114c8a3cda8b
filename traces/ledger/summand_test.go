package ledger

import (
	"math/big"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// The most digits of a number that is summed, and one more.
func TestSummandsAreBounded(t *testing.T) {
	for _, c := range []struct {
		name, literal string
		ok            bool
	}{
		{"longest", "0." + strings.Repeat("1", maxSummand-2), true},
		{"one-longer", "0." + strings.Repeat("1", maxSummand-1), false},
		{"largest", "1e308", true},
		{"too-large", "1e309", false},
		{"exponent-that-would-fill-the-memory", "1e999999999", false},
		{"smallest", "5e-324", true},
		{"too-small", "1e-999999999", false},
		{"zero-of-a-small-exponent", "0e-300", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			sum := new(big.Rat)
			if err := addTo(sum, jsontext.Value(`{"n":`+c.literal+`}`), "n"); (err == nil) != c.ok {
				t.Fatalf("addTo() = %v", err)
			}
			if want, _ := new(big.Rat).SetString(c.literal[:min(len(c.literal), maxSummand)]); c.ok && sum.Cmp(want) != 0 {
				t.Errorf("the sum is %s", sum)
			}
		})
	}
	sum := new(big.Rat)
	if err := addTo(sum, jsontext.Value(`{"n":0e-999999999}`), "n"); err != nil || sum.Sign() != 0 {
		t.Errorf("a zero with any exponent: %v, %s", err, sum)
	}
}
