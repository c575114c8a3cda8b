package states

import (
	"pgfsm/policy/canonical"
)

func argumentsDigest(args []byte) canonical.Digest { return canonical.Sum("arguments", args) }

func resultDigest(raw []byte) canonical.Digest { return canonical.Sum("result", raw) }

func structuredDigest(doc []byte) canonical.Digest { return canonical.Sum("structured content", doc) }

// digest is what an approver sends back.
func (b *Binding) digest() canonical.Digest {
	return canonical.Sum("approval binding", canonical.MustSorted(b))
}

// digest names the permit by all that it permits.
func (f *PermittedFact) digest(run string) canonical.Digest {
	return canonical.Sum("permit", canonical.MustSorted(struct {
		Arguments  canonical.Digest `json:"arguments"`
		Bundle     canonical.Digest `json:"bundle"`
		Definition canonical.Digest `json:"definition"`
		Plan       canonical.Digest `json:"plan"`
		Run        string           `json:"run"`
		Server     string           `json:"server"`
		Tool       string           `json:"tool"`
	}{argumentsDigest(f.Arguments), f.Bundle, f.Definition, f.Plan, run, f.Server, f.Tool}))
}
