// Package screen is the input policy (INV-0): what may not even be planned. It runs before anything else looks at a
// request.
//
// # How a text is judged
//
// A text is read in several views, and a rule that matches any of them has matched:
//
//   - folded ([Fold]): as written, without its costume of case, width, invisible characters and white space;
//   - mapped: confusable letters and leet digits replaced by what they look like;
//   - joined ([Skeleton]): mapped, and words that are spelled with separators put together again.
//
// Some texts give reason for more views, each of them mapped:
//
//   - punctuation or invisible characters between words (make_me.some): the same with spaces there;
//   - signs among letters (r|a|n): the same without the signs, which elsewhere stand for letters;
//   - three or more equal letters in a row: the same with one of them, and with two;
//   - four or more pieces of one or two letters (ra ns om): the same put together;
//   - wide spaces between words that are spelled with spaces: the same put together;
//   - text beyond ASCII: joined once more with capitals mapped before they are folded (Greek "Η" looks like H, but its
//     lower case like n) and with letters that look like two taken for the second; without the blank Braille pattern;
//     and what is spelled in tag characters and variation selectors, which nobody sees.
//
// Rules are judged in order; the first that matches any view of any text is the one reported. Each text is judged by
// itself.
//
// # Rules
//
// A rule is an RE2 pattern over the folded text: lower case, NFKC, single spaces. Capitals in a pattern count as
// lower case. For the other views the pattern is mapped in the same way (see [Skeleton]), so that it need not know
// about disguises. The alternatives of a pattern are looked for one by one.
//
// RE2 cannot say "unless": a group whose name begins with "but" can. A match that such a group takes part in is
// excused and does not count, as in
//
//	\bwrite (?:a )?malware(?P<but_benign> (?:policy|report))?
//
// Behind an excused match the search goes on after its first word, or after the match if the excuse is what it begins
// with. (A pattern with excuses had better not use ^, which then holds there too.)
//
// [Defaults] block requests to do harm, not words: a verb of making, getting or doing together with what it is done
// to. A topic on its own ("malware", "phishing awareness training") passes, and so does a question about what others
// do ("who", "attackers") or about what benign work is about (policy, awareness, incident, detection, …), said before
// the verb, between verb and object or behind the object. Whoever wants more blocked writes a rule of their own. A
// screen of patterns stops the plain request and its usual disguises; it is not what the promises of the machine rest
// on.
//
// What it does not stop: other languages; paraphrase, misspelling (ransommware, ransomwear) and letters left out or
// masked (r*nsomware); what has to be decoded (base64, percent-encoding, HTML entities and tags, \u escapes, words
// written backwards or upside down); words without anything between them (makemesome, makeMeSome) and words cut into
// two or three pieces (ran som ware); requests split over several texts, lines of punctuation or sentences, or with
// the object first; and a benign word put in on purpose.
//
// # Speed
//
// From each pattern literals are computed of which some must occur in whatever it matches. One pass over a view finds
// all of them (Aho-Corasick), and only patterns whose literals are there are compiled and run. For most texts one pass
// finds that they are in none of the views, which then are not made. A process keeps the few screens that it compiled
// last, so that compiling the same rules again costs next to nothing.
//
// Rules may come from a stranger's record of a run. So their number and size are bounded, and so is the work for one
// request, in instructions and not in time: a request that takes more than [StepsPerByte] times its bytes is refused as
// too large. A text on every topic of [Defaults] takes about two thirds of that.
package screen

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The limits of an input policy.
const (
	MaxRules        = 256      // rules
	MaxPatternBytes = 16 << 10 // bytes of a pattern
	MaxInputBytes   = 16 << 20 // the largest maxBytes that [Compile] takes
	MaxRuleSteps    = 16 << 10 // instructions of a pattern, counted for each alternative that is looked for by itself
	MaxSteps        = 96 << 10 // instructions of all patterns together
	MaxExcuses      = 64       // groups of a pattern that excuse

	// StepsPerByte times the bytes of a request, and a few more, is how many instructions its judging may run.
	StepsPerByte = 12 << 10
)

// leastBytes is how long even an empty text counts as, so that short requests pay for what patterns cost to start.
const leastBytes = 256

// The stable codes of a hit.
const (
	CodeDenied   = "input_denied"    // a rule matched
	CodeTooLarge = "input_too_large" // the request, or the work to judge it, is larger than allowed
	CodeNotText  = "input_not_text"  // a text is not UTF-8
)

// A Rule says what may not be asked for.
type Rule struct {
	ID      string `json:"id"`      // unique among the rules
	Pattern string `json:"pattern"` // RE2, matched against the folded text
	Reason  string `json:"reason"`  // a sentence for a person
}

// A Hit is why a request is refused.
type Hit struct {
	RuleID string `json:"rule_id"` // "" unless Code is [CodeDenied]
	Reason string `json:"reason"`
	Code   string `json:"code"`
}

// A Screen is a compiled input policy. It is immutable and safe for concurrent use. The zero Screen, and nil, refuse
// everything.
type Screen struct {
	rules    []Rule
	folded   reading
	mapped   reading
	ear      *ear // may be nil
	maxBytes int
}

