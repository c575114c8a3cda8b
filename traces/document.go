package traces

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
)

// document holds the members of a trace as they stand in the file.
type document struct {
	bundle, format, head, machine, outcome, request, runID jsontext.Value

	rawSteps []rawStep
	cuts     []cut // those that were not met yet
}

func (d *document) slot(name []byte) *jsontext.Value {
	switch string(name) {
	case `"bundle"`:
		return &d.bundle
	case `"format"`:
		return &d.format
	case `"head"`:
		return &d.head
	case `"machine"`:
		return &d.machine
	case `"outcome"`:
		return &d.outcome
	case `"request"`:
		return &d.request
	case `"run_id"`:
		return &d.runID
	}
	return nil
}

// parse finds the members of a trace in one pass. The decoder refuses what is not strict JSON.
func (d *document) parse(doc []byte) error {
	p := newParser(doc, d.cuts)
	defer func() { d.cuts = p.cuts }()
	if p.dec.PeekKind() != '{' {
		return errors.New("not a trace: it is not a JSON object")
	}
	steps := false
	err := p.object(func(name []byte) error {
		if string(name) == `"steps"` {
			steps = true
			return d.parseSteps(p)
		}
		slot := d.slot(name)
		if slot == nil {
			return &TamperError{Place: "header", What: "it has a member " + clip(string(name))}
		}
		var err error
		*slot, err = p.value()
		return err
	})
	if err != nil {
		return err
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return canonical.ErrTrailing
	}
	return d.complete(steps)
}

// complete tells a trace that lost a member from a document that never was one: a trace says its format.
func (d *document) complete(steps bool) error {
	if format, err := unquote(d.format); err != nil || format != Format {
		return fmt.Errorf("not a trace: its format is not %q", Format)
	}
	for _, m := range []struct {
		place, name string
		value       jsontext.Value
	}{
		{"header", "bundle", d.bundle}, {"header", "machine", d.machine}, {"header", "request", d.request},
		{"header", "run_id", d.runID}, {"outcome", "outcome", d.outcome}, {"outcome", "head", d.head},
	} {
		if m.value == nil {
			return &TamperError{Place: m.place, What: "it has no member " + m.name}
		}
	}
	if !steps {
		return &TamperError{Place: "step", Seq: 0, What: "there is no list of steps"}
	}
	return nil
}

func (d *document) parseSteps(p *parser) error {
	if p.dec.PeekKind() != '[' {
		return &TamperError{Place: "step", Seq: 0, What: "steps is not a list"}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return canonical.Explain(err)
	}
	d.rawSteps = make([]rawStep, 0, 16)
	for p.dec.PeekKind() != ']' {
		d.rawSteps = append(d.rawSteps, rawStep{})
		seq := len(d.rawSteps) - 1
		if err := p.step(&d.rawSteps[seq]); err != nil {
			return &TamperError{Place: "step", Seq: seq, What: err.Error()}
		}
	}
	_, err := p.dec.ReadToken()
	return err
}

// parseStep reads one step that stands alone.
func parseStep(line []byte) (*rawStep, error) {
	p := newParser(line, nil)
	var raw rawStep
	if err := p.step(&raw); err != nil {
		return nil, err
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, canonical.ErrTrailing
	}
	return &raw, nil
}

// A parser reads values as parts of the document, which, unlike the decoder's buffer, stay.
type parser struct {
	dec  *jsontext.Decoder
	doc  []byte
	cuts []cut
}

func newParser(doc []byte, cuts []cut) *parser {
	return &parser{dec: jsontext.NewDecoder(bytes.NewBuffer(doc)), doc: doc, cuts: cuts}
}

// value returns the next value, or the known value that an empty string stands for.
func (p *parser) value() (jsontext.Value, error) {
	v, err := p.dec.ReadValue()
	if err != nil {
		return nil, canonical.Explain(err)
	}
	end := p.dec.InputOffset()
	start := end - int64(len(v))
	if len(p.cuts) > 0 && p.cuts[0].at == start {
		raw := p.cuts[0].raw
		p.cuts = p.cuts[1:]
		return raw, nil
	}
	return p.doc[start:end:end], nil
}

// object reads an object's members; read takes the value of each.
func (p *parser) object(read func(name []byte) error) error {
	if tok, err := p.dec.ReadToken(); err != nil || tok.Kind() != '{' {
		return errors.New("it is not an object")
	}
	for p.dec.PeekKind() == '"' {
		name, err := p.value()
		if err != nil {
			return err
		}
		if err := read(name); err != nil {
			return err
		}
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return canonical.Explain(err)
	}
	return nil
}

// step reads a step's members. The decoder refuses a name that stands twice.
func (p *parser) step(raw *rawStep) error {
	return p.object(func(name []byte) error {
		for i, member := range stepMembers {
			if string(name[1:len(name)-1]) == member {
				v, err := p.value()
				raw[i] = v
				return err
			}
		}
		return fmt.Errorf("it has a member %s", clip(string(name)))
	})
}
