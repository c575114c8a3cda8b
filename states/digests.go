package states

import (
	"pgfsm/policy/canonical"
)

func argumentsDigest(args []byte) canonical.Digest { return canonical.Sum("arguments", args) }

func resultDigest(raw []byte) canonical.Digest { return canonical.Sum("result", raw) }

func structuredDigest(doc []byte) canonical.Digest { return canonical.Sum("structured content", doc) }

// digest is what an approver sends back.
func (b *Binding) digest() canonical.Digest {
	return canonical.Sum("approval binding", spelled(b))
}

// digest names the permit by all that it permits.
func (f *PermittedFact) digest(run string) canonical.Digest {
	return canonical.Sum("permit", canonical.MustSorted([]string{
		run, f.Server, f.Tool, string(argumentsDigest(f.Arguments)), string(f.Definition), string(f.Bundle), string(f.Plan),
	}))
}
