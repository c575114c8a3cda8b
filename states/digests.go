package states

import (
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// Kinds of digests that several places compute.
const (
	kindPermit = "permit"
	kindResult = "result"
)

func resultDigest(raw []byte) canonical.Digest { return canonical.Sum(kindResult, raw) }

func structuredDigest(doc []byte) canonical.Digest { return canonical.Sum("structured content", doc) }

// digest names the permit by all that it permits.
func (f *PermittedFact) digest(run string) canonical.Digest {
	return canonical.Sum(kindPermit, canonical.MustSorted(&struct {
		Arguments  jsontext.Value   `json:"arguments"`
		Bundle     canonical.Digest `json:"bundle"`
		Definition canonical.Digest `json:"definition"`
		Plan       canonical.Digest `json:"plan"`
		Round      canonical.Digest `json:"round,omitempty"`
		Run        string           `json:"run"`
		Server     string           `json:"server"`
		Tool       string           `json:"tool"`
		Trace      *TraceContext    `json:"trace,omitzero"`
	}{f.Arguments, f.Bundle, f.Definition, f.Plan, f.Round, run, f.Server, f.Tool, f.Trace}))
}
