package ledger

import (
	"errors"
	"io"
	"sort"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
)

// exportedEntry is the line of an entry. The line of a pruned entry has no body.
type exportedEntry struct {
	Body   jsontext.Value `json:"body,omitempty"`
	Hash   tlog.Hash      `json:"hash"`
	Header jsontext.Value `json:"header"`
	Index  int64          `json:"index"`
}

// exportedBlob is the line of a blob.
type exportedBlob struct {
	Digest canonical.Digest `json:"blob"`
	Kind   string           `json:"kind"`
	Text   string           `json:"text"`
}

// An Exporter writes entries and blobs as lines of canonical JSON. A blob comes before the first
// entry that refers to it.
type Exporter struct {
	To   io.Writer
	Next int64 // index of the first entry that is not written yet

	known map[canonical.Digest]bool // blobs that were written already
}

// Export writes the entries from x.Next on.
func (x *Exporter) Export(r Reader) error {
	for e, err := range r.Entries(x.Next) {
		if err != nil {
			return err
		}
		refs, err := e.blobReferences()
		if err != nil {
			return err
		}
		for _, d := range refs {
			if err := x.writeBlob(r, d); err != nil {
				return err
			}
		}

		hash, err := leafHash(r, e.Index)
		if err != nil {
			return err
		}
		if err := x.writeLine(&exportedEntry{e.Body, hash, e.Leaf(), e.Index}); err != nil {
			return err
		}
		x.Next = e.Index + 1
	}
	return nil
}

func (x *Exporter) writeBlob(r Reader, d canonical.Digest) error {
	if x.known[d] {
		return nil
	}
	b, err := r.Blob(d)
	if err != nil {
		return err
	}
	if x.known == nil {
		x.known = make(map[canonical.Digest]bool)
	}
	x.known[d] = true
	return x.writeLine(&exportedBlob{b.Digest, b.Kind, b.Text})
}

func (x *Exporter) writeLine(v any) error {
	text, err := canonical.Marshal(v)
	if err != nil {
		return err
	}
	_, err = x.To.Write(append(text, '\n'))
	return err
}

// FirstEntryAt returns the index of the first entry with this time or a later one. If there is
// none, it returns the index of the next new entry.
func FirstEntryAt(r Reader, at string) (int64, error) {
	end, err := r.End()
	if err != nil {
		return 0, err
	}
	first := sort.Search(int(end.Size), func(i int) bool {
		for e, readErr := range r.Entries(int64(i)) {
			err = errors.Join(err, readErr)
			return e.At >= at
		}
		return true
	})
	return int64(first), err
}
