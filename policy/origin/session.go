package origin

import (
	"bytes"
	"net/url"
	"slices"
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
	// Sent returns what earlier calls sent, of this session and of others, and why if that is not known. It is called once,
	// and only if a value would be trusted or own without it. Nil: there were no calls.
	Sent func() (sent []Sent, failed string)
	// Failed is set by a search that failed: why.
	Failed string
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
	Run    string // names the call in evidence
	Call   int64  // entry of the ledger at which the call was judged; 0: before all others
	Entry  int64  // entry at which the result came; a result that is not behind its Call does not count
	Server string
	Tool   string
	Failed bool
	Value  jsontext.Value // canonical: the structured content, or a JSON string for text; nil: no result is known
	Found  bool           // the targets of the call were found
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

// ReadsAnyResult reports whether a value can come from results of some tool.
func (r *Rules) ReadsAnyResult() bool {
	if r == nil {
		return false
	}
	for name := range r.tools { // the order does not matter
		if r.ReadsResults(name.server, name.tool) {
			return true
		}
	}
	return false
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
		if tool == nil || result.Failed || result.Entry <= result.Call {
			continue
		}
		if f.places[i] == nil {
			if !f.spend(len(result.Value)*v.scans/scansInStep+20) || !v.mayEqualIn(result.Value, tool.Text == "json") {
				continue
			}
			f.places[i] = f.placesIn(result, tool)
		}
		for k := range f.places[i] {
			p := &f.places[i][k]
			f.spend(placeSteps)
			form, ok := v.equals(p.text, tool.Prefix)
			if !ok || len(hits) == maxHits {
				continue
			}
			if origin := f.originAt(p, tool); origin == Trusted || origin == Own && result.Found {
				hits = append(hits, hit{result, origin, pointerOf(p.path), form, p.text})
			}
		}
	}
	return hits
}

// A place is a scalar of a result at a place that the labels name.
type place struct {
	path   []string
	text   string
	origin string // as its place says; empty: none
	item   *item  // to which it belongs; nil: none
}

// An item is a part of a result that a condition judges, once a value stands in it.
type item struct {
	value   jsontext.Value
	trusted bool
}

func (f *finder) originAt(p *place, tool *toolRules) string {
	if p.origin != Trusted && p.item != nil {
		if i := p.item; i.value != nil && f.session.Holds != nil && f.spend(64*len(i.value)+1_000) {
			i.value, i.trusted = nil, f.session.Holds(tool.TrustedIf, i.value)
		}
		if p.item.trusted {
			return Trusted
		}
	}
	return p.origin
}

