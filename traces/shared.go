package traces

import (
	"bytes"
	"errors"
	"sync"

	"pgfsm/policy/canonical"
)

// shared remembers the large values that many traces have in common: the bundle they begin with and the tools that the
// servers listed. They are most of a typical trace, and a byte-for-byte comparison costs far less than reading them
// again. The zero value remembers none.
type shared struct {
	mu         sync.Mutex
	beginnings []*beginning // the last used first
	listings   [][]byte
}

// What is remembered at most.
const (
	maxBeginnings = 32
	maxListings   = 32
	minListing    = 1 << 10 // bytes; smaller ones are not worth it
	maxListing    = 1 << 20
)

// A beginning is how a trace with a certain bundle begins, and what that means.
type beginning struct {
	text   []byte // `{"bundle":` and the bundle in canonical form
	bundle Bundle // its content has its digest
}

// A cut is a known value that was taken out of a document before it is read.
type cut struct {
	at  int64 // where an empty string stands for it
	raw []byte
}

const (
	beforeBundle = `{"bundle":`
	placeholder  = `""`
)

var (
	beforeEvent   = []byte(`"event":`)
	beforeListing = []byte(`"event":{"happened":"tools_listed"`)
)

// shorten replaces known values of doc by an empty string.
//
// A known value is a whole JSON value that was read strictly before. A reader of the short document is in the same state
// where the value begins, and an empty string, like an object, ends where it ends, whatever is behind it. What the value
// is a part of is for the reader to say: if it did not meet each cut as a step's member, the document is read as a whole.
func (s *shared) shorten(doc []byte) (short []byte, known *beginning, cuts []cut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, k := range s.beginnings {
		// The comma shows that the bundle's value ends here.
		if len(doc) > len(k.text) && doc[len(k.text)] == ',' && bytes.HasPrefix(doc, k.text) {
			copy(s.beginnings[1:i+1], s.beginnings[:i])
			s.beginnings[0], known = k, k
			break
		}
	}
	if known == nil {
		return doc, nil, nil
	}
	rest := doc[len(known.text):]
	short = append(make([]byte, 0, len(rest)+len(beforeBundle)+len(placeholder)), beforeBundle+placeholder...)
	for {
		at := bytes.Index(rest, beforeListing)
		if at < 0 {
			return append(short, rest...), known, cuts
		}
		at += len(beforeEvent)
		short, rest = append(short, rest[:at]...), rest[at:]
		if raw := s.listing(rest); raw != nil {
			cuts = append(cuts, cut{int64(len(short)), raw})
			short, rest = append(short, placeholder...), rest[len(raw):]
		}
	}
}

// listing returns the known listing that text begins with, or nil.
func (s *shared) listing(text []byte) []byte {
	for _, known := range s.listings {
		if bytes.HasPrefix(text, known) {
			return known
		}
	}
	return nil
}

// keep remembers the large values of a trace that was found whole.
func (s *shared) keep(k *beginning, steps []Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.beginnings) == 0 || s.beginnings[0] != k {
		s.beginnings = append([]*beginning{k}, s.beginnings[:min(len(s.beginnings), maxBeginnings-1)]...)
	}
	for i := range steps {
		event := steps[i].Event
		if len(event) < minListing || len(event) > maxListing ||
			!bytes.HasPrefix(event, beforeListing[len(beforeEvent):]) || s.listing(event) != nil {
			continue
		}
		s.listings = append([][]byte{bytes.Clone(event)}, s.listings[:min(len(s.listings), maxListings-1)]...)
	}
}

// read reads a trace; see [Read].
func (s *shared) read(doc []byte) (*Trace, error) {
	short, known, cuts := s.shorten(doc)
	d := &document{cuts: cuts}
	err := d.parse(short)
	if known != nil && (err != nil || len(d.cuts) > 0) {
		known, d = nil, &document{}
		err = d.parse(doc)
	}
	if err != nil {
		return nil, err
	}
	if known == nil {
		var err error
		if known, err = begin(d.bundle); err != nil {
			return nil, &TamperError{Place: "header", What: "bundle: " + err.Error()}
		}
	}
	t := &Trace{Header: Header{Bundle: known.bundle, Format: Format}}
	headerErr := t.Header.read(d)
	last, err := t.readChain(t.Header.digest(), d.rawSteps)
	if err != nil {
		return nil, err
	}
	if headerErr != nil {
		return nil, &TamperError{Place: "header", What: headerErr.Error()}
	}
	if err := t.close(last, d); err != nil {
		return nil, err
	}
	s.keep(known, t.Steps)
	return t, nil
}

// begin makes the beginning of a bundle as it stands in a document.
func begin(bundle []byte) (*beginning, error) {
	c, err := canonical.JSON(bundle)
	if err != nil {
		return nil, err
	}
	k := &beginning{text: append([]byte(beforeBundle), c...)}
	if err := canonical.Unmarshal(c, &k.bundle); err != nil {
		return nil, err
	}
	return k, k.bundle.check()
}

// read takes the small members of a header. What does not decode has another digest than the one that was chained.
func (h *Header) read(d *document) error {
	if err := canonical.Unmarshal(d.machine, &h.Machine); err != nil {
		return err
	}
	if err := canonical.Unmarshal(d.request, &h.Request); err != nil {
		return err
	}
	// The digest is that of what was decoded, and an empty member decodes like a missing one.
	stated, err := canonical.JSON(d.request)
	if err != nil {
		return err
	}
	if !bytes.Equal(canonical.MustSorted(&h.Request), stated) {
		return errors.New("its request is not in its one form: a member is missing, or is another one")
	}
	if err := canonical.Unmarshal(d.runID, &h.RunID); err != nil {
		return err
	}
	return checkRunID(h.RunID)
}
