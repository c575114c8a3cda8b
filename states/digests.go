package states

import (
	"pgfsm/policy/canonical"
)

// ArgumentsDigest names a call's arguments, which are canonical.
func ArgumentsDigest(args []byte) canonical.Digest { return argumentsDigest(args) }

func argumentsDigest(args []byte) canonical.Digest { return canonical.Sum("arguments", args) }

func resultDigest(raw []byte) canonical.Digest { return canonical.Sum("result", raw) }

func structuredDigest(doc []byte) canonical.Digest { return canonical.Sum("structured content", doc) }

// digest is what an approver sends back.
func (b *Binding) digest() canonical.Digest {
	return canonical.Sum("approval binding", spelled(b))
}

// digest names the permit by all that it permits.
func (f *PermittedFact) digest(run string) canonical.Digest {
	o := canonical.NewObject(make([]byte, 0, len(f.Arguments)+512))
	o.Raw("arguments", f.Arguments)
	o.Digest("bundle", f.Bundle)
	o.Digest("definition", f.Definition)
	o.Digest("plan", f.Plan)
	spellSome(o, "round", string(f.Round))
	o.Text("run", run)
	o.Text("server", f.Server)
	o.Text("tool", f.Tool)
	return canonical.Sum("permit", o.Bytes())
}
