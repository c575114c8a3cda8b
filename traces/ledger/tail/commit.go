package tail

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/traces/ledger"
)

// A Commit is what one transaction adds to a ledger. Each list is in the order in which its rows were added. The encoding is a version, and for each list
// the number of its rows and their fields. Numbers are varints; lists and texts begin with their length. A Commit has exactly one encoding.
type Commit struct {
	Blobs     []ledger.Blob
	Steps     []ledger.Step
	Decisions []ledger.Decision
	Requests  []Put
	Events    []ledger.Event
}

// A Put is a request as it was put.
type Put struct {
	ledger.Request
	New bool // the row did not exist
}

// version is the first byte of a commit.
const version = 1

// The minimum bytes of a row: one for each field. With these, the remaining bytes bound the number of rows.
const (
	leastBlob     = 3
	leastStep     = 11
	leastDecision = 9
	leastPut      = 34
	leastEvent    = 9
	leastText     = 1
)

// Append adds the encoding of the commit to b.
func (c *Commit) Append(b []byte) []byte {
	s := spelling{b: append(b, version)}
	s.commit(c)
	return s.b
}

// Parse decodes a commit from b. The commit shares no memory with b. Empty rows and fields become nil.
func Parse(b []byte) (*Commit, error) {
	s := spelling{text: string(b), parses: true}
	if len(b) == 0 || b[0] != version {
		return nil, errors.New("a commit: at byte 0: its version is not known")
	}
	s.at = 1
	c := new(Commit)
	s.commit(c)
	if s.err == nil && s.at != len(b) {
		s.fails("nothing more was expected")
	}
	if s.err != nil {
		return nil, s.err
	}
	return c, nil
}

// A spelling encodes or decodes a commit. One function names the fields for both, so the two directions agree.
type spelling struct {
	b []byte // what is written

	parses bool
	text   string // what is parsed; the commit's texts are parts of it
	at     int
	err    error // the first
}

func (s *spelling) commit(c *Commit) {
	if n := s.count(len(c.Blobs), leastBlob); s.parses {
		c.Blobs = rows[ledger.Blob](n)
	}
	for i := range c.Blobs {
		s.blob(&c.Blobs[i])
	}
	if n := s.count(len(c.Steps), leastStep); s.parses {
		c.Steps = rows[ledger.Step](n)
	}
	for i := range c.Steps {
		s.step(&c.Steps[i])
	}
	if n := s.count(len(c.Decisions), leastDecision); s.parses {
		c.Decisions = rows[ledger.Decision](n)
	}
	for i := range c.Decisions {
		s.decision(&c.Decisions[i])
	}
	if n := s.count(len(c.Requests), leastPut); s.parses {
		c.Requests = rows[Put](n)
	}
	for i := range c.Requests {
		s.request(&c.Requests[i].Request)
		s.truth(&c.Requests[i].New)
	}
	if n := s.count(len(c.Events), leastEvent); s.parses {
		c.Events = rows[ledger.Event](n)
	}
	for i := range c.Events {
		s.event(&c.Events[i])
	}
}

// rows returns rows to be parsed, or nil for none.
func rows[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, n)
}

func (s *spelling) blob(b *ledger.Blob) {
	s.string((*string)(&b.Digest))
	s.string(&b.Kind)
	s.string(&b.Text)
}

func (s *spelling) step(t *ledger.Step) {
	s.string(&t.RunID)
	s.int(&t.Seq)
	s.string(&t.At)
	s.string((*string)(&t.From))
	s.string((*string)(&t.Trigger))
	s.string((*string)(&t.To))
	s.string(&t.Facts)
	s.string(&t.Command)
	s.string(&t.Event)
	s.string((*string)(&t.Prev))
	s.string((*string)(&t.Hash))
}

func (s *spelling) decision(d *ledger.Decision) {
	s.int64(&d.Seq)
	s.string(&d.RunID)
	s.string(&d.At)
	s.string(&d.Outcome)
	s.string(&d.Policy)
	s.string(&d.Condition)
	s.string((*string)(&d.Bundle))
	s.string(&d.Code)
	s.string(&d.Reason)
}

