// Package screen is the input policy (INV-0): which requests are refused before anything else looks
// at them.
//
// # Views of a text
//
// A text is read in four views. A rule matches the text if it matches any of them:
//
//   - folded ([Fold]): as written, without differences of case, width, invisible characters and white space;
//   - mapped: letters of other scripts and digits in words are replaced by the letters that they look like (4 @ a, 8 b, 3 e, 6 9 g,
//     1 ! i, | l, 0 o, 5 $ s, 7 + t), and marks are dropped;
//   - joined: mapped, and words written with separators are put together (m-a-l-w-a-r-e, mal.ware, m(a)lware);
//   - hidden: the text that is encoded in tag characters and variation selectors, which people do not see, in the views above.
//
// Rules are judged in order. The first rule that matches any view of any text is reported. Each
// text is judged by itself.
//
// # Rules
//
// A rule is an RE2 pattern over the folded text: lower case, NFKC, single spaces. Capitals in a
// pattern count as lower case. Rules need no variants for disguises.
//
// RE2 has no negative lookahead. Instead, a group whose name begins with "but" excuses a match that
// it takes part in, as in
//
//	\bwrite (?:a )?malware(?P<but_benign> (?:policy|report))?
//
// The search continues behind the first word of an excused match, or behind the whole match if it
// begins with the excuse. ^ matches there too, so it is of little use in a pattern with excuses. A
// search finds at most [MaxExcused] excused matches; one more counts as a match.
//
// [Defaults] block requests to do harm, not words: a verb of making, getting or doing together with
// a harmful object. A topic without such a verb ("malware", "phishing awareness training") passes.
// So does a question about what others do ("who", "attackers") or about benign work (policy,
// awareness, incident, detection, …), if that word is before the verb, between verb and object or
// behind the object. Operators add rules to block more. Patterns stop plain requests and their
// usual disguises; the machine's guarantees do not depend on them.
//
// The defaults do not stop: other languages; paraphrase, misspelling (ransommware, ransomwear) and
// letters left out, repeated or masked (r*nsomware, raaansomware); letters that look like another
// of the same alphabet (1 for l, rn for m, vv for w); encoded text (base64, percent-encoding, HTML
// entities and tags, \u escapes, words written backwards or upside down); words without separators
// (makemesome, makeMeSome), with other separators than spaces (make_me_some), with invisible ones,
// and with spaces in them (r a n s o m w a r e, ran som ware); signs between letters (r|a|n);
// requests split over several texts, lines of punctuation or sentences, or with the object first;
// and a benign word put in on purpose.
//
// # Limits
//
// A trace from a stranger brings its own rules. So their number and size are bounded, and so is the
// work for one request, counted and not timed: a replay comes to the same verdict on any machine. A
// search costs the pattern's instructions times the view's bytes, which is the most that package
// regexp can need. Requests that cost more than [MaxCost] are refused as too large.
package screen

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// The limits of an input policy.
const (
	MaxRules        = 256      // rules
	MaxPatternBytes = 16 << 10 // bytes of a pattern
	MaxInputBytes   = 16 << 20 // the largest maxBytes that [Compile] takes
	// Instructions of a pattern, counted for each alternative that is searched separately.
	MaxRuleSteps = 16 << 10
	MaxSteps     = 96 << 10 // instructions of all patterns together
	MaxExcuses   = 64       // groups of a pattern that excuse
	MaxExcused   = 64       // excused matches of a search
	MaxCost      = 1 << 35  // instructions times bytes, summed over all searches of a request
)

// The stable codes of a hit.
const (
	CodeDenied   = "input_denied"    // a rule matched
	CodeTooLarge = "input_too_large" // the request, or the work to judge it, is larger than allowed
	CodeNotText  = "input_not_text"  // a text is not UTF-8
)

// A Rule forbids the requests that its pattern matches.
type Rule struct {
	ID      string `json:"id"`      // unique among the rules
	Pattern string `json:"pattern"` // RE2, matched against the folded text
	Reason  string `json:"reason"`  // a sentence for a person
}

// A Hit is the reason why a request is refused.
type Hit struct {
	RuleID string `json:"rule_id"` // "" unless Code is [CodeDenied]
	Reason string `json:"reason"`
	Code   string `json:"code"`
}

