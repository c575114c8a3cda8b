package origin

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxTyped is how many bytes of a prompt a user can have typed: a longer prompt counts as pasted.
const MaxTyped = 4096

// maxFoldings bounds how often text is folded until nothing changes.
const maxFoldings = 8

// A passage is a part of a prompt that counts as request.
type passage struct {
	prompt *Prompt
	start  int    // byte of the prompt
	raw    string // as written
	text   string // folded

	amounts, dates [][]int // where their patterns match, once it was needed
}

// A foldedText knows where its characters stand in the text as written.
type foldedText struct {
	text     string
	from, to []int // by byte of text: where its character begins and ends
}

// fold returns s in the form in which values are compared: NFKC, without invisible characters, with one space for each
// run of white space and none at the ends.
func fold(s string) string {
	for range maxFoldings {
		if isFolded(s) {
			break
		}
		next := norm.NFKC.String(strings.Join(strings.FieldsFunc(strings.Map(visibleOrSpace, s), isSpace), " "))
		if next == s {
			break
		}
		s = next
	}
	return s
}

// visibleOrSpace drops invisible characters.
func visibleOrSpace(r rune) rune {
	if isInvisible(r) && !isSpace(r) {
		return -1
	}
	return r
}

func isBeyondASCII(r rune) bool { return r >= utf8.RuneSelf }

// isFolded reports whether s is ASCII in that form.
func isFolded(s string) bool {
	last := byte(' ')
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c >= 0x7f || c == ' ' && last == ' ' {
			return false
		}
		last = c
	}
	return s == "" || last != ' '
}

// foldText is fold that keeps places. It is slower, and needed only for evidence.
func foldText(s string) foldedText {
	f := foldedText{text: s, from: make([]int, len(s)), to: make([]int, len(s))}
	for i := range len(s) {
		f.from[i], f.to[i] = i, i+1
	}
	for range maxFoldings {
		next := f.squeeze().normalize()
		if next.text == f.text {
			break
		}
		f = next
	}
	return f
}

// squeeze drops invisible characters and makes each run of white space one space.
func (f foldedText) squeeze() foldedText {
	var next foldedText
	var b strings.Builder
	space := -1 // where the last run of white space began
	for i, r := range f.text {
		switch {
		case isSpace(r):
			if space < 0 {
				space = i
			}
			continue
		case isInvisible(r):
			continue
		}
		if space >= 0 && b.Len() > 0 {
			b.WriteByte(' ')
			next.from, next.to = append(next.from, f.from[space]), append(next.to, f.to[space])
		}
		space = -1
		_, size := utf8.DecodeRuneInString(f.text[i:])
		b.WriteRune(r)
		for range utf8.RuneLen(r) {
			next.from, next.to = append(next.from, f.from[i]), append(next.to, f.to[i+size-1])
		}
	}
	next.text = b.String()
	return next
}

// normalize brings the text to NFKC.
func (f foldedText) normalize() foldedText {
	if norm.NFKC.IsNormalString(f.text) {
		return f
	}
	var next foldedText
	var b strings.Builder
	for start := 0; start < len(f.text); {
		end := start + norm.NFKC.NextBoundaryInString(f.text[start:], true)
		segment := norm.NFKC.String(f.text[start:end])
		b.WriteString(segment)
		for range len(segment) {
			next.from, next.to = append(next.from, f.from[start]), append(next.to, f.to[end-1])
		}
		start = end
	}
	next.text = b.String()
	return next
}

// withoutRaised replaces raised and lowered characters, fractions and numbers in circles by signs with as many bytes:
// folding makes 12² the number 122, and a name with a trademark sign another name.
func withoutRaised(s string) string {
	if !strings.ContainsFunc(s, isBeyondASCII) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if !unicode.In(r, unicode.No, unicode.Lm) && !strings.ContainsRune("ªº™℠", r) || norm.NFKC.IsNormalString(string(r)) {
			return r
		}
		return [...]rune{2: '¦', 3: utf8.RuneError, 4: '\U000F0000'}[utf8.RuneLen(r)]
	}, s)
}

// isSpace counts the blank Braille pattern (U+2800) as white space, because it looks like it.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\u2800' }

// isInvisible reports whether r is a control or format character or default-ignorable.
func isInvisible(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// passagesOf returns the parts of the session's prompts that count as request, oldest first.
func (f *finder) passagesOf(p PromptLabel) (passages []passage) {
	for i := range f.session.Prompts {
		prompt := &f.session.Prompts[i]
		cost := len(prompt.Text) * foldSteps
		if strings.ContainsFunc(prompt.Text, isBeyondASCII) {
			cost *= 6
		}
		if prompt.Source != "user" && !(p.SDK && prompt.Source == "sdk") {
			continue
		}
		if (p.Pasted || len(prompt.Text) <= MaxTyped) && !f.spend(cost) {
			break
		}
		if p.Pasted {
			raw := withoutRaised(prompt.Text)
			passages = append(passages, passage{prompt: prompt, raw: raw, text: fold(raw)})
			continue
		}
		if len(prompt.Text) <= MaxTyped {
			passages = appendTyped(passages, prompt)
		}
	}
	return passages
}

// appendTyped appends the passages outside of fences. All from the first to the last fence is fenced, so that pasted
// text with a fence of its own does not get out.
func appendTyped(passages []passage, prompt *Prompt) []passage {
	first, last := fencesOf(prompt.Text)
	return appendUnquoted(appendUnquoted(passages, prompt, 0, first), prompt, last, len(prompt.Text))
}

// appendUnquoted appends the passages of a part of a prompt outside of block quotes, which end at a blank line.
func appendUnquoted(passages []passage, prompt *Prompt, begin, end int) []passage {
	quoted := false
	keep := func(end int) {
		if raw := withoutRaised(prompt.Text[begin:end]); !quoted && strings.TrimSpace(raw) != "" {
			passages = append(passages, passage{prompt: prompt, start: begin, raw: raw, text: fold(raw)})
		}
	}

	for i := begin; i < end; {
		line := prompt.Text[i : i+lineLength(prompt.Text[i:end])]
		switch {
		case isQuote(line):
			keep(i)
			quoted = true
		case strings.TrimSpace(line) == "": // values do not go on in the next paragraph
			keep(i)
			begin, quoted = i, false
		}
		i += len(line)
	}

	keep(end)
	return passages
}

// fencesOf returns where the first fence begins and the last one ends: the end of the text if there is none. A fence
// without a second one extends to the end.
func fencesOf(text string) (first, last int) {
	first, last = len(text), len(text)
	fences := 0
	for i := 0; i < len(text); {
		run := 1
		for i+run < len(text) && text[i+run] == text[i] {
			run++
		}
		if (text[i] == '`' || text[i] == '~') && run >= 3 {
			if fences++; fences == 1 {
				first = i
			} else {
				last = i + run
			}
		}
		i += run
	}
	if fences%2 == 1 {
		last = len(text)
	}
	return first, last
}

// lineLength counts the bytes of the first line with its line feed.
func lineLength(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i + 1
	}
	return len(text)
}

// isQuote reports whether a line begins a block quote, also within a list.
func isQuote(line string) bool {
	return strings.HasPrefix(strings.TrimLeft(line, " \t-*+.)0123456789"), ">")
}
