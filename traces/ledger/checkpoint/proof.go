package checkpoint

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	formats "github.com/transparency-dev/formats/proof"
	"golang.org/x/mod/sumdb/tlog"

	"pgfsm/internal/canonical"
)

// A Proof shows that the entries of a run are in a log. [Proof.Verify] verifies it.
type Proof struct {
	Signed  []byte // the signed checkpoint
	Index   int64  // index of the run's last entry
	Hashes  tlog.RecordProof
	Entries []Entry // the run's entries, in order
}

// An Entry is one entry of a run in the form of the log.
type Entry struct {
	Leaf   []byte // canonical JSON
	Events []byte // canonical JSON, if the leaf refers to its events by their digest
}

// leaf holds the members of a leaf in canonical order.
type leaf struct {
	At     string         `json:"at"`
	By     string         `json:"by"`
	Events jsontext.Value `json:"events"`
	N      int            `json:"n"`
	Prev   string         `json:"prev"` // leaf hash of the run's previous entry
	Run    string         `json:"run"`
}

// blobKind is the kind of digest with which a leaf refers to its events.
const blobKind = "blob"

// Prove proves that the run's last entry, which has this index, is in the log at a signed
// checkpoint.
func Prove(signed []byte, tree tlog.HashReader, index int64, entries []Entry) (*Proof, error) {
	c, err := Read(signed)
	if err != nil {
		return nil, err
	}
	p := &Proof{Signed: signed, Index: index, Entries: entries}
	if p.Hashes, err = tlog.ProveRecord(c.Size, index, tree); err != nil {
		return nil, err
	}
	_, err = p.checkInclusion(c)
	return p, err
}

// Marshal writes a proof as c2sp.org/tlog-proof@v1.
func (p *Proof) Marshal() []byte {
	doc := formats.TLogProof{Index: uint64(p.Index), Checkpoint: p.Signed, ExtraData: []byte{}}
	for _, hash := range p.Hashes {
		doc.Hashes = append(doc.Hashes, hash)
	}
	for _, e := range p.Entries {
		doc.ExtraData = append(append(doc.ExtraData, e.Leaf...), '\n')
		if e.Events != nil {
			doc.ExtraData = append(append(doc.ExtraData, e.Events...), '\n')
		}
	}
	return doc.Marshal()
}

// ParseProof reads a proof in exactly the form that [Proof.Marshal] writes. It verifies nothing.
func ParseProof(text []byte) (*Proof, error) {
	// The library reads lines of at most 64 KiB; the extra data is one line, which may be longer.
	header, rest, _ := bytes.Cut(text, []byte("\n"))
	line, rest, _ := bytes.Cut(rest, []byte("\n"))
	extra, found := bytes.CutPrefix(line, []byte("extra "))
	if !found {
		return nil, errors.New("not a proof of a run: its second line has no extra data")
	}
	entries, err := base64.StdEncoding.AppendDecode(nil, extra)
	if err != nil {
		return nil, fmt.Errorf("not a proof of a run: the extra data: %w", err)
	}

	var doc formats.TLogProof
	if err := doc.Unmarshal(append(append(bytes.Clone(header), '\n'), rest...)); err != nil {
		return nil, fmt.Errorf("not a proof of a run: %w", err)
	}

	p := &Proof{Signed: doc.Checkpoint, Index: int64(doc.Index)}
	for _, hash := range doc.Hashes {
		p.Hashes = append(p.Hashes, hash)
	}

	if p.Entries, err = parseEntries(entries); err != nil {
		return nil, err
	}
	// A proof has one form, so writing it again gives the same text.
	if !bytes.Equal(p.Marshal(), text) {
		return nil, errors.New("not a proof of a run: it is not in its one form")
	}

	return p, nil
}

// parseEntries reads the lines of the extra data.
func parseEntries(lines []byte) (entries []Entry, err error) {
	for more := true; more; {
		var e Entry
		e.Leaf, lines, more = bytes.Cut(lines, []byte("\n"))
		if !more {
			break
		}
		l, err := parseLeaf(e.Leaf)
		if err != nil {
			return nil, fmt.Errorf("entry %d of the run: %w", len(entries), err)
		}
		if l.Events.Kind() == '"' {
			if e.Events, lines, more = bytes.Cut(lines, []byte("\n")); !more {
				return nil, fmt.Errorf("entry %d of the run: its events are missing", len(entries))
			}
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, errors.New("not a proof of a run: it has no entries")
	}
	return entries, nil
}

// parseLeaf reads a leaf, which must be in canonical form.
func parseLeaf(text []byte) (*leaf, error) {
	l := new(leaf)
	if err := canonical.Unmarshal(text, l); err != nil {
		return nil, err
	}
	if c, err := canonical.Sorted(l); err != nil || !bytes.Equal(c, text) {
		return nil, errors.New("it is not in canonical form, or a member is missing")
	}
	return l, nil
}

// eventsText returns the events of an entry. If the leaf refers to them by a digest, the text must
// have this digest.
func (e *Entry) eventsText(l *leaf) (jsontext.Value, error) {
	if l.Events.Kind() != '"' {
		return l.Events, nil
	}
	ref, err := canonical.Unquote(l.Events)
	if err != nil {
		return nil, err
	}
	if digest := "@" + string(canonical.Sum(blobKind, e.Events)); ref != digest {
		return nil, fmt.Errorf("it refers to the events %s, and these are %s", ref, digest)
	}
	return e.Events, nil
}
