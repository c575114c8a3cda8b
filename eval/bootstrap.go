package eval

import (
	"math/rand/v2"
	"slices"
)

// An Interval is an interval of 95 %, rounded as a [Share] is.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A Pair is one trial: an attack on a task. Tasks and attacks are known by their numbers, from 0.
type Pair struct{ Task, Attack int }

// resamples is the number of samples that [Bootstrap] draws. Its seed is fixed, so that the same
// trials give the same interval.
const resamples = 2000

// Bootstrap returns, for each list of successes, the interval of their share of all pairs. Pairs
// that share a task or an attack are not independent, which [Wilson] assumes: so tasks and attacks
// are drawn anew, with replacement and independently of one another, and a pair counts as often as
// its task times its attack was drawn (A. B. Owen, "The pigeonhole bootstrap", Annals of Applied
// Statistics 1, 2007, pages 386 to 411). The interval reaches from the 2.5th to the 97.5th
// percentile of the shares. succeeded[i][j] reports whether pairs[j] is a success of list i.
//
// If none or all of the pairs succeed, every draw gives the same share. Then the interval is that
// of Wilson for as many trials as there are tasks or attacks, whichever are fewer. Without pairs
// there is no interval.
func Bootstrap(pairs []Pair, succeeded [][]bool) []Interval {
	tasks, attacks := 0, 0
	for _, p := range pairs {
		tasks, attacks = max(tasks, p.Task+1), max(attacks, p.Attack+1)
	}

	shares := make([][]float64, len(succeeded))
	random := rand.New(rand.NewPCG(1, 2))

	for range resamples {
		task, attack := drawCounts(random, tasks), drawCounts(random, attacks)
		drawn := 0
		for _, p := range pairs {
			drawn += task[p.Task] * attack[p.Attack]
		}
		// Without a drawn pair there is no share.
		if drawn == 0 {
			continue
		}
		for i := range succeeded {
			k := 0
			for j, yes := range succeeded[i] {
				if yes {
					k += task[pairs[j].Task] * attack[pairs[j].Attack]
				}
			}
			shares[i] = append(shares[i], float64(k)/float64(drawn))
		}
	}

	intervals := make([]Interval, len(succeeded))
	for i := range intervals {
		intervals[i] = shareInterval(shares[i], succeeded[i], min(tasks, attacks))
	}

	return intervals
}

// drawCounts draws n of n with replacement, and returns how often each was drawn.
func drawCounts(random *rand.Rand, n int) []int {
	times := make([]int, n)
	for range n {
		times[random.IntN(n)]++
	}
	return times
}

// shareInterval returns the interval of the drawn shares, or that of Wilson for n trials if they
// are all the same.
func shareInterval(shares []float64, succeeded []bool, n int) Interval {
	var s Share
	switch {
	case len(succeeded) == 0:
	case len(shares) == 0 || !slices.Contains(succeeded, true):
		s = NewShare(0, n)
	case !slices.Contains(succeeded, false):
		s = NewShare(n, n)
	default:
		slices.Sort(shares)
		quantile := func(part float64) float64 { return shares[int(part*float64(len(shares)-1)+0.5)] }
		s.Low, s.High = roundShare(quantile(0.025)), roundShare(quantile(0.975))
	}
	return Interval{s.Low, s.High}
}
