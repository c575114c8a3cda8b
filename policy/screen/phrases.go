package screen

import (
	"slices"
	"strings"
)

// RE2 cannot say "not followed by"; these build patterns that say which words may stand where by spelling the complement out.

// A wordNode is a node of a trie of words.
type wordNode struct {
	next   [26]*wordNode
	prefix bool // every word that begins like this is meant
	exact  bool // the word that ends here is meant
}

// otherWord returns a pattern for one word that is not among words: space-separated, lower case; a word stands for all that begin
// with it, and with a dot behind it for itself only. "i" and "l" are not told apart, so that the pattern holds for mapped text too.
func otherWord(words string) string {
	var root wordNode
	for _, w := range strings.Fields(words) {
		root.add(w)
		if m := digraphs(w); m != w {
			root.add(m)
		}
	}
	return root.pattern()
}

func (n *wordNode) add(word string) {
	text := strings.TrimSuffix(word, ".")
	for _, c := range []byte(text) {
		if c == 'l' {
			c = 'i'
		}
		child := &n.next[c-'a']
		if *child == nil {
			*child = &wordNode{}
		}
		n = *child
	}
	n.prefix = n.prefix || text == word
	n.exact = n.exact || text != word
}

func (n *wordNode) pattern() string {
	var b strings.Builder
	b.WriteString(`(?:[0-9_`)
	for c := byte('a'); c <= 'z'; c++ {
		if n.next[c-'a'] == nil && (c != 'l' || n.next['i'-'a'] == nil) {
			b.WriteByte(c)
		}
	}
	b.WriteString(`]\w*`)
	for i, child := range n.next {
		if child == nil || child.prefix {
			continue
		}
		b.WriteByte('|')
		if c := 'a' + byte(i); c == 'i' {
			b.WriteString("[il]")
		} else {
			b.WriteByte(c)
		}
		b.WriteString(child.pattern())
	}
	if !n.exact && n.hasChildren() {
		b.WriteString(`|\b`)
	}
	b.WriteByte(')')
	return b.String()
}

func (n *wordNode) hasChildren() bool {
	return slices.ContainsFunc(n.next[:], func(c *wordNode) bool { return c != nil })
}

// What stands between two words of one sentence.
const between = `[^\w.;:?!]+`

// anyOf returns a pattern for one of the space-separated alternatives; "_" stands for an optional space or hyphen, "~" for one of these.
func anyOf(alternatives string) string {
	p := strings.Join(strings.Fields(alternatives), "|")
	return "(?:" + strings.NewReplacer("_", `[ \-]?`, "~", `[ \-]`).Replace(p) + ")"
}

// A vocabulary is the words that make a sentence benign.
type vocabulary struct {
	lead string // before the verb
	gap  string // between verb and object
	tail string // behind the object
}

// verb returns a pattern for verbs that none of the three words before them excuses.
func (v vocabulary) verb(verbs string) string {
	word := otherWord(v.lead) + `[^\w.;:?!,]+`
	return `(?:(?:^|[.;:?!,])\W*(?:` + word + `){0,2}|\b(?:` + word + `){3})` + anyOf(verbs)
}

// request returns a pattern for verb, up to five words that excuse nothing, and object.
func (v vocabulary) request(verbs, objects string) string {
	return v.verb(verbs) + `(?:` + between + otherWord(v.gap) + `){0,5}(?:` + between + `)?` + v.object(objects)
}

// object returns a pattern for objects that the word behind them does not excuse.
func (v vocabulary) object(objects string) string {
	return anyOf(objects) + `(?:\W*$|[^\w \-/&]|[ \-/&]+` + otherWord(v.tail) + `)`
}
