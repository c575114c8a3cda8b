package gates

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Report is the results of all suites, in their order.
type Report struct{ Suites []Suite }

// A Suite is the result of one suite.
type Suite struct {
	Name    string `json:"-"` // the key in the file
	Cases   int    `json:"cases"`
	Passed  int    `json:"passed"`
	Slips   int    `json:"slips"`
	Counted string `json:"counted"` // the things that Cases counts

	Classes []Class  `json:"classes,omitempty"`
	Slipped []Slip   `json:"slipped,omitempty"` // the first slips
	Results []Result `json:"results,omitempty"`
}

// A Class counts the broken tables of one kind.
type Class struct {
	Class  string         `json:"class"`
	Cases  int            `json:"cases"`
	ByRule map[string]int `json:"by_rule,omitempty"` // those that were refused, by the proof that refused them; written sorted
	Slips  int            `json:"slips"`
}

// A Result is the result of one case of a table.
type Result struct {
	ID   string `json:"id"`
	Want string `json:"want"`
	Got  string `json:"got"`
	OK   bool   `json:"ok"`
}

// A Slip is a case with a wrong answer.
type Slip struct {
	ID    string `json:"id"`
	Input string `json:"input"` // its first bytes; what is not UTF-8 is shown as U+FFFD
	Want  string `json:"want"`
	Got   string `json:"got"`

	Bytes []byte `json:"-"` // the first bytes of the input, as they are
}

// Bounds of the slips of a suite that are listed; all of them are counted.
const (
	maxSlipped   = 8
	maxSlipInput = 4096 // bytes
)

// slip counts a slip, and lists it if it is one of the first.
func (s *Suite) slip(id string, input []byte, want, got string) {
	if s.Slips++; len(s.Slipped) == maxSlipped {
		return
	}
	input = bytes.Clone(input[:min(len(input), maxSlipInput)])
	s.Slipped = append(s.Slipped, Slip{ID: id, Input: strings.ToValidUTF8(string(input), "\uFFFD"), Want: want, Got: got, Bytes: input})
}

// Slips counts the slips of all suites.
func (r *Report) Slips() (n int) {
	for i := range r.Suites {
		n += r.Suites[i].Slips
	}
	return n
}

// ResultStart begins every report, without its white space.
const ResultStart = `{"policy_gate":{`

// JSON is the report as the file has it: one object whose members are the suites, in their order.
func (r *Report) JSON() ([]byte, error) {
	var b bytes.Buffer
	enc := jsontext.NewEncoder(&b, jsontext.WithIndent(" "), json.Deterministic(true))
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return nil, err
	}
	for i := range r.Suites {
		s := &r.Suites[i]
		if err := enc.WriteToken(jsontext.String(s.Name)); err != nil {
			return nil, err
		}
		if err := json.MarshalEncode(enc, s, json.Deterministic(true)); err != nil {
			return nil, err
		}
	}
	if err := enc.WriteToken(jsontext.EndObject); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
