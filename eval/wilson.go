package eval

import (
	"fmt"
	"math"
)

// A Share counts successes among trials, with the Wilson score interval of 95 %. The numbers are
// rounded to six places, so that they are the same bytes on every machine.
type Share struct {
	K    int     `json:"k"`
	N    int     `json:"n"`
	Rate float64 `json:"rate"` // K/N; 0 where N is 0
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// NewShare returns the share k of n.
func NewShare(k, n int) Share {
	s := Share{K: k, N: n}
	s.Low, s.High = Wilson(k, n)
	if n > 0 {
		s.Rate = float64(k) / float64(n)
	}
	s.Rate, s.Low, s.High = roundShare(s.Rate), roundShare(s.Low), roundShare(s.High)
	return s
}

// Count writes the share as K/N.
func (s Share) Count() string { return fmt.Sprintf("%d/%d", s.K, s.N) }

// Percent writes the rate and the interval in percent; without trials there are none.
func (s Share) Percent() (rate, interval string) {
	if s.N == 0 {
		return "-", "-"
	}
	return fmt.Sprintf("%.1f", s.Rate*100), Interval{s.Low, s.High}.Percent()
}

// Percent writes the interval in percent; the zero value is none.
func (i Interval) Percent() string {
	if i == (Interval{}) {
		return "-"
	}
	return fmt.Sprintf("[%.1f, %.1f]", i.Low*100, i.High*100)
}

// z is the 97.5th percentile of the standard normal distribution: 95 % lie within ±z.
const z = 1.959963984540054

// Wilson returns the score interval of 95 % for k successes in n trials (E. B. Wilson, "Probable
// Inference, the Law of Succession, and Statistical Inference", Journal of the American Statistical
// Association 22, 1927, pages 209 to 212). It stays within 0 and 1, and is of use near both, where
// the attack success of a gate is. Without trials nothing is known: 0 to 1.
func Wilson(k, n int) (low, high float64) {
	if n <= 0 || k < 0 || k > n {
		return 0, 1
	}
	p, m := float64(k)/float64(n), float64(n)
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	low, high = max(0, middle-half), min(1, middle+half)
	if k == 0 { // the formula differs from 0 and 1 here only by rounding
		low = 0
	}
	if k == n {
		high = 1
	}
	return low, high
}

// roundShare keeps six places.
func roundShare(x float64) float64 { return math.Round(x*1e6) / 1e6 }
