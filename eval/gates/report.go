package gates

import (
	"pgfsm/internal/visible"
)

// Format names the shape of a [Report].
const Format = "pgfsm.gates/v1"

// ResultStart begins every report, without its white space.
const ResultStart = `{"format":"pgfsm.gates/`

// A Report is the results of all suites, in their order.
type Report struct {
	Format string  `json:"format"`
	Suites []Suite `json:"suites"`
}

// A Suite is the result of one suite.
type Suite struct {
	Name    string `json:"suite"`
	Cases   int    `json:"cases"`
	Slips   int    `json:"slips"`
	Counted string `json:"counted"`           // the things that Cases counts
	Slipped []Slip `json:"slipped,omitempty"` // the first slips
}

// A Slip is a case with a wrong answer.
type Slip struct {
	ID    string `json:"id"`
	Input string `json:"input"` // its first bytes, escaped as [visible.Text] escapes them
	Want  string `json:"want"`
	Got   string `json:"got"`
}

// Bounds of the slips of a suite that are listed; all of them are counted.
const (
	maxSlipped   = 8
	maxSlipInput = 4096 // bytes
)

// addSlip counts a slip, and lists it if it is one of the first.
func (s *Suite) addSlip(id string, input []byte, want, got string) {
	s.Slips++
	if len(s.Slipped) < maxSlipped {
		text := visible.Text(string(input[:min(len(input), maxSlipInput)]))
		s.Slipped = append(s.Slipped, Slip{ID: id, Input: text, Want: want, Got: got})
	}
}

// Slips counts the slips of all suites.
func (r *Report) Slips() (n int) {
	for i := range r.Suites {
		n += r.Suites[i].Slips
	}
	return n
}
