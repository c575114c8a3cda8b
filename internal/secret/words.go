package secret

import (
	"bytes"
	"encoding/binary"
)

// A wordIndex finds the secrets in a text.
type wordIndex struct {
	// The first two bytes of the secrets: most places of a text are passed over by them.
	pairs  [1 << 16]bool
	prefix map[uint64][][]byte // the secrets by their first MinBytes bytes, the longest first
}

func (w *wordIndex) addWord(word string) {
	if w.prefix == nil {
		w.prefix = map[uint64][][]byte{}
	}
	begin := binary.BigEndian.Uint64([]byte(word))
	w.pairs[begin>>48] = true
	w.prefix[begin] = append(w.prefix[begin], []byte(word))
}

// nextWord returns the first place from which text has a word, and where that ends; the longest
// word if there are several.
func (w *wordIndex) nextWord(text []byte, from int) (start, end int, found bool) {
	for i := from; i+MinBytes <= len(text); i++ {
		if !w.pairs[binary.BigEndian.Uint16(text[i:])] {
			continue
		}
		for _, word := range w.prefix[binary.BigEndian.Uint64(text[i:])] {
			if bytes.HasPrefix(text[i:], word) {
				return i, i + len(word), true
			}
		}
	}
	return 0, 0, false
}

// matchIn reports whether text holds a word.
func (w *wordIndex) matchIn(text []byte) bool {
	_, _, found := w.nextWord(text, 0)
	return found
}

// matchSpans returns the spans of text that hold words. Overlapping words share one span.
func (w *wordIndex) matchSpans(text []byte) (found []span) {
	for offset := 0; ; {
		start, end, ok := w.nextWord(text, offset)
		if !ok {
			return found
		}
		found = appendSpan(found, span{start: start, end: end})
		offset = start + 1
	}
}
