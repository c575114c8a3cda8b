package origin

import (
	"bytes"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// A Session is what was before a call: prompts and calls that were made or may have been made, oldest first. A nil
// Session is a call without a session.
type Session struct {
	Prompts []Prompt
	Results []Result
	// Holds evaluates a condition of trusted_if on an item of a result. Without it no item is trusted.
	Holds func(condition string, item jsontext.Value) bool
}

// A Prompt is a text that the client says was written to the agent.
type Prompt struct {
	Entry  int64 // of the ledger
	Source string
	Text   string
}

// A Result is a call of the session with what it returned.
type Result struct {
	Run       string // names the call in evidence
	Call      int64  // entry of the ledger at which the call was judged; 0: before all others
	Entry     int64  // entry at which the result came; a result that is not behind its Call does not count
	Server    string
	Tool      string
	Failed    bool
	Arguments jsontext.Value // canonical
	Value     jsontext.Value // canonical: the structured content, or a JSON string for text; nil: no result is known
	Found     bool           // the targets of the call were found
}

// Untrusted reports whether untrusted text may be in the session: a call was made to a tool whose results are not
// trusted as a whole, or there is no session. An error has the label of its tool here.
func (r *Rules) Untrusted(s *Session) bool {
	return r.anyResult(s, func(t *toolRules) bool { return t == nil || t.Results != "trusted" })
}

// Private reports whether private data may be in the session: a call was made to a tool with the label private, or
// there is no session.
func (r *Rules) Private(s *Session) bool {
	return r.anyResult(s, func(t *toolRules) bool { return t != nil && t.Private })
}

func (r *Rules) anyResult(s *Session, is func(*toolRules) bool) bool {
	if s == nil {
		return true
	}
	for i := range s.Results {
		if is(r.toolOf(s.Results[i].Server, s.Results[i].Tool)) {
			return true
		}
	}
	return false
}

// ReadsResults reports whether a value can come from results of a tool.
func (r *Rules) ReadsResults(server, tool string) bool {
	t := r.toolOf(server, tool)
	return t != nil && (t.Results == "trusted" || len(t.Trusted)+len(t.Creates) > 0 || t.TrustedIf != "")
}

// toolOf returns the labels of a tool, or nil.
func (r *Rules) toolOf(server, tool string) *toolRules {
	if r == nil {
		return nil
	}
	return r.tools[toolName{server, tool}]
}

// A hit is a scalar of a result that equals a value.
type hit struct {
	result *Result
	origin string
	place  string
	form   string
	text   string
}

// maxHits bounds for how many scalars that equal a value pgfsm looks whether they came back from arguments.
const maxHits = 64

// hitsOf returns the first scalars of the session's results that equal the value, at places that the labels name.
func (f *finder) hitsOf(v *value) (hits []hit) {
	for i := range f.session.Results {
		result := &f.session.Results[i]
		tool := f.rules.toolOf(result.Server, result.Tool)
		if tool == nil || result.Failed || result.Entry <= result.Call || !v.mayEqualIn(result.Value, tool.Text == "json") {
			continue
		}
		if f.documents[i] == nil {
			f.documents[i] = documentOf(result, tool)
		}
		tool.eachLabelled(f.session, f.documents[i], v, func(path []string, origin string, node jsontext.Value) {
			if origin == Own && !result.Found {
				return
			}
			text, ok := scalarText(node)
			if !ok {
				return
			}
			if form, ok := v.equals(text, tool.Prefix); ok && len(hits) < maxHits {
				hits = append(hits, hit{result, origin, pointerOf(path), form, text})
			}
		})
	}
	return hits
}

// takeHit gives the leaf the first hit as it stands, or, if forms, the first in a form: trusted before own.
func (leaf *Leaf) takeHit(hits []hit, forms bool) bool {
	for _, origin := range []string{Trusted, Own} {
		for _, h := range hits {
			if h.origin == origin && (h.form != "") == forms {
				leaf.Origin, leaf.Source, leaf.Place, leaf.Form = origin, h.result.Run, h.place, h.form
				return true
			}
		}
	}
	return false
}

// withoutEchoes drops the hits that may have come back from arguments.
func (f *finder) withoutEchoes(v *value, hits []hit) (kept []hit) {
	first := make(map[string]int64, 1) // by text: the entry at which it came first
	for _, h := range hits {
		if entry, ok := first[h.text]; !ok || h.result.Entry < entry {
			first[h.text] = h.result.Entry
		}
	}
	echoes := make(map[string]bool, 1) // by text, which a result often has at many places
	for _, h := range hits {
		echo, judged := echoes[h.text]
		if !judged {
			echo = f.wasArgument(h.text, first[h.text])
			echoes[h.text] = echo
		}
		if !echo {
			kept = append(kept, h)
		}
	}
	if len(kept) == 0 {
		return nil
	}

	known := kept[0].result.Entry
	for _, h := range kept {
		known = min(known, h.result.Entry)
	}
	if f.wasArgument(v.text, known) {
		return nil
	}
	return kept
}

// wasArgument reports whether text stood in the arguments of a call that was judged before the entry known came.
func (f *finder) wasArgument(text string, known int64) bool {
	needle, date, number := squash(text), dateOf(text), amountOf(text).number
	for i := range f.session.Results {
		if f.session.Results[i].Call > known {
			continue
		}
		if f.arguments[i] == nil {
			f.arguments[i] = argumentsOf(&f.session.Results[i])
		}
		for _, a := range f.arguments[i] {
			switch {
			case a.unknown, a.text == text, needle != "" && a.squashed == needle,
				utf8.RuneCountInString(needle) >= MinCharacters && strings.Contains(a.squashed, needle),
				date != "" && dateOf(a.text) == date,
				number != "" && amountOf(a.text).number == number:
				return true
			}
		}
	}
	return false
}

// An argument is a scalar, or a member's name, of an earlier call's arguments.
type argument struct {
	text, squashed string
	unknown        bool // it can be any text
}

// argumentsOf returns the texts that a call sent. What cannot be read can be any text.
func argumentsOf(result *Result) []argument {
	arguments := []argument{}
	add := func(text string) {
		arguments = append(arguments, argument{text: text, squashed: squash(text)})
		for _, read := range readings(text) {
			arguments = append(arguments, argument{text: read, squashed: squash(read)})
		}
	}
	err := eachNode(result.Arguments, nil, func(path []string, isMember bool, node jsontext.Value) bool {
		if isMember {
			add(path[len(path)-1])
		}
		if text, ok := scalarText(node); ok {
			add(text)
		}
		if isContainer(node) && len(path) >= MaxDepth {
			arguments = append(arguments, argument{unknown: true})
		}
		return true
	})
	if err != nil || result.Arguments.Kind() != '{' {
		arguments = append(arguments, argument{unknown: true})
	}
	return arguments
}

// readings returns what else servers commonly take a text for: what is percent-encoded, and a number with an exponent.
func readings(text string) (texts []string) {
	if decoded, err := url.QueryUnescape(text); err == nil && decoded != text {
		texts = append(texts, decoded)
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, "eE") {
		texts = append(texts, strconv.FormatFloat(number, 'f', -1, 64))
	}
	return texts
}

// documentOf returns the JSON document of a result. Text of a tool with text: json that is no JSON stays one scalar.
func documentOf(result *Result, tool *toolRules) jsontext.Value {
	if tool.Text != "json" || result.Value.Kind() != '"' {
		return result.Value
	}
	text, err := jsontext.AppendUnquote(nil, result.Value)
	if err != nil {
		return result.Value
	}
	doc, err := canonical.JSON(text)
	if err != nil {
		return result.Value
	}
	return doc
}

// eachLabelled calls do with each scalar of a document that the labels trust or call created, and that may equal v.
func (t *toolRules) eachLabelled(
	s *Session, doc jsontext.Value, v *value, do func(path []string, origin string, node jsontext.Value),
) {
	itemDepth := -1 // the length of the path of the trusted item that is being read
	_ = eachNode(doc, nil, func(path []string, _ bool, node jsontext.Value) bool {
		if !v.mayEqual(node) {
			return false
		}
		if itemDepth >= len(path) {
			itemDepth = -1
		}
		if itemDepth < 0 && t.TrustedIf != "" && t.items.equals(path) && s.Holds != nil && s.Holds(t.TrustedIf, node) {
			itemDepth = len(path)
		}

		switch {
		case isContainer(node):
		case t.Results == "trusted", itemDepth >= 0, containsPath(t.trusted, path):
			do(path, Trusted, node)
		case containsPath(t.creates, path):
			do(path, Own, node)
		}
		return true
	})
}

func containsPath(patterns []pattern, path []string) bool {
	for _, p := range patterns {
		if p.equals(path) {
			return true
		}
	}
	return false
}

// scalarText returns the text of a string or number.
func scalarText(node jsontext.Value) (string, bool) {
	switch node.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, node)
		return string(text), err == nil
	case '0':
		return string(node), true
	}
	return "", false
}

