// Package screen is the input policy (INV-0): what may not even be planned. It runs before anything else looks at a
// request.
//
// # How a text is judged
//
// A text is read in several views, and a rule that matches any of them has matched:
//
//   - folded ([Fold]): as written, without its costume of case, width, invisible characters and white space;
//   - mapped: confusable letters and leet digits replaced by what they look like;
//   - joined ([Skeleton]): mapped, and words that are spelled with separators put together again;
//   - for text beyond ASCII, joined once more with capitals mapped before they are folded (Greek "Η" looks like H,
//     but its lower case like n), and what is spelled in tag characters and variation selectors, which nobody sees.
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
// on. What it does not stop: other languages, paraphrase, requests split over several texts or sentences, and a
// benign word put in on purpose.
//
// # Speed
//
// From each pattern literals are computed of which some must occur in whatever it matches. One pass over a view finds
// all of them (Aho-Corasick), and only patterns whose literals are there are compiled and run.
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
)

// The stable codes of a hit.
const (
	CodeDenied   = "input_denied"    // a rule matched
	CodeTooLarge = "input_too_large" // the texts together are larger than allowed
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
	programs []program // in the order of their rules
	folded   *scanner  // literals of the patterns as written
	mapped   *scanner  // and of the mapped patterns
	maxBytes int
}

// Compile checks and compiles rules. maxBytes is the largest size of all texts of one request together, in bytes, 1 to
// [MaxInputBytes]. No rules are a policy too: it bounds size and encoding. An error names the rule by index and id.
func Compile(rules []Rule, maxBytes int) (*Screen, error) {
	if maxBytes < 1 || maxBytes > MaxInputBytes {
		return nil, fmt.Errorf("the largest input is %d bytes: want 1 to %d", maxBytes, MaxInputBytes)
	}
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("there are %d input rules, more than %d", len(rules), MaxRules)
	}
	s := &Screen{rules: append([]Rule(nil), rules...), maxBytes: maxBytes}
	seen := map[string]int{}
	folded, mapped := &literals{numbers: map[string]uint16{}}, &literals{numbers: map[string]uint16{}}
	for i, r := range rules {
		programs, err := compileRule(i, r, folded, mapped)
		if first, dup := seen[r.ID]; err == nil && dup {
			err = fmt.Errorf("the id is that of rule %d", first)
		}
		if err != nil {
			return nil, fmt.Errorf("input rule %d (id %q): %w", i, r.ID, err)
		}
		seen[r.ID] = i
		s.programs = append(s.programs, programs...)
	}
	s.folded, s.mapped = newScanner(folded.list), newScanner(mapped.list)
	return s, nil
}

func compileRule(index int, r Rule, folded, mapped *literals) ([]program, error) {
	switch {
	case strings.TrimSpace(r.ID) == "":
		return nil, errors.New("the id is empty")
	case strings.TrimSpace(r.Reason) == "":
		return nil, errors.New("the reason is empty")
	case r.Pattern == "":
		return nil, errors.New("the pattern is empty")
	case len(r.Pattern) > MaxPatternBytes:
		return nil, fmt.Errorf("the pattern has %d bytes, more than %d", len(r.Pattern), MaxPatternBytes)
	}
	return compilePattern(index, r.Pattern, folded, mapped)
}

// Judge returns why the texts of one request are refused, or nil if nothing speaks against them.
func (s *Screen) Judge(texts ...string) *Hit {
	if s == nil || s.maxBytes == 0 {
		return &Hit{Code: CodeDenied, Reason: "there is no input policy"}
	}
	total := 0
	for _, t := range texts {
		total += len(t)
	}
	if total > s.maxBytes {
		return &Hit{Code: CodeTooLarge, Reason: fmt.Sprintf("the input has %d bytes, more than %d", total, s.maxBytes)}
	}
	first := len(s.rules)
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return &Hit{Code: CodeNotText, Reason: "the input is not UTF-8"}
		}
		first = s.text(t, first)
	}
	if first == len(s.rules) {
		return nil
	}
	r := s.rules[first]
	return &Hit{RuleID: r.ID, Reason: r.Reason, Code: CodeDenied}
}

// text returns the index of the first rule before limit that matches a view of t, or limit.
func (s *Screen) text(t string, limit int) int {
	folded := Fold(t)
	limit = s.match(folded, false, limit)
	plain := plainLetters(folded)
	limit = s.match(letters(plain), true, limit)
	joined := join(plain)
	if joined != plain {
		limit = s.match(letters(joined), true, limit)
	}
	if apart := spaced(t); apart != "" {
		limit = s.match(Skeleton(apart), true, limit)
	}
	if isASCII(t) {
		return limit
	}
	if capitals := Skeleton(Fold(mapCapitals(t))); capitals != joined {
		limit = s.match(capitals, true, limit)
	}
	if h := hidden(t); h != "" {
		limit = s.text(h, limit) // ASCII: ends here
	}
	return limit
}

// match returns the index of the first rule before limit that matches one view, or limit.
func (s *Screen) match(view string, mapped bool, limit int) int {
	sc := s.folded
	if mapped {
		sc = s.mapped
	}
	found := sc.scan(view)
	for i := range s.programs {
		p := &s.programs[i]
		if p.rule >= limit {
			break
		}
		if p.matches(view, mapped, &found) {
			return p.rule
		}
	}
	return limit
}
