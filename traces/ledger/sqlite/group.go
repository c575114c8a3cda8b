package sqlite

import (
	"bytes"
	"fmt"
	"iter"
	"unicode/utf8"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
)

// maxBefore bounds the bytes of the column before. It is a multiple of what one call needs.
const maxBefore = 32 << 10

// A group is the content of one row of events or steps: the last entry in columns, and the earlier entries as a JSON list. Fewer rows are cheaper, because
// each row needs index entries, a trigger, and a dozen bound values.
type group[T any] struct {
	last    *T
	earlier int64  // number of entries before the last
	before  string // these entries; empty if there are none
}

// grouped combines the rows into as few groups as possible, in order. Joins reports whether a row may be followed by the next one in a group; spell encodes
// it in the list, the first one with its links. The list is written into the connection's buffer.
func grouped[T any](c *conn, rows []T, joins func(a, b *T) bool, spell func(text []byte, v *T, first bool) []byte) []group[T] {
	groups := make([]group[T], 0, 2) // most calls have one large value, or none
	text := c.text[:0]
	defer func() { c.text = text }()
	for i := range rows {
		if i > 0 && joins(&rows[i-1], &rows[i]) {
			g, end := &groups[len(groups)-1], len(text)
			if g.earlier == 0 {
				text = append(text[:0], '[')
			} else {
				text = append(text, ',')
			}
			if text = spell(text, g.last, g.earlier == 0); len(text) < maxBefore {
				g.last, g.earlier = &rows[i], g.earlier+1
				continue
			}
			text = text[:end]
		}
		seal(groups, text)
		groups, text = append(groups, group[T]{last: &rows[i]}), text[:0]
	}
	seal(groups, text)
	return groups
}

// seal ends the last group.
func seal[T any](groups []group[T], text []byte) {
	if n := len(groups); n > 0 && groups[n-1].earlier > 0 {
		groups[n-1].before = string(append(text, ']'))
	}
}

// quotable reports whether a JSON string brings back all texts byte for byte.
func quotable(all ...string) bool {
	for _, s := range all {
		if !utf8.ValidString(s) {
			return false
		}
	}
	return true
}

// embeds reports whether a value, which is JSON or a reference to a blob, may stand within JSON and come back byte for byte.
func embeds[T ~string | ~[]byte](v T) bool {
	n := len(v)
	return n > 1 && v[0] == '{' && v[n-1] == '}' || string(v) == "null"
}

// unspell decodes the earlier entries of a group, and accepts only the exact encoding. Follow makes the entries of the list, or returns nothing if an entry
// should have its own row.
func unspell[T, E any](row *T, earlier int64, before string, follow func(list []E) []T, spell func([]byte, *T, bool) []byte) ([]T, error) {
	if earlier == 0 && before == "" {
		return []T{*row}, nil
	}
	if len(before) > maxBefore {
		return nil, fmt.Errorf("what stands before it has %d bytes; it must have %d at most", len(before), maxBefore)
	}
	var list []E
	if err := canonical.Unmarshal([]byte(before), &list); err != nil {
		return nil, fmt.Errorf("what stands before it cannot be read: %w", err)
	}
	if len(list) == 0 || int64(len(list)) != earlier {
		return nil, fmt.Errorf("%d stand before it, and it says %d", len(list), earlier)
	}
	all := follow(list)
	if all == nil {
		return nil, fmt.Errorf("what stands before it must have a row of its own")
	}
	all = append(all, *row)
	text := make([]byte, 0, len(before))
	for i := range list {
		text = append(text, "[,"[min(i, 1)])
		text = spell(text, &all[i], i == 0)
	}
	if text = append(text, ']'); !bytes.Equal(text, []byte(before)) {
		return nil, fmt.Errorf("what stands before it is not written as a ledger writes it")
	}
	return all, nil
}

// unreadableGroup is the error of a row whose group cannot be read.
func unreadableGroup(table, key string, err error) error {
	return fmt.Errorf("%w: %w", ErrNotLedger, &ledger.Fault{Table: table, Key: key, What: err.Error()})
}

// apart yields the entries of each row, in order.
func apart[T any](t *tx, rows iter.Seq2[[]T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		for group, err := range rows {
			if err != nil {
				yield(none, err)
				return
			}
			for i := range group {
				if err := t.usable(); err != nil {
					yield(none, err)
					return
				}
				if !yield(group[i], nil) {
					return
				}
			}
		}
	}
}
