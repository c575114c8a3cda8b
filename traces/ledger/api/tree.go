package api

import (
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/traces/ledger"
)

// A treePicture shows the way from an entry to the root of the tree: at each level the computed hash
// and its sibling. The audit page lists the hashes that it does not draw.
type treePicture struct {
	Height int
	Levels []treeLevel // the root's children first
	Rest   int         // levels below that are not drawn
}

// A treeLevel is one level of the picture.
type treeLevel struct {
	Y       int
	Top     int // centre of the hash above
	Mine    int // centre of the computed hash
	Other   int // centre of its sibling
	Label   string
	Sibling string
}

// Sizes of the picture.
const (
	treeLevels = 3
	treeWidth  = 420
	sideCentre = 69 // from the nearer edge
	levelGap   = 62
)

// newTreePicture draws the top of a proof. The place of each hash follows from the index and the size
// (RFC 9162, section 2.1.3.2).
func newTreePicture(proof *ledger.Inclusion) (t treePicture) {
	var lefts []bool // for each hash of the path, from the leaf: the computed hash is the left one
	index, last := proof.Index, proof.Size-1
	for range proof.Path {
		left := index%2 == 0 && index != last
		lefts = append(lefts, left)
		if !left {
			for index%2 == 0 && index != 0 {
				index, last = index>>1, last>>1
			}
		}
		index, last = index>>1, last>>1
	}

	top := treeWidth / 2
	for i := len(proof.Path) - 1; i >= 0 && len(t.Levels) < treeLevels; i-- {
		level := treeLevel{
			Y: levelGap * (len(t.Levels) + 1), Top: top, Mine: sideCentre, Other: treeWidth - sideCentre,
			Label: "computed", Sibling: shortHash(proof.Path[i]),
		}
		if !lefts[i] {
			level.Mine, level.Other = level.Other, level.Mine
		}
		if i == 0 {
			level.Label = fmt.Sprint("entry ", proof.Index)
		}
		top = level.Mine
		t.Levels = append(t.Levels, level)
	}
	t.Rest = len(proof.Path) - len(t.Levels)
	t.Height = levelGap*(len(t.Levels)+1) - 20
	return t
}

// Tree draws the top of the inclusion proof.
func (b *runView) Tree() treePicture { return newTreePicture(&b.Proof) }

// Root is the beginning of the root's hash.
func (b *runView) Root() string { return shortHash(b.Proof.Root) }

// shortHash returns the first characters of a hash, for the picture.
func shortHash(h tlog.Hash) string { return strings.TrimRight(h.String(), "=")[:12] }
