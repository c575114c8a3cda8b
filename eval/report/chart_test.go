package report

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgfsm/eval"
)

func TestPercent(t *testing.T) {
	for _, tt := range []struct {
		name string
		rate float64
		want string
	}{
		{"nothing", 0, "0.0 %"},
		{"all", 1, "100.0 %"},
		{"half", 0.5, "50.0 %"},
		{"almost-nothing", 0.0004, "< 0.1 %"},
		{"little", 0.0006, "0.1 %"},
		{"almost-all", 0.9996, "> 99.9 %"},
		{"much", 0.9994, "99.9 %"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := percent(tt.rate); got != tt.want {
				t.Errorf("percent(%v) = %q, want %q", tt.rate, got, tt.want)
			}
		})
	}
}

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		name string
		k, n int
		want cell
	}{
		{"of-nothing", 0, 0, cell{Text: "none"}},
		{"none-of-some", 0, 10, cell{"0.0 % (0/10)", "0.0 to 27.8 %"}},
		{"all-of-some", 10, 10, cell{"100.0 % (10/10)", "72.2 to 100.0 %"}},
		{"one-of-very-many", 1, 100_000, cell{"< 0.1 % (1/100000)", "< 0.1 to < 0.1 %"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := share(eval.Of(tt.k, tt.n)); got != tt.want {
				t.Errorf("share() = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// TestSharesStayInTheirChart takes shares to their bounds: bars and whiskers lie within the plot, and lengths follow the figures.
func TestSharesStayInTheirChart(t *testing.T) {
	var shares []shareBar
	for _, k := range []int{0, 1, 5, 9, 10} {
		shares = append(shares, shareBar{"n" + strconv.Itoa(k), toneOurs, eval.Of(k, 10)})
	}
	c := newShares("title", append(shares, shareBar{Name: "of nothing"}))
	if len(c.Bars) != len(shares) || !strings.Contains(c.Desc, "n5: 50.0 % (5/10), 95 % interval 23.7 to 76.3 %") || !strings.Contains(c.Desc, "of nothing: none") {
		t.Fatalf("%d bars, description %q", len(c.Bars), c.Desc)
	}
	for i, b := range c.Bars {
		from, width := length(t, b.X), length(t, b.Width)
		low, high := length(t, b.Whisker[0].X1), length(t, b.Whisker[0].X2)
		if from != plotLeft || math.Abs(width-max(1, plotWidth*shares[i].Share.Rate)) > 0.051 {
			t.Errorf("%s: from %v, %v wide", b.Tip, from, width)
		}
		if low < plotLeft || high > plotLeft+plotWidth || low > high || length(t, b.Y)+length(t, b.Height) > float64(c.Height) {
			t.Errorf("%s: whisker %v to %v", b.Tip, low, high)
		}
	}
}

func length(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		t.Fatalf("%q is no length", s)
	}
	return v
}

func TestPlainMarkdown(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"words", "blocked by policy_denied, 12.5 % (1/8)", "blocked by policy_denied, 12.5 % (1/8)"},
		{"emphasis", "*a* _b_ __c__", "&#42;a&#42; &#95;b&#95; &#95;&#95;c&#95;&#95;"},
		{"cell", `a | b \| c`, "a &#124; b &#92;&#124; c"},
		{"markup", "<b>&amp;", "&#60;b>&#38;amp;"},
		{"link", "[x](y) https://example.org", "&#91;x&#93;(y) https&#58;//example.org"},
		{"code", "`x`", "&#96;x&#96;"},
		{"heading", "# a #", "&#35; a #"},
		{"list", "- a-b", "&#45; a-b"},
		{"lines", "a\nb\tc", "a b c"},
		{"nothing", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := plain(tt.text); got != tt.want {
				t.Errorf("plain(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}

func TestFence(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain", "a b", "\n```\na b\n```\n"},
		{"with-a-fence-in-it", "``` a ````", "\n`````\n``` a ````\n`````\n"},
		{"two-lines", "a\nb", "\n```\na\nb\n```\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if fence(&b, tt.text); b.String() != tt.want {
				t.Errorf("fence() = %q, want %q", b.String(), tt.want)
			}
		})
	}
}
