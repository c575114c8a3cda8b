package screen

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// How a text sounds is what all of its views have in common: its letters and digits, each as the letter that it may stand
// for, with nothing between them. Byte by byte, so whatever stands in a view sounds in the sound of the text. If no pattern
// finds its literals there, it finds them in no view, and the views need not be made: that goes for most texts. It is so for
// plain texts only; see [isPlain].

// soundOf returns what a byte of a plain text, of a view of it or of a literal sounds like. What letters make one of two
// that look like it sounds like the two.
func soundOf(c byte) string {
	switch {
	case c == 'm':
		return "rn"
	case c == 'w':
		return "vv"
	case kindOf(c)&(letterByte|digitByte|signByte) != 0:
		return string([]byte{leet[c]}) // not as a rune: it may be a part of one
	}
	return ""
}

func sound(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		b.WriteString(soundOf(s[i]))
	}
	return b.String()
}

// isPlain reports whether every view of an ASCII text that folds to s sounds like s. Signs are letters in one view and
// separators in another, and three equal letters or digits are a reason to leave some out.
func isPlain(s string) bool {
	all, run := uint8(0), 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		all |= odd[c]
		if i > 0 && c == s[i-1] && kind[c]&(letterByte|digitByte) != 0 {
			if run++; run >= minRun-1 {
				return false
			}
			continue
		}
		run = 0
	}
	return all == 0
}

// odd is not 0 for the bytes that no plain text has.
var odd = func() (table [256]uint8) {
	for i := range 256 {
		if c := byte(i); c >= utf8.RuneSelf || kindOf(c) == signByte {
			table[i] = 1
		}
	}
	return table
}()

// An ear knows the literals of all programs, of both spellings, by how they sound.
type ear struct{ reading }

// newEar returns nil if there is too much to listen for, or some program runs whatever literals there are.
func newEar(folded, mapped *reading, ofFolded, ofMapped *literals) *ear {
	e, all, known := &ear{}, &literals{numbers: map[string]uint16{}}, map[wanted]bool{}
	for _, of := range []struct {
		*reading
		*literals
	}{{folded, ofFolded}, {mapped, ofMapped}} {
		numbers := make([]uint16, firstNumber+len(of.list))
		for i, c := range of.list {
			numbers[firstNumber+i] = all.hear(c)
		}
		for i := range of.programs {
			heard := of.programs[i].clauses.heard(numbers)
			if heard == (wanted{}) {
				return nil
			}
			if !known[heard] {
				known[heard] = true
				e.programs = append(e.programs, program{clauses: heard})
			}
		}
	}
	if len(all.list) > maxNumbers || all.bytes > maxBytes {
		return nil
	}
	e.finish(all)
	e.listen()
	return e
}

// hear returns the number of a clause by how its literals sound: [noClause] if one of them is in every text.
func (l *literals) hear(c clause) uint16 {
	var heard clause
	for _, lit := range c {
		heard = append(heard, sound(lit))
	}
	slices.Sort(heard)
	heard = slices.Compact(heard)
	if heard[0] == "" {
		return noClause
	}
	key := strings.Join(heard, "\x00")
	number, known := l.numbers[key]
	if !known {
		l.bytes += len(key)
		l.list = append(l.list, heard)
		number = firstNumber + uint16(len(l.list)-1)
		l.numbers[key] = number
	}
	return number
}

// heard returns what must sound in a text before a program is worth running that wants these clauses.
func (w wanted) heard(numbers []uint16) wanted {
	var heard wanted
	count := 0
	for _, c := range w {
		if c != noClause && numbers[c] != noClause {
			heard[count] = numbers[c]
			count++
		}
	}
	return heard
}

// listen makes the scanner one that takes texts as they are: each byte leads where its sound leads.
func (e *ear) listen() {
	sc := e.scanner
	const silent, m, w, more = 0, 1, 2, 3 // columns behind those of the sounds
	width, states := sc.width, len(sc.ends)
	next := make([]uint16, 0, states*(width+more))
	step := func(state uint16, c byte) uint16 { return sc.next[int(state)*width+int(sc.class[c])] }
	for i := range states {
		state := uint16(i) // it fits, see maxBytes
		next = append(next, sc.next[i*width:][:width]...)
		next = append(next, state, step(step(state, 'r'), 'n'), step(step(state, 'v'), 'v'))
	}
	var class [256]uint8
	for i := range 256 {
		switch s := soundOf(byte(i)); {
		case s == "":
			class[i] = uint8(width + silent)
		case i == 'm':
			class[i] = uint8(width + m)
		case i == 'w':
			class[i] = uint8(width + w)
		default:
			class[i] = sc.class[s[0]]
		}
	}
	e.scanner = &scanner{class: class, width: width + more, next: next, ending: sc.ending, ends: sc.ends, lists: sc.lists}
}

// quiet reports whether surely no program wakes in any view of t.
func (e *ear) quiet(t, folded string) bool {
	if e == nil || !isPlain(folded) || t != folded && !isASCII(t) {
		return false
	}
	var found set
	return !e.scan(folded, &found) || !e.awake(&found)
}

// To find a text in a quiet one must cost less than to judge it.
const (
	// worthFinding is how many times as long the quiet text may be.
	worthFinding = 32
	// longestFound is the most bytes of a text that is looked for. To look for long ones takes time that grows with both
	// lengths multiplied, if somebody chose the two so that their hashes agree where they do not.
	longestFound = 64
)

// isPart reports whether t is known to be a part of a quiet text, so that nothing wakes in it either.
func isPart(t, quiet string) bool {
	return 0 < len(t) && len(t) <= longestFound && len(quiet) <= worthFinding*len(t) && strings.Contains(quiet, t)
}