func isContainer(node jsontext.Value) bool { return node.Kind() == '{' || node.Kind() == '[' }

// A visitor is called with a node of a document; isMember says that the last segment of its path is the name of a
// member. It returns false to leave out what is below, and must not keep path and node.
type visitor func(path []string, isMember bool, node jsontext.Value) bool

// eachNode visits a value and all below it to MaxDepth, containers first. The error is the decoder's.
func eachNode(node jsontext.Value, path []string, visit visitor) error {
	if !visit(path, false, node) {
		return nil
	}
	return eachBelow(node, path, visit)
}

func eachBelow(node jsontext.Value, path []string, visit visitor) error {
	if len(path) >= MaxDepth || !isContainer(node) {
		return nil
	}
	return eachChild(node, func(name string, child jsontext.Value) error {
		below := append(path, name)
		if !visit(below, node.Kind() == '{', child) {
			return nil
		}
		return eachBelow(child, below, visit)
	})
}

// eachChild calls do with the members of an object or the elements of a list.
func eachChild(node jsontext.Value, do func(name string, child jsontext.Value) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(node), jsontext.AllowDuplicateNames(true)) // documents are checked before
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for index := 0; dec.PeekKind() != '}' && dec.PeekKind() != ']'; index++ {
		name := strconv.Itoa(index)
		if node.Kind() == '{' {
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
		}
		child, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := do(name, child); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}