// placesIn returns the scalars of a result that the labels trust or the call created.
func (f *finder) placesIn(result *Result, tool *toolRules) []place {
	places := []place{}
	if !f.spend(4 * len(result.Value)) {
		return places
	}
	itemDepth, current := 0, (*item)(nil)
	_ = eachNode(documentOf(result, tool), func(path []string, _ bool, node jsontext.Value) bool {
		if !f.spend(100) {
			return false
		}
		if len(path) <= itemDepth {
			current = nil
		}
		if current == nil && tool.TrustedIf != "" && tool.items.equals(path) {
			itemDepth, current = len(path), &item{value: firstValue(node)}
		}
		p := place{item: current}
		switch text, ok := scalarText(node); {
		case !ok:
			return true
		case tool.Results == "trusted", containsPath(tool.trusted, path):
			p.origin, p.text = Trusted, text
		case containsPath(tool.creates, path):
			p.origin, p.text = Own, text
		case current != nil:
			p.text = text
		default:
			return true
		}
		f.spend(100)
		p.path = slices.Clone(path)
		places = append(places, p)
		return true
	})
	return places
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

// withoutEchoes drops the hits that may have come back from earlier calls.
func (f *finder) withoutEchoes(v *value, hits []hit) (kept []hit) {
	first := make(map[string]int64, 1) // by text: the entry at which it came first
	for _, h := range hits {
		if entry, ok := first[h.text]; !ok || h.result.Entry < entry {
			first[h.text] = h.result.Entry
		}
	}
	for _, h := range hits {
		if !f.wasSent(h.text, first[h.text]) {
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
	if f.wasSent(v.text, known) {
		return nil
	}
	return kept
}

// A question is whether a text was sent by a call that was judged before the entry known came.
type question struct {
	text  string
	known int64
}

// wasSent reports whether a call that was judged before the entry known came sent text without a source. It had one if
// it was found in that call as a whole, or if it had come from a trusted place before: then no call has planted it.
func (f *finder) wasSent(text string, known int64) bool {
	if !f.asked && f.session.Sent != nil {
		f.sent, f.session.Failed = f.session.Sent()
		f.returned = make(map[int64]int64)
		for i := range f.sent {
			s := &f.sent[i]
			f.sentSteps += s.Size()/scansInStep + 10
			if s.Returned > 0 {
				f.returned[s.Call] = s.Returned
			}
		}
	}
	f.asked = true
	q := question{text, known}
	sent, judged := f.echoes[q]
	if !judged {
		if f.echoes == nil {
			f.echoes = map[question]bool{}
		}
		sent = f.isSent(q)
		f.echoes[q] = sent
	}
	return sent
}

func (f *finder) isSent(q question) bool {
	needles := comparableForms(q.text)
	if !f.succeeded() || !f.spend(len(needles)*f.sentSteps) {
		return true
	}
	whole := utf8.RuneCountInString(needles[0]) < MinCharacters || squash(q.text) == ""
	for i, needle := range needles {
		if i > 0 || whole {
			needles[i] = between + needle + between
		}
	}
	until := f.trustedSince(q)
	return slices.ContainsFunc(f.sent, func(sent Sent) bool {
		return sent.Call <= until && !slices.Contains(sent.found, q.text) && (sent.unknown ||
			slices.ContainsFunc(needles, func(needle string) bool { return strings.Contains(sent.texts, needle) }))
	})
}

// trustedSince returns the entry at which the text of a question came first from a trusted place, as far as calls had it
// from there.
func (f *finder) trustedSince(q question) int64 {
	since := q.known
	for i := range f.sent {
		if run, ok := f.sent[i].trusted[q.text]; ok {
			if returned := f.returned[run]; returned > 0 {
				since = min(since, returned)
			}
		}
	}
	return since
}

// A Sent is what a call sent without a source, in the form in which it is compared with values that come back.
type Sent struct {
	Call     int64            // entry of the ledger at which the call was judged
	Returned int64            // entry at which its result came; 0: none is known
	texts    string           // each between two of between
	unknown  bool             // it can be any text
	found    []string         // the values that had a source
	trusted  map[string]int64 // those of them from results: the first entry of the run that had the result
}

// between stands between the texts of a Sent. None contains it.
const between = "\n"

// NewSent prepares the arguments of a call that was judged at an entry. found are the leaves of the call as they were
// recorded then. Arguments that cannot be read can be any text.
func NewSent(call int64, arguments jsontext.Value, found []Leaf) Sent {
	sources := make(map[Leaf]Leaf, len(found))
	for _, leaf := range found {
		sources[Leaf{At: leaf.At, Name: leaf.Name}] = leaf
	}
	sent := Sent{Call: call}
	var texts strings.Builder
	texts.WriteString(between)
	add := func(path []string, isName bool, text string) {
		if len(sources) > 0 {
			source := sources[Leaf{At: pointerOf(path), Name: isName}]
			if run, err := strconv.ParseInt(source.Source, 10, 64); err == nil && source.Origin != Request {
				if sent.trusted == nil {
					sent.trusted = make(map[string]int64, 1)
				}
				sent.trusted[text] = run
			}
			if source.Origin != "" && source.Origin != None {
				sent.found = append(sent.found, text)
				return
			}
		}
		for _, read := range readings(text) {
			for _, form := range comparableForms(read) {
				texts.WriteString(form + between)
			}
		}
	}
	err := eachNode(arguments, func(path []string, isMember bool, node jsontext.Value) bool {
		if isMember {
			add(path, true, path[len(path)-1])
		}
		if text, ok := scalarText(node); ok {
			add(path, false, text)
		}
		sent.unknown = sent.unknown || isContainer(node) && len(path) >= MaxDepth
		return true
	})
	sent.unknown = sent.unknown || err != nil || arguments.Kind() != '{'
	sent.texts = texts.String()
	return sent
}

// Size returns how many bytes are compared.
func (s *Sent) Size() int {
	n := len(s.texts)
	for _, v := range s.found {
		n += len(v)
	}
	return n
}

// readings returns a text and what else servers commonly take it for: what is percent-encoded, and a number with an
// exponent.
func readings(text string) []string {
	texts := []string{text}
	if decoded, err := url.QueryUnescape(text); err == nil && decoded != text {
		texts = append(texts, decoded)
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, "eE") {
		texts = append(texts, strconv.FormatFloat(number, 'f', -1, 64))
	}
	return texts
}

// comparableForms returns the letters and digits of a text, of the date that it is, and of the number that it is. A text
// without letters and digits stands for itself.
func comparableForms(text string) []string {
	forms := []string{squash(text)}
	if forms[0] == "" {
		forms[0] = strconv.Quote(text)
	}
	if date := dateOf(text); date != "" {
		forms = append(forms, "date:"+date)
	}
	if number := amountOf(text).number; number != "" {
		forms = append(forms, "number:"+number)
	}
	return forms
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
		if bytes.IndexByte(node, '\\') < 0 {
			return string(node[1 : len(node)-1]), true
		}
		text, err := jsontext.AppendUnquote(nil, node)
		return string(text), err == nil
	case '0':
		return string(node), true
	}
	return "", false
}

func isContainer(node jsontext.Value) bool { return node.Kind() == '{' || node.Kind() == '[' }

// A visitor is called with a node of a document; isMember says that the last segment of its path is the name of a
// member. A node above [MaxDepth] that is a container comes with the rest of the document: see [firstValue]. The visitor
// returns false to leave out what is below, and must not keep path and node.
type visitor func(path []string, isMember bool, node jsontext.Value) bool

// eachNode visits a value and all below it to MaxDepth, containers first. The error is the decoder's.
func eachNode(doc jsontext.Value, visit visitor) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true)) // documents are checked before
	return eachBelow(dec, doc, make([]string, 0, MaxDepth), false, visit)
}

func eachBelow(dec *jsontext.Decoder, doc jsontext.Value, path []string, isMember bool, visit visitor) error {
	kind := dec.PeekKind()
	if kind != '{' && kind != '[' || len(path) == MaxDepth {
		node, err := dec.ReadValue()
		if err == nil {
			visit(path, isMember, node)
		}
		return err
	}
	if !visit(path, isMember, bytes.TrimLeft(doc[dec.InputOffset():], ",: \t\r\n")) {
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for index := 0; dec.PeekKind() != '}' && dec.PeekKind() != ']'; index++ {
		name := strconv.Itoa(index)
		if kind == '{' {
			token, err := dec.ReadToken()
			if err != nil {
				return err
			}
			name = token.String()
		}
		if err := eachBelow(dec, doc, append(path, name), kind == '{', visit); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}

// firstValue returns the value with which a text begins; nil if there is none.
func firstValue(text jsontext.Value) jsontext.Value {
	value, err := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true)).ReadValue()
	if err != nil {
		return nil
	}
	return value
}