// A Screen is a compiled input policy. It is immutable and safe for concurrent use. The zero
// Screen, and nil, refuse everything.
type Screen struct {
	rules    []Rule
	patterns []*pattern // the compiled rules
	maxBytes int
}

// Compile checks and compiles rules. maxBytes is the largest size of a request in bytes, 1 to
// [MaxInputBytes]; see [Screen.Judge]. Without rules, the screen bounds size and encoding only. An
// error names the rule by index and id.
func Compile(rules []Rule, maxBytes int) (*Screen, error) {
	if maxBytes < 1 || maxBytes > MaxInputBytes {
		return nil, fmt.Errorf("the largest input is %d bytes: want 1 to %d", maxBytes, MaxInputBytes)
	}
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("there are %d input rules, more than %d", len(rules), MaxRules)
	}

	s := &Screen{rules: slices.Clone(rules), maxBytes: maxBytes}
	firstIndex, steps := map[string]int{}, 0

	for i, r := range rules {
		fault := func(err error) error { return fmt.Errorf("input rule %d (id %q): %w", i, r.ID, err) }
		p, err := r.compile()
		if err != nil {
			return nil, fault(err)
		}
		if first, dup := firstIndex[r.ID]; dup {
			return nil, fault(fmt.Errorf("the id is that of rule %d", first))
		}
		if steps += p.steps; steps > MaxSteps {
			return nil, fault(fmt.Errorf("the patterns up to here make %d instructions, more than %d", steps, MaxSteps))
		}
		firstIndex[r.ID] = i
		s.patterns = append(s.patterns, p)
	}

	return s, nil
}

func (r Rule) compile() (*pattern, error) {
	if len(r.Pattern) > MaxPatternBytes {
		return nil, fmt.Errorf("the pattern has %d bytes, more than %d", len(r.Pattern), MaxPatternBytes)
	}
	return compilePattern(r.Pattern)
}

// Judge returns why one request is refused, or nil if no rule matches it. The first text is the
// request itself; the others were taken from it, such as the strings in a plan. The first text may
// have maxBytes bytes, and the others together as many again, because they repeat what the first
// says. The same holds for the folded texts.
func (s *Screen) Judge(texts ...string) *Hit {
	if s == nil || s.maxBytes == 0 {
		return &Hit{Code: CodeDenied, Reason: "there is no input policy"}
	}
	if hit := s.tooLarge(texts, ""); hit != nil {
		return hit
	}

	folded := make([]string, len(texts))
	for i, t := range texts {
		if !utf8.ValidString(t) {
			return &Hit{Code: CodeNotText, Reason: "the input is not UTF-8"}
		}
		folded[i] = Fold(t)
	}

	if hit := s.tooLarge(folded, " in folded form"); hit != nil {
		return hit
	}

	// Of all rules that match any text, the first in the list is reported.
	first, left := len(s.rules), budget(MaxCost)
	for i, t := range texts {
		first = s.firstMatch(viewsOf(t, folded[i]), first, &left)
	}

	switch {
	case left.isSpent():
		return &Hit{Code: CodeTooLarge, Reason: "the input takes more work to judge by these rules than is allowed"}
	case first == len(s.rules):
		return nil
	}

	r := s.rules[first]
	return &Hit{RuleID: r.ID, Reason: r.Reason, Code: CodeDenied}
}

func (s *Screen) tooLarge(texts []string, form string) *Hit {
	requestBytes, otherBytes := 0, 0
	for i, t := range texts {
		if i == 0 {
			requestBytes = len(t)
		} else {
			otherBytes += len(t)
		}
	}
	switch {
	case requestBytes > s.maxBytes:
		return &Hit{Code: CodeTooLarge,
			Reason: fmt.Sprintf("the input has %d bytes%s, more than %d", requestBytes, form, s.maxBytes)}
	case otherBytes > s.maxBytes:
		return &Hit{Code: CodeTooLarge,
			Reason: fmt.Sprintf("the texts in the input have %d bytes%s together, more than %d", otherBytes, form,
				s.maxBytes)}
	}
	return nil
}

// firstMatch returns the index of the first rule before limit that matches one of the views of a
// text, or limit.
func (s *Screen) firstMatch(views []string, limit int, left *budget) int {
	for _, view := range views {
		for i, p := range s.patterns[:limit] {
			if left.isSpent() {
				return limit
			}
			if p.matches(view, left) {
				limit = i
				break
			}
		}
	}
	return limit
}
