package states

import "pgfsm/policy/canonical"

// Kinds of what is digested at more than one place.
const (
	kindArguments = "arguments"
	kindPermit    = "permit"
	kindPlan      = "plan"
	kindResult    = "result"
)

// ArgumentsDigest names a call's arguments, which are canonical.
func ArgumentsDigest(args []byte) canonical.Digest { return argumentsDigest(args) }

func argumentsDigest(args []byte) canonical.Digest { return canonical.Sum(kindArguments, args) }

func resultDigest(raw []byte) canonical.Digest { return canonical.Sum(kindResult, raw) }

// again is the digest of b, which is expected to be one that is known: then it is that, and is not made anew.
func again(expected canonical.Digest, kind string, b []byte) canonical.Digest {
	if expected.Names(kind, b) {
		return expected
	}
	return canonical.Sum(kind, b)
}

func structuredDigest(doc []byte) canonical.Digest { return canonical.Sum("structured content", doc) }

// digest is what an approver sends back.
func (b *Binding) digest() canonical.Digest {
	return canonical.Sum("approval binding", spelled(b))
}

// digest names the permit by all that it permits.
func (f *PermittedFact) digest(run string) canonical.Digest {
	o := speller()
	defer done(o)
	return canonical.Sum(kindPermit, f.permitted(o, run))
}

// is reports whether a permit is this one, from all that it permits.
func (f *PermittedFact) is(permit canonical.Digest, run string) bool {
	o := speller()
	defer done(o)
	return permit.Names(kindPermit, f.permitted(o, run))
}

// permitted spells all that the permit permits.
func (f *PermittedFact) permitted(o *canonical.Object, run string) []byte {
	o.Raw("arguments", f.Arguments)
	o.Digest("bundle", f.Bundle)
	o.Digest("definition", f.Definition)
	o.Digest("plan", f.Plan)
	spellSome(o, "round", string(f.Round))
	o.Text("run", run)
	o.Text("server", f.Server)
	o.Text("tool", f.Tool)
	return o.Bytes()
}
