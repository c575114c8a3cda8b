package screen

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// A seen is one view that was looked at.
type seen struct {
	Text   string
	Mapped bool
}

func viewsOf(t string) (all []seen) {
	views(t, Fold(t), func(view string, mapped bool) { all = append(all, seen{view, mapped}) })
	return all
}

// longViewsOf is viewsOf the long way: each view is made byte by byte, whatever the text is, and from whole strings.
func longViewsOf(t string) []seen {
	folded := Fold(t)
	plain := plainLetters(folded)
	joined, shape := longJoin(plain), shapeOf(plain)
	all := []seen{{folded, false}, {longLetters(plain), true}}
	add := func(yes bool, view func() string) {
		if yes {
			all = append(all, seen{longLetters(view()), true})
		}
	}
	add(joined != plain, func() string { return joined })
	wide := spaced(t)
	add(wide != "", func() string { return longJoin(plainLetters(wide)) })
	add(shape.gaps, func() string { return longApart(plain) })
	add(shape.signs, func() string { return longJoin(split(plain)) })
	add(shape.runs, func() string { return longShorten(joined, 1) })
	add(shape.runs, func() string { return longShorten(joined, 2) })
	add(shape.pairs, func() string { return longJoin(gather(plain)) })
	gaps := unseen(t)
	add(gaps != "", func() string { return longApart(plainLetters(Fold(gaps))) })
	if isASCII(t) {
		return all
	}
	add(strings.Contains(t, "\u2800"), func() string { return longJoin(plainLetters(Fold(strings.ReplaceAll(t, "\u2800", "")))) })
	capitals := longJoin(plainLetters(Fold(mapCapitals(t))))
	add(longLetters(capitals) != joined, func() string { return capitals })
	if h := hidden(t); h != "" {
		all = append(all, longViewsOf(h)...)
	}
	return all
}

func longLetters(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if kind[s[i]]&wordByte == 0 {
			b.WriteByte(s[i])
			i++
			continue
		}
		end, all := i, uint8(0)
		for ; end < len(s) && kind[s[end]]&wordByte != 0; end++ {
			all |= kind[s[end]]
		}
		last := i + len(strings.TrimRight(s[i:end], "!+"))
		for ; all&letterByte != 0 && i < last; i++ {
			b.WriteByte(leet[s[i]])
		}
		b.WriteString(s[i:end])
		i = end
	}
	return strings.ReplaceAll(strings.ReplaceAll(b.String(), "rn", "m"), "vv", "w")
}

func longJoin(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if end := spelled(s, i); end > i {
			b.WriteString(strings.Map(func(r rune) rune {
				if r < utf8.RuneSelf && kind[r]&wordByte == 0 {
					return -1
				}
				return r
			}, s[i:end]))
			i = end
			continue
		}
		if kind[s[i]]&splitByte != 0 && i > 0 && kind[s[i-1]]&wordByte != 0 {
			end := i
			for end < len(s) && end-i < maxSplit && kind[s[end]]&splitByte != 0 {
				end++
			}
			if end < len(s) && kind[s[end]]&wordByte != 0 {
				i = end
				continue
			}
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

func longApart(s string) string {
	b := []byte(s)
	for i := 1; i < len(b); i++ {
		end := i
		for shapes[b[i-1]]&solid != 0 && end < len(b) && shapes[b[end]]&gap != 0 {
			end++
		}
		if end > i && end < len(b) && shapes[b[end]]&solid != 0 {
			copy(b[i:end], strings.Repeat(" ", end-i))
		}
	}
	if spread := string(b); !strings.Contains(spread, "  ") {
		return spread
	}
	return strings.Join(strings.FieldsFunc(string(b), func(r rune) bool { return r == ' ' }), " ")
}

func longShorten(s string, keep int) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		end := i
		for end < len(s) && s[end] == s[i] {
			end++
		}
		n := end - i
		if n >= minRun && 'a' <= s[i] && s[i] <= 'z' {
			n = keep
		}
		b.WriteString(s[i : i+n])
		i = end
	}
	return b.String()
}

