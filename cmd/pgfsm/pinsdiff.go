package main

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
)

// Kinds of [change].
const (
	valueAdded   = "added"
	valueRemoved = "removed"
	valueChanged = "changed"
)

// change is one difference between two documents. At points into the new one, and for what was removed into the old.
type change struct {
	At   jsontext.Pointer `json:"at"`
	Kind string           `json:"kind"`
	Old  jsontext.Value   `json:"old,omitzero"`
	New  jsontext.Value   `json:"new,omitzero"`
}

// differences are what changed between two documents in canonical form. There are none exactly if their bytes are the
// same, so every change of a digest shows.
func differences(at jsontext.Pointer, before, now jsontext.Value) []change {
	switch {
	case bytes.Equal(before, now):
		return nil
	case before.Kind() == '{' && now.Kind() == '{':
		return memberDifferences(at, before, now)
	case before.Kind() == '[' && now.Kind() == '[':
		return itemDifferences(at, before, now)
	}
	return []change{{At: at, Kind: valueChanged, Old: before, New: now}}
}

func memberDifferences(at jsontext.Pointer, before, now jsontext.Value) (all []change) {
	was, is := maps.Collect(canonical.Members(before)), maps.Collect(canonical.Members(now))
	names := slices.Concat(slices.Collect(maps.Keys(was)), slices.Collect(maps.Keys(is)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		here := at.AppendToken(name)
		o, inOld := was[name]
		n, inNew := is[name]
		switch {
		case !inNew:
			all = append(all, change{At: here, Kind: valueRemoved, Old: o})
		case !inOld:
			all = append(all, change{At: here, Kind: valueAdded, New: n})
		default:
			all = append(all, differences(here, o, n)...)
		}
	}
	return all
}

// itemDifferences compares two lists from both ends, so that an item put in between moves no other.
func itemDifferences(at jsontext.Pointer, before, now jsontext.Value) (all []change) {
	was, is := items(before), items(now)
	same := func(a, b jsontext.Value) bool { return bytes.Equal(a, b) }
	from, behind := commonEnds(was, is, same)
	was, is = was[from:len(was)-behind], is[from:len(is)-behind]
	for i := range max(len(was), len(is)) {
		here := at.AppendToken(fmt.Sprint(from + i))
		switch {
		case i >= len(is):
			all = append(all, change{At: here, Kind: valueRemoved, Old: was[i]})
		case i >= len(was):
			all = append(all, change{At: here, Kind: valueAdded, New: is[i]})
		default:
			all = append(all, differences(here, was[i], is[i])...)
		}
	}
	return all
}

func items(list jsontext.Value) (values []jsontext.Value) {
	if err := json.Unmarshal(list, &values); err != nil {
		panic("a list in canonical form cannot be read: " + err.Error())
	}
	return values
}

// commonEnds counts what two lists have in common at their beginnings, and of the rest at their ends.
func commonEnds[T any](a, b []T, same func(a, b T) bool) (front, back int) {
	for front < min(len(a), len(b)) && same(a[front], b[front]) {
		front++
	}
	for back < min(len(a), len(b))-front && same(a[len(a)-1-back], b[len(b)-1-back]) {
		back++
	}
	return front, back
}

// Signs of [textRow].
const (
	textSame    = " "
	textRemoved = "-"
	textAdded   = "+"
	textSkipped = "…" // the row says how much is not shown
)

// textRow is a piece of two texts that are shown as one.
type textRow struct{ sign, text string }

const (
	shortText    = 120     // bytes up to which both texts are shown whole
	contextWords = 8       // around what changed in one line
	contextLines = 2       // around what changed in many
	maxTextTable = 4 << 20 // pairs of words that are compared; beyond, all that stands between the ends counts as changed
)

var wordPattern = regexp.MustCompile(`\S+\s*|\s+`)

// textDifferences shows two texts as one: line by line where there are lines, else word by word. All that changed is
// there; of what is the same, what stands around it, and how much was left out.
func textDifferences(before, now string) []textRow {
	if strings.Contains(before+now, "\n") {
		lines := func(s string) []string { return slices.Collect(strings.Lines(s)) }
		return around(compare(lines(before), lines(now)), contextLines)
	}
	if max(len(before), len(now)) <= shortText {
		return []textRow{{textRemoved, before}, {textAdded, now}}
	}
	words := around(compareWords(before, now), contextWords)
	var rows []textRow
	for _, w := range words {
		if last := len(rows) - 1; last >= 0 && rows[last].sign == w.sign && w.sign != textSkipped {
			rows[last].text += w.text
		} else {
			rows = append(rows, w)
		}
	}
	return rows
}

func compareWords(before, now string) []textRow {
	return compare(wordPattern.FindAllString(before, -1), wordPattern.FindAllString(now, -1))
}

// compare says of each piece of two texts whether it is in both, keeping as many as possible.
func compare(a, b []string) (rows []textRow) {
	front, back := commonEnds(a, b, func(a, b string) bool { return a == b })
	for _, s := range a[:front] {
		rows = append(rows, textRow{textSame, s})
	}
	rows = append(rows, compareMiddle(a[front:len(a)-back], b[front:len(b)-back])...)
	for _, s := range a[len(a)-back:] {
		rows = append(rows, textRow{textSame, s})
	}
	return rows
}

// compareMiddle finds the longest common subsequence, unless that is too much work.
func compareMiddle(a, b []string) (rows []textRow) {
	var longest [][]int32
	if len(a)*len(b) <= maxTextTable {
		longest = make([][]int32, len(a)+1)
		longest[len(a)] = make([]int32, len(b)+1)
		for i := len(a) - 1; i >= 0; i-- {
			longest[i] = make([]int32, len(b)+1)
			for j := len(b) - 1; j >= 0; j-- {
				if longest[i][j] = max(longest[i+1][j], longest[i][j+1]); a[i] == b[j] {
					longest[i][j] = longest[i+1][j+1] + 1
				}
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case longest != nil && i < len(a) && j < len(b) && a[i] == b[j]:
			rows = append(rows, textRow{textSame, a[i]})
			i, j = i+1, j+1
		case i < len(a) && (longest == nil || j == len(b) || longest[i+1][j] >= longest[i][j+1]):
			rows = append(rows, textRow{textRemoved, a[i]})
			i++
		default:
			rows = append(rows, textRow{textAdded, b[j]})
			j++
		}
	}
	return rows
}

// around keeps what changed and a few rows around it, and counts the rest.
func around(rows []textRow, context int) (kept []textRow) {
	near := make([]bool, len(rows))
	for i, r := range rows {
		if r.sign == textSame {
			continue
		}
		for k := max(0, i-context); k <= min(len(rows)-1, i+context); k++ {
			near[k] = true
		}
	}
	for i := 0; i < len(rows); i++ {
		if near[i] {
			kept = append(kept, rows[i])
			continue
		}
		skipped := 0
		for ; i < len(rows) && !near[i]; i++ {
			skipped += len(rows[i].text)
		}
		i--
		kept = append(kept, textRow{textSkipped, fmt.Sprintf("%d bytes that are the same", skipped)})
	}
	return kept
}