func (s *spelling) request(r *ledger.Request) {
	s.string(&r.RunID)
	s.string(&r.At)
	s.string(&r.Updated)
	s.string(&r.Kind)
	s.string(&r.Actor)
	s.string(&r.Task)
	s.string(&r.Env)
	s.string(&r.Server)
	s.string(&r.Tool)
	s.string(&r.Args)
	s.string((*string)(&r.Arguments))
	s.string((*string)(&r.Definition))
	s.string((*string)(&r.Bundle))
	s.string(&r.Mode)
	s.int(&r.Score)
	s.string(&r.Policy)
	s.string((*string)(&r.Status))
	s.string((*string)(&r.State))
	s.string(&r.Code)
	s.string(&r.Reason)
	s.string((*string)(&r.Binding))
	if n := s.count(len(r.Approvers), leastText); s.parses {
		r.Approvers = rows[string](n)
	}
	for i := range r.Approvers {
		s.string(&r.Approvers[i])
	}
	s.int(&r.Quorum)
	s.int(&r.Agreed)
	s.string(&r.Expires)
	s.string(&r.Owner)
	s.string(&r.Sent)
	s.string(&r.Ended)
	s.int(&r.Steps)
	s.string((*string)(&r.Head))
	s.int64(&r.Seq)
	s.string((*string)(&r.Hash))
	s.string(&r.Delivered)
}

func (s *spelling) event(e *ledger.Event) {
	s.int64(&e.Seq)
	s.string(&e.RunID)
	s.string((*string)(&e.Type))
	s.string(&e.At)
	s.string(&e.By)
	s.value(&e.Payload)
	s.string((*string)(&e.Prev))
	s.string((*string)(&e.RunPrev))
	s.string((*string)(&e.Hash))
}

func (s *spelling) string(v *string) {
	if !s.parses {
		s.b = append(binary.AppendUvarint(s.b, uint64(len(*v))), *v...)
		return
	}
	n := s.count(0, 1)
	*v = s.text[s.at : s.at+n]
	s.at += n
}

func (s *spelling) value(v *jsontext.Value) {
	if !s.parses {
		s.b = append(binary.AppendUvarint(s.b, uint64(len(*v))), *v...)
		return
	}
	var text string
	if s.string(&text); text != "" {
		*v = jsontext.Value(text)
	}
}

func (s *spelling) truth(v *bool) {
	if !s.parses {
		n := byte(0)
		if *v {
			n = 1
		}
		s.b = append(s.b, n)
		return
	}
	n := s.uvarint()
	if n > 1 {
		s.fails("want 0 or 1")
	}
	*v = n == 1
}

func (s *spelling) int64(v *int64) {
	if !s.parses {
		s.b = binary.AppendVarint(s.b, *v)
		return
	}
	n := s.uvarint() // the sign is the last bit
	*v = int64(n>>1) ^ -int64(n&1)
}

func (s *spelling) int(v *int) {
	n := int64(*v)
	s.int64(&n)
	if n < math.MinInt || n > math.MaxInt {
		s.fails("the number is too large for this machine")
	}
	*v = int(n)
}

// count encodes or decodes a number of elements. When it decodes, the remaining bytes bound the number, given the minimum size of an element.
func (s *spelling) count(n, least int) int {
	if !s.parses {
		s.b = binary.AppendUvarint(s.b, uint64(n))
		return n
	}
	v := s.uvarint()
	if v > uint64((len(s.text)-s.at)/least) {
		s.fails(fmt.Sprintf("%d things of %d bytes or more are more than is left", v, least))
	}
	if s.err != nil {
		return 0
	}
	return int(v)
}

// uvarint decodes a number, and accepts only its shortest encoding.
func (s *spelling) uvarint() (n uint64) {
	if s.err != nil {
		return 0
	}
	for i := 0; s.at+i < len(s.text); i++ {
		c := s.text[s.at+i]
		if i == binary.MaxVarintLen64-1 && c > 1 {
			s.fails("the number is too large")
			return 0
		}
		n |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			if c == 0 && i > 0 {
				s.fails("the number has a shorter spelling")
				return 0
			}
			s.at += i + 1
			return n
		}
	}
	s.fails("it ends within a number")
	return 0
}

// fails keeps the first error.
func (s *spelling) fails(why string) {
	if s.err == nil {
		s.err = fmt.Errorf("a commit: at byte %d: %s", s.at, why)
	}
}
