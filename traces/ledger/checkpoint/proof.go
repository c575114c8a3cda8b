package checkpoint

import (
	"bytes"
	"encoding/base64"
	"slices"

	formats "github.com/transparency-dev/formats/proof"
	"golang.org/x/mod/sumdb/tlog"
)

// A Proof shows that the entries of a run are in a log. [Proof.Verify] verifies it.
type Proof struct {
	Signed  []byte // the signed checkpoint
	Index   int64  // index of the run's last entry
	Hashes  tlog.RecordProof
	Entries []Entry // the run's entries, in order
}

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
		doc.ExtraData = append(append(doc.ExtraData, e.Header...), '\n')
		doc.ExtraData = append(append(doc.ExtraData, e.Body...), '\n')
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
		return nil, ruleProofEntries.Broken("not a proof of a run: its second line has no extra data")
	}
	entries, err := base64.StdEncoding.AppendDecode(nil, extra)
	if err != nil {
		return nil, ruleProofEntries.Broken("not a proof of a run: the extra data: %w", err)
	}

	var doc formats.TLogProof
	if err := doc.Unmarshal(append(append(bytes.Clone(header), '\n'), rest...)); err != nil {
		return nil, ruleProofEntries.Broken("not a proof of a run: %w", err)
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
		return nil, ruleProofEntries.Broken("not a proof of a run: it is not in its one form")
	}

	return p, nil
}

// parseEntries reads the lines of the extra data: the header and the body of each entry.
func parseEntries(text []byte) (entries []Entry, err error) {
	lines := bytes.Split(text, []byte("\n"))
	if len(lines) < 3 || len(lines)%2 == 0 || len(lines[len(lines)-1]) > 0 {
		return nil, ruleProofEntries.Broken("not a proof of a run: it has no entries, or half of one")
	}
	for pair := range slices.Chunk(lines[:len(lines)-1], 2) {
		entries = append(entries, Entry{Header: pair[0], Body: pair[1]})
	}
	return entries, nil
}
