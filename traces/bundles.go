package traces

import (
	"bytes"
	"fmt"
	"sync"

	"pgfsm/policy/canonical"
)

// bundles remembers the bundles that traces begin with. Traces of one operator share theirs, it is most of a typical
// trace, and a byte-for-byte comparison costs less than reading and hashing it again. The zero value remembers none.
type bundles struct {
	mu    sync.Mutex
	known []*beginning // the last used first
}

// maxBeginnings bounds what is remembered.
const maxBeginnings = 32

// A beginning is how a trace with a certain bundle begins, and what that means.
type beginning struct {
	text   []byte // `{"bundle":` and the bundle in canonical form
	bundle Bundle
	hash   canonical.Hasher // of the header, up to here
}

const beforeBundle = `{"bundle":`

// placeholder stands for a known bundle while the rest of a trace is read.
var placeholder = []byte(beforeBundle + "0")

// read reads a trace; see [Read].
func (b *bundles) read(doc []byte) (*Trace, error) {
	var d document
	known := b.find(doc)
	if known != nil {
		rest := doc[len(known.text):]
		doc = append(append(make([]byte, 0, len(placeholder)+len(rest)), placeholder...), rest...)
	}
	if err := d.parse(doc); err != nil {
		return nil, err
	}
	if format, err := unquote(d.format); err != nil || format != Format {
		return nil, fmt.Errorf("not a trace: its format is not %q", Format)
	}
	if known == nil {
		var err error
		if known, err = begin(d.bundle); err != nil {
			return nil, &TamperError{Place: "header", What: "bundle: " + err.Error()}
		}
	}
	t := &Trace{}
	last, err := t.readChain(known.header(&d), d.rawSteps)
	if err != nil {
		return nil, err
	}
	t.Header = Header{Bundle: known.bundle, Format: Format}
	if err := t.Header.read(&d); err != nil {
		return nil, &TamperError{Place: "header", What: err.Error()}
	}
	if err := t.close(last, &d); err != nil {
		return nil, err
	}
	b.keep(known)
	return t, nil
}

// header is the digest of the header. Its small members are brought to canonical form first; ours have it already.
func (k *beginning) header(d *document) canonical.Digest {
	h := k.hash.Clone()
	for _, m := range []struct {
		label string
		value []byte
	}{
		{`,"format":`, d.format}, {`,"machine":`, d.machine}, {`,"request":`, d.request}, {`,"run_id":`, d.runID},
	} {
		value, err := canonical.JSON(m.value)
		if err != nil {
			value = m.value // it was read as strict JSON, so this does not happen; the digest would not fit
		}
		h.Write([]byte(m.label))
		h.Write(value)
	}
	h.Write([]byte{'}'})
	return h.Digest()
}

// read takes the small members of a header whose digest has been found right.
func (h *Header) read(d *document) error {
	if err := canonical.Unmarshal(d.machine, &h.Machine); err != nil {
		return err
	}
	if err := canonical.Unmarshal(d.request, &h.Request); err != nil {
		return err
	}
	return canonical.Unmarshal(d.runID, &h.RunID)
}

// begin makes the beginning of a bundle as it stands in a document.
func begin(bundle []byte) (*beginning, error) {
	c, err := canonical.JSON(bundle)
	if err != nil {
		return nil, err
	}
	k := &beginning{text: append([]byte(beforeBundle), c...), hash: canonical.NewHasher(kindHeader)}
	k.hash.Write(k.text)
	return k, canonical.Unmarshal(c, &k.bundle)
}

// find returns the known beginning of doc, or nil.
func (b *bundles) find(doc []byte) *beginning {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, k := range b.known {
		// The comma is what shows that the bundle's value ends here.
		if len(doc) > len(k.text) && doc[len(k.text)] == ',' && bytes.HasPrefix(doc, k.text) {
			copy(b.known[1:i+1], b.known[:i])
			b.known[0] = k
			return k
		}
	}
	return nil
}

// keep remembers the beginning of a trace that was found whole.
func (b *bundles) keep(k *beginning) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, known := range b.known {
		if known == k || bytes.Equal(known.text, k.text) {
			return
		}
	}
	b.known = append([]*beginning{k}, b.known[:min(len(b.known), maxBeginnings-1)]...)
}
