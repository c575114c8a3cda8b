package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/condition"
	"pgfsm/policy/prove"
)

// MaxClaims bounds the claims of one file.
const MaxClaims = 1000

// A PolicyClaim is a claim of a file. For implies and equivalent, Path names the older policies, and
// the claim does not have them yet.
type PolicyClaim struct {
	prove.Claim
	Path string
	Line int
}

// claimSettings is a claim as it is written.
type claimSettings struct {
	ID, Never, Reachable, Implies, Equivalent string

	Match  condition.Match
	When   string
	Always *struct{ Pending struct{ Quorum int } }
}

// OpenClaims reads a file of claims about a configuration, and the older policies that it names,
// with paths from the file's folder. The error is of type [Errors].
func OpenClaims(name string, content *policy.Content, open Open) ([]PolicyClaim, error) {
	text, err := open(name)
	if err != nil {
		return nil, Errors{{File: name, Problem: "it cannot be read: " + reasonOf(err)}}
	}
	claims, err := ReadClaims(name, text, requesterClaimNames(content)...)
	if err != nil {
		return nil, err
	}

	for i := range claims {
		c := &claims[i]
		if c.Path == "" {
			continue
		}
		older := filepath.FromSlash(c.Path)
		if !filepath.IsAbs(older) {
			older = filepath.Join(filepath.Dir(name), older)
		}
		if c.Old, err = OpenPolicies(older, content, open); err != nil {
			problem := fmt.Sprintf("the claim %s names %s: %s", quote(c.ID), older, reasonOf(err))
			return nil, Errors{{File: name, Line: c.Line, Col: 1, Problem: problem}}
		}
	}
	return claims, nil
}

// OpenPolicies reads a policy file, or a folder with policy.yaml and perhaps risk.yaml. Everything
// else is that of the configuration, without its input rules. An error of a file is of type
// [Errors].
func OpenPolicies(name string, content *policy.Content, open Open) (*policy.Bundle, error) {
	older := *content
	older.Input.Rules = nil // claims are about risk and policies
	names := requesterClaimNames(content)

	file := filepath.Join(name, "policy.yaml")
	text, err := open(file)
	if err != nil { // it is no folder with policies
		file = name
		if text, err = open(name); err != nil {
			return nil, err
		}
	} else {
		rated := filepath.Join(name, "risk.yaml")
		switch text, err := open(rated); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			if older.Risk, _, err = ReadRisk(rated, text, names...); err != nil {
				return nil, err
			}
		}
	}

	if older.Policy, _, err = ReadPolicy(file, text, names...); err != nil {
		return nil, err
	}
	return policy.Compile(older)
}

// requesterClaimNames returns the claims of requesters that conditions may read.
func requesterClaimNames(content *policy.Content) []string {
	if content.Identity == nil {
		return nil
	}
	return content.Identity.Claims
}

// ProveClaims proves claims of a file about the calls that a bundle decides about.
func ProveClaims(ctx context.Context, b *policy.Bundle, claims []PolicyClaim, o prove.Options) ([]prove.Result, error) {
	list := make([]prove.Claim, len(claims))
	for i := range claims {
		list[i] = claims[i].Claim
	}
	return prove.Prove(ctx, b, list, o)
}

// readClaims reads the file that the key claims names. The policies have no fault.
func (l *loader) readClaims() {
	if !l.isWritten(path{"claims"}) {
		return
	}
	name := l.resolvePath(l.textAt(path{"claims"}))
	claims, err := OpenClaims(name, &l.out.Content, l.open)
	if !l.addFaults(err) {
		l.out.Claims, l.out.ClaimsPath = claims, name
	}
}

// ReadClaims reads a file of claims. Conditions may read the given claims of requesters. The error
// is of type [Errors].
func ReadClaims(name string, text []byte, requesterClaims ...string) ([]PolicyClaim, error) {
	f, err := readJudged(name, text, claimsSchema(), MaxPolicyFileBytes, "write version: 1 and claims: []")
	if err != nil {
		return nil, err
	}
	env, err := condition.PolicyEnv(requesterClaims...)
	if err != nil {
		return nil, Errors{{File: name, Problem: err.Error()}}
	}

	var from struct{ Claims []claimSettings }
	decode(f.root, &from)
	f.checkUnique(path{"claims"}, "claim", "id")
	read := make([]PolicyClaim, len(from.Claims))
	for i := range from.Claims {
		read[i] = f.readClaim(env, path{"claims"}.item(i), &from.Claims[i])
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	return read, nil
}

func (f *file) readClaim(env *condition.Env, entry path, from *claimSettings) PolicyClaim {
	c := PolicyClaim{Line: f.get(entry).at.line}
	c.ID, c.Match, c.When = from.ID, from.Match, from.When

	var kinds []string
	for _, kind := range []string{prove.Never, prove.Always, prove.Reachable, prove.Implies, prove.Equivalent} {
		if f.isWritten(entry.child(kind)) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) != 1 {
		f.addFault(entry, "write one of never, always, reachable, implies and equivalent",
			"the claim %s has %s", quote(from.ID), countKinds(kinds))
		return c
	}

	switch c.Kind = kinds[0]; c.Kind {
	case prove.Never:
		c.Effect = from.Never
	case prove.Reachable:
		c.Effect = from.Reachable
	case prove.Always:
		c.Effect, c.Quorum = "pending", from.Always.Pending.Quorum
	default:
		c.Path, c.Match = from.Implies+from.Equivalent, condition.Match{} // the schema's default is * for each
		for _, key := range []string{"match", "when"} {
			if f.isWritten(entry.child(key)) {
				f.addFault(entry.child(key), "leave it out", "%s compares the decisions about every call", c.Kind)
			}
		}
	}

	c.Match.Compile(func(key string, err error) {
		f.addFault(entry.child(strings.Split(key, ".")...), "", "%s", err)
	})
	if c.When != "" {
		if _, err := env.Bool(c.When); err != nil {
			f.addFault(entry.child("when"), "", "%s", err)
		}
	}
	return c
}

func countKinds(kinds []string) string {
	if len(kinds) == 0 {
		return "no kind"
	}
	return fmt.Sprintf("the kinds %s", strings.Join(kinds, " and "))
}