// Compile checks and compiles rules. maxBytes is the largest size of a request in bytes, 1 to [MaxInputBytes]; see
// [Screen.Judge]. No rules are a policy too: it bounds size and encoding. An error names the rule by index and id.
func Compile(rules []Rule, maxBytes int) (*Screen, error) {
	if maxBytes < 1 || maxBytes > MaxInputBytes {
		return nil, fmt.Errorf("the largest input is %d bytes: want 1 to %d", maxBytes, MaxInputBytes)
	}
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("there are %d input rules, more than %d", len(rules), MaxRules)
	}
	s := kept.find(rules)
	if s == nil {
		var err error
		if s, err = compileRules(rules); err != nil {
			return nil, err
		}
		kept.keep(s)
	}
	c := *s
	c.maxBytes = maxBytes
	return &c, nil
}

// compileRules makes a screen that lacks the largest size of a request, and so refuses all.
func compileRules(rules []Rule) (*Screen, error) {
	s := &Screen{rules: append([]Rule(nil), rules...)}
	seen, steps := map[string]int{}, 0
	folded, mapped := &literals{numbers: map[string]uint16{}}, &literals{numbers: map[string]uint16{}}
	for i, r := range rules {
		n, err := s.compileRule(i, r, folded, mapped)
		if first, dup := seen[r.ID]; err == nil && dup {
			err = fmt.Errorf("the id is that of rule %d", first)
		}
		if steps += n; err == nil && steps > MaxSteps {
			err = fmt.Errorf("the patterns up to here make %d instructions, more than %d", steps, MaxSteps)
		}
		if err != nil {
			return nil, fmt.Errorf("input rule %d (id %q): %w", i, r.ID, err)
		}
		seen[r.ID] = i
	}
	s.folded.finish(folded)
	s.mapped.finish(mapped)
	s.ear = newEar(&s.folded, &s.mapped, folded, mapped)
	return s, nil
}

func (s *Screen) compileRule(index int, r Rule, folded, mapped *literals) (int, error) {
	switch {
	case strings.TrimSpace(r.ID) == "":
		return 0, errors.New("the id is empty")
	case strings.TrimSpace(r.Reason) == "":
		return 0, errors.New("the reason is empty")
	case r.Pattern == "":
		return 0, errors.New("the pattern is empty")
	case len(r.Pattern) > MaxPatternBytes:
		return 0, fmt.Errorf("the pattern has %d bytes, more than %d", len(r.Pattern), MaxPatternBytes)
	}
	return s.compilePattern(index, r.Pattern, folded, mapped)
}

// Judge returns why one request is refused, or nil if nothing speaks against it. The first text is the request itself;
// the others are what was taken from it, as the strings in a plan. The first may have as many bytes as [Compile] was
// told, and the others together as many again: they repeat what the first says. The same holds for the folded texts.
func (s *Screen) Judge(texts ...string) *Hit {
	if s == nil || s.maxBytes == 0 {
		return &Hit{Code: CodeDenied, Reason: "there is no input policy"}
	}
	own, taken := 0, 0
	for i, t := range texts {
		if i == 0 {
			own = len(t)
		} else {
			taken += len(t)
		}
	}
	if hit := s.tooLarge(own, taken, ""); hit != nil {
		return hit
	}
	w := &work{StepsPerByte * (own + taken + leastBytes)}
	first, own, taken := len(s.rules), 0, 0
	quiet := "" // the first text, if nothing wakes in it: then nothing does in any part of it
	for i, t := range texts {
		if !utf8.ValidString(t) {
			return &Hit{Code: CodeNotText, Reason: "the input is not UTF-8"}
		}
		folded := Fold(t)
		if i == 0 {
			own = len(folded)
		} else {
			taken += len(folded)
		}
		if hit := s.tooLarge(own, taken, " in folded form"); hit != nil {
			return hit
		}
		switch {
		case isPart(t, quiet):
		case !s.ear.quiet(t, folded):
			first = s.text(t, folded, first, w)
		case i == 0:
			quiet = t
		}
	}
	switch {
	case w.spent():
		return &Hit{Code: CodeTooLarge, Reason: fmt.Sprintf(
			"the input takes more than %d steps a byte to be judged by these rules", StepsPerByte)}
	case first == len(s.rules):
		return nil
	}
	r := s.rules[first]
	return &Hit{RuleID: r.ID, Reason: r.Reason, Code: CodeDenied}
}

func (s *Screen) tooLarge(own, taken int, form string) *Hit {
	switch {
	case own > s.maxBytes:
		return &Hit{Code: CodeTooLarge,
			Reason: fmt.Sprintf("the input has %d bytes%s, more than %d", own, form, s.maxBytes)}
	case taken > s.maxBytes:
		return &Hit{Code: CodeTooLarge,
			Reason: fmt.Sprintf("the texts in the input have %d bytes%s together, more than %d", taken, form, s.maxBytes)}
	}
	return nil
}

// text returns the index of the first rule before limit that matches a view of t, or limit.
func (s *Screen) text(t, folded string, limit int, w *work) int {
	views(t, folded, func(view string, mapped bool) {
		r := &s.folded
		if mapped {
			r = &s.mapped
		}
		limit = r.match(view, limit, w)
	})
	return limit
}
