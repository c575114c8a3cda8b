package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// A span is the median of some figures, and the least and the largest of them.
type span struct{ median, least, most float64 }

// spanOf wants at least one figure.
func spanOf(figures []float64) span {
	sorted := slices.Sorted(slices.Values(figures))
	n := len(sorted)
	return span{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// quantile is the nearest-rank quantile of what is sorted: the least that a share q of all does not exceed. It is 0 of nothing.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Figures of one variant in one block, beside the block's first variant. Ratios and shares are taken within each round.
type figures struct {
	calls         int
	rate          float64         // calls a second, median of the rounds
	p50, p99, top time.Duration   // of all calls of all rounds; top is the 99.9th
	ratio, share  span            // p50 over that of the first variant; calls a second as a part of its
	cpu, own      time.Duration   // of the process and of the callers, for each call
	database      time.Duration   // the same of the database
	rounds        []time.Duration // p50 of each round
	rates         []float64       // calls a second of each round
}

func (s series) figures() []figures {
	all := make([]figures, len(s))
	for i, turns := range s {
		var took []time.Duration
		var f figures
		for _, t := range turns {
			slices.Sort(t.took)
			f.rounds = append(f.rounds, quantile(t.took, 0.5))
			took, f.rates = append(took, t.took...), append(f.rates, t.rate())
			f.cpu, f.own, f.database = f.cpu+t.cpu, f.own+t.own, f.database+t.database
		}
		slices.Sort(took)
		f.calls, f.rate, f.p50, f.p99, f.top = len(took), spanOf(f.rates).median, quantile(took, 0.5), quantile(took, 0.99), quantile(took, 0.999)
		n := time.Duration(max(f.calls, 1))
		f.cpu, f.own, f.database = f.cpu/n, f.own/n, f.database/n
		all[i] = f
		all[i].ratio, all[i].share = ratio(f, all[0]), share(f, all[0])
	}
	return all
}

// ratio compares the p50 of two variants, round by round.
func ratio(a, b figures) span {
	var ratios []float64
	for round := range a.rounds {
		ratios = append(ratios, float64(a.rounds[round])/float64(b.rounds[round]))
	}
	return spanOf(ratios)
}

// share compares the calls a second of two variants, round by round.
func share(a, b figures) span {
	var shares []float64
	for round := range a.rates {
		shares = append(shares, a.rates[round]/b.rates[round])
	}
	return spanOf(shares)
}

// What a bar is about.
const (
	ratioBar = "ratio" // p50, at most
	shareBar = "share" // calls a second, at least
)

// A bar is what a variant is held to beside another variant, in a block with this many callers.
type bar struct {
	callers int
	what    string
	limit   float64
	than    string
}

// says compares. It decides nothing: figures of one run on a machine that others use are no reason to fail.
func (b bar) says(all []figures, i int, names []string) string {
	at := slices.Index(names, b.than)
	if at < 0 {
		return b.than + " was not measured"
	}
	f, than := all[i], all[at]
	p50 := ratio(f, than).median
	var text string
	var met bool
	switch b.what {
	case ratioBar:
		text, met = fmt.Sprintf("p50 %.2f of %q, bar ≤ %.1f", p50, b.than, b.limit), p50 <= b.limit
	case shareBar:
		got := share(f, than).median
		text, met = fmt.Sprintf("calls/s %.0f %% of %q, bar ≥ %.0f %%", 100*got, b.than, 100*b.limit), got >= b.limit
	}
	if !met {
		return text + " MISSED"
	}
	return text + " met"
}

// print writes the table of a block.
func (b *block) print(w io.Writer, s series) {
	fmt.Fprintf(w, "\n%s, %s of %v\n", b.heading(), count(len(s[0]), "round"), b.turn)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "calls/s\tshare\tleast–most\tp50 ms\tratio\tleast–most\tp99 ms\tp99.9 ms\tCPU µs\tRSS MB\town µs\t  \t")
	all, names := s.figures(), b.names()
	for i, f := range all {
		v := b.variants[i]
		fmt.Fprintf(table, "%.0f\t%.0f %%\t%.0f–%.0f\t%s\t%.2f\t%.2f–%.2f\t%s\t%s\t%d\t%.0f\t%d\t  %s\n",
			f.rate, 100*f.share.median, 100*f.share.least, 100*f.share.most, millis(f.p50), f.ratio.median, f.ratio.least, f.ratio.most,
			millis(f.p99), millis(f.top), f.cpu.Microseconds(), float64(v.place.process.usage().resident)/1e6, f.own.Microseconds(), v.name)
	}
	table.Flush()
	for i, v := range b.variants {
		for _, bar := range v.bars {
			if bar.callers == b.callers {
				fmt.Fprintf(w, "  %s: %s\n", v.name, bar.says(all, i, names))
			}
		}
	}
}

func (b *block) names() (names []string) {
	for _, v := range b.variants {
		names = append(names, v.name)
	}
	return names
}

func millis(d time.Duration) string { return fmt.Sprintf("%.3f", float64(d)/float64(time.Millisecond)) }

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	if stem, ok := strings.CutSuffix(of, "y"); ok {
		of = stem + "ie"
	}
	return fmt.Sprintf("%d %ss", n, of)
}