// longMatch is match the long way: every program is asked whether it wakes.
func longMatch(r *reading, view string, limit int, w *work) int {
	var found set
	_ = r.scan(view, &found)
	for i := range r.programs {
		p := &r.programs[i]
		if int(p.rule) >= limit || w.spent() {
			break
		}
		if p.wakes(&found) && p.compiled().counts(view, w) {
			return int(p.rule)
		}
	}
	return limit
}

// texts are the corpus, in every disguise, and texts put together at random from what views are made for.
func someTexts(tb testing.TB) []string {
	tb.Helper()
	var texts []string
	for _, line := range lines(tb, "base.txt", 100) {
		_, text, _ := strings.Cut(line, "\t")
		texts = append(texts, text)
		for _, d := range disguises {
			texts = append(texts, d.apply(text))
		}
	}
	for _, name := range []string{"blocked.txt", "benign.txt"} {
		texts = append(texts, lines(tb, name, 150)...)
	}
	for _, e := range evasions {
		texts = append(texts, e.text)
	}
	words := slices.Concat(strings.Fields("rn vv lll www make ransomware malware ransom ware steal password rnalvvare it is so a b c d 10 007 m4l r@n !gnore hack! a+ "+
		"é ü ß İ ﬁ рауlоаԁ 日本 ٣ १२ 😀 🅼 — \u0301 \u200b \u2800 \u3164 \u00ad \U000E0061\U000E0062 \U000E0135 \xff æ Η"),
		strings.Split("_ . , : ; / \\ | - -- ~ ( ) [ ] { } ' \" ! ? @ $ + = * & % # < > \x00 \x7f \t \n \r", " "), []string{" ", "  ", "   ", ""})
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		var b strings.Builder
		for range 1 + random.IntN(12) {
			b.WriteString(words[random.IntN(len(words))])
			if random.IntN(3) == 0 {
				b.WriteByte(byte(random.IntN(utf8.RuneSelf)))
			}
		}
		texts = append(texts, b.String())
	}
	return texts
}

// The quick ways that most texts take come to the views of the long way, and to the same verdict for the same work.
func TestViews_QuickAndLongWayAgree(t *testing.T) {
	s := defaultScreen(t)
	words, woken := 0, 0
	for i, text := range someTexts(t) {
		text = strings.ToValidUTF8(text, "\ufffd")
		got := viewsOf(text)
		if long := longViewsOf(text); !slices.Equal(long, got) {
			t.Fatalf("views of %q (-want +got):\n%s", text, cmp.Diff(long, got))
		}
		if isWord(text) {
			words++
		}
		if i%5 != 0 { // to match takes long: a sample, in which every disguise occurs
			continue
		}
		quick, long := &work{1 << 30}, &work{1 << 30}
		first, want := s.text(text, Fold(text), len(s.rules), quick), len(s.rules)
		for _, view := range got {
			r := &s.folded
			if view.Mapped {
				r = &s.mapped
			}
			want = longMatch(r, view.Text, want, long)
		}
		if first != want || quick.left != long.left {
			t.Fatalf("text(%q) = rule %d for %d steps, want %d for %d", text, first, 1<<30-quick.left, want, 1<<30-long.left)
		}
		if long.left != 1<<30 {
			woken++
		}
	}
	if words < 100 || woken < 500 {
		t.Errorf("only %d texts are words, and %d wake a program", words, woken)
	}
}

func FuzzViews(f *testing.F) {
	for _, name := range []string{"blocked.txt", "benign.txt"} {
		for _, line := range lines(f, name, 150) {
			f.Add(line)
		}
	}
	f.Add("wwwrn")
	f.Fuzz(func(t *testing.T, text string) {
		if diff := cmp.Diff(longViewsOf(text), viewsOf(text)); diff != "" {
			t.Errorf("views of %q (-want +got):\n%s", text, diff)
		}
	})
}
