package gates

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Report is what came of all suites, in their order.
type Report struct{ Suites []Suite }

// A Suite is what came of one suite.
type Suite struct {
	Name    string `json:"-"` // the key in the file
	Cases   int    `json:"cases"`
	Passed  int    `json:"passed"`
	Slips   int    `json:"slips"`
	Counted string `json:"counted"` // what the cases are, for people

	Seed               *uint64  `json:"seed,omitzero"`
	BlockedByAllowlist *int     `json:"blocked_by_allowlist,omitzero"`
	Classes            []Class  `json:"classes,omitempty"`
	Slipped            []Slip   `json:"slipped,omitempty"` // the first of the slips, shrunk
	Results            []Result `json:"results,omitempty"`
}

// A Class counts the cases of one kind in a suite that generates them.
type Class struct {
	Class   string         `json:"class"`
	Cases   int            `json:"cases"`
	Allowed int            `json:"allowed"`
	Asked   int            `json:"asked,omitzero"` // ended as the planner's question
	Blocked int            `json:"blocked"`
	ByCode  map[string]int `json:"by_code,omitempty"` // of those that were blocked; written sorted
	Slips   int            `json:"slips"`
}

// A Result is what came of one case of a table.
type Result struct {
	ID   string `json:"id"`
	Want string `json:"want"`
	Got  string `json:"got"`
	OK   bool   `json:"ok"`
}

// A Slip is a case with the wrong answer.
type Slip struct {
	ID    string `json:"id"`
	Input string `json:"input"` // shrunk; what is not UTF-8 in it is shown as U+FFFD
	Want  string `json:"want"`
	Got   string `json:"got"`

	Suite string `json:"-"`
	Bytes []byte `json:"-"` // the input, exactly
}

// maxSlipped is how many slips of a suite are shrunk and kept; all of them are counted.
const maxSlipped = 8

// Slips counts the slips of all suites.
func (r *Report) Slips() (n int) {
	for i := range r.Suites {
		n += r.Suites[i].Slips
	}
	return n
}

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
