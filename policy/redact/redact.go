// Package redact removes personal data of fixed forms from results before the machine sees them, so that
// the agent, the record and everything else have the same bytes.
//
//	set, err := redact.Compile(rules)
//	done := set.For("crm", "get_customer").Document(result)
//
// A rule finds data by detectors and RE2 patterns in every text, or removes what JSON pointers name. What is
// found becomes [Mask]; every other byte stays. Texts that are JSON themselves are read as JSON, a few levels
// deep. Nothing else is decoded: data in base64, in percent-encoding or split over several texts is not
// found, and neither are names and addresses of people.
package redact

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/glob"
	"pgfsm/policy/screen"
)

// Mask replaces what a rule removes.
const Mask = "[redacted by pgfsm]"

// Withhold is the value of [Rule.Binary].
const Withhold = "withhold"

// The limits of rules. A result for which the patterns need more than maxCost is withheld.
const (
	MaxRules = 64
	maxSteps = 4096    // instructions of all patterns together
	maxCost  = 1 << 35 // instructions times bytes, summed over all texts of a result
	maxDepth = 4       // levels of JSON in texts of JSON
	// How often a text is searched at most. Only texts made for that purpose need more.
	maxRounds = 8
	minValue  = 4 // bytes of a value at a pointer that is removed from other texts, too
)

// A Rule says what is removed from the results of some tools.
type Rule struct {
	ID      string   `json:"id"`               // unique among the rules
	Server  string   `json:"server,omitzero"`  // glob; empty: all
	Tool    string   `json:"tool,omitzero"`    // glob; empty: all
	Find    []string `json:"find,omitempty"`   // names of detectors
	Pattern string   `json:"pattern,omitzero"` // RE2
	// JSON pointers into the structured content, and into texts that are JSON. * is every member or element.
	At     []string `json:"at,omitempty"`
	Binary string   `json:"binary,omitzero"` // [Withhold]: images, audio and other binary content are removed
}

// A Hit says how often a rule removed something.
type Hit struct {
	Count int    `json:"count"`
	Rule  string `json:"rule"`
}

// A Set is a compiled list of rules. It is immutable and safe for concurrent use. Nil has no rules.
type Set struct{ rules []*rule }

type rule struct {
	Rule
	server, tool *glob.Glob
	detectors    []*detector
	pattern      *regexp.Regexp // nil: none
	steps        int            // about how many instructions the pattern has
	at           [][]string
}

// Compile checks and compiles rules. The error names the rule.
func Compile(rules []Rule) (*Set, error) {
	if len(rules) > MaxRules {
		return nil, fmt.Errorf("there are %d redact rules, more than %d", len(rules), MaxRules)
	}
	s, steps, ids := new(Set), 0, map[string]bool{}
	for _, from := range rules {
		r, err := from.compile()
		if err == nil && ids[from.ID] {
			err = errors.New("the id appears twice")
		}
		if err == nil {
			if steps += r.steps; steps > maxSteps {
				err = fmt.Errorf("the patterns up to here make %d instructions, more than %d", steps, maxSteps)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("redact rule %q: %w", from.ID, err)
		}
		ids[from.ID] = true
		s.rules = append(s.rules, r)
	}
	return s, nil
}

func (r Rule) compile() (*rule, error) {
	c := &rule{Rule: r}
	var errs [4]error
	c.server, errs[0] = glob.Compile(cmp.Or(r.Server, "*"))
	c.tool, errs[1] = glob.Compile(cmp.Or(r.Tool, "*"))
	if r.Pattern != "" {
		c.pattern, c.steps, errs[2] = CompilePattern(r.Pattern)
	}
	for _, name := range r.Find {
		i := slices.IndexFunc(detectors, func(d detector) bool { return d.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no detector %q", name)
		}
		c.detectors = append(c.detectors, &detectors[i])
	}
	for _, text := range r.At {
		p := jsontext.Pointer(text)
		if text == "" || !p.IsValid() {
			return nil, fmt.Errorf("%q is no JSON pointer to a member", text)
		}
		c.at = append(c.at, slices.AppendSeq([]string{}, p.Tokens()))
	}
	if len(r.Find)+len(r.At) == 0 && r.Pattern == "" && r.Binary != Withhold {
		errs[3] = errors.New("it removes nothing")
	}
	return c, errors.Join(errs[:]...)
}

// CompilePattern compiles the pattern of a rule. steps is about how many instructions it has.
func CompilePattern(text string) (expr *regexp.Regexp, steps int, err error) {
	if steps, err = screen.Instructions(text, maxSteps); err != nil {
		return nil, 0, err
	}
	if expr, err = regexp.Compile(text); err != nil {
		return nil, 0, err
	}
	switch {
	case expr.MatchString(""):
		return nil, 0, errors.New("the pattern matches the empty text")
	case expr.MatchString(Mask):
		return nil, 0, errors.New("the pattern matches " + Mask + ", which replaces what it finds")
	}
	return expr, steps, nil
}

// For returns the rules for the results of a tool, or with an empty tool, for everything that a server
// sends. It returns nil if there are none.
func (s *Set) For(server, tool string) *Set {
	if s == nil {
		return nil
	}
	var rules []*rule
	for _, r := range s.rules {
		if r.server.Match(server) && (tool == "" || r.tool.Match(tool)) {
			rules = append(rules, r)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return &Set{rules}
}

// Done is a text without what the rules remove.
type Done struct {
	Text []byte // the text itself if nothing was removed
	Hits []Hit  // in the order of the rules; none if nothing was removed
	// The text must not be shown at all: a rule found something in a member's name, or the text cannot be
	// searched. Why says the reason. Text is nil then.
	Withheld bool
	Why      string
}

// Document applies the rules to a result or to another message of MCP.
func (s *Set) Document(doc []byte) Done { return s.apply(doc, false) }

// Data applies the rules to JSON in which pointers begin at the root.
func (s *Set) Data(doc []byte) Done { return s.apply(doc, true) }

func (s *Set) apply(doc []byte, data bool) Done {
	if s == nil {
		return Done{Text: doc}
	}
	w := &walk{rules: s.rules, counts: make([]int, len(s.rules))}
	text, err := w.document(doc, data)
	if err == nil && len(w.values) > 0 { // again, for what was removed at pointers and stands elsewhere, too
		text, err = w.document(text, data)
	}
	return w.finish(text, err)
}

// Text applies the rules to a text that is no JSON.
func (s *Set) Text(text string) Done {
	if s == nil {
		return Done{Text: []byte(text)}
	}
	w := &walk{rules: s.rules, counts: make([]int, len(s.rules))}
	clean := w.text(text)
	return w.finish([]byte(clean), w.err)
}

func (w *walk) finish(text []byte, err error) (d Done) {
	for i, n := range w.counts {
		if n > 0 {
			d.Hits = append(d.Hits, Hit{n, w.rules[i].ID})
		}
	}
	if err != nil {
		d.Withheld, d.Why = true, err.Error()
		return d
	}
	d.Text = text
	return d
}

// removeAll returns s with [Mask] in place of spans.
func removeAll(s string, found []span) string {
	var b strings.Builder
	copied := 0
	for _, f := range found {
		b.WriteString(s[copied:f.start])
		b.WriteString(Mask)
		copied = f.end
	}
	return b.String() + s[copied:]
}
