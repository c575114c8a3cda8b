package config

import (
	"slices"

	"pgfsm/policy/rules"
)

// ReadPolicy reads a file of policies: strict YAML, or strict JSON if its name ends in ".json". The
// content has defaults for missing keys. The error is of type [Errors], and includes the faults of
// [rules.Compile]. Conditions may read the given claims.
func ReadPolicy(name string, text []byte, claims ...string) (*rules.Content, *Places, error) {
	f, err := readJudged(name, text, policySchema(), MaxPolicyFileBytes, "write version: 1 and policies: []")
	if err != nil {
		return nil, nil, err
	}

	var from struct {
		Policies []struct {
			rules.Policy
			Expires, Fresh int64
		}
	}

	decode(f.root, &from)
	c := rules.Content{Policies: make([]rules.Policy, len(from.Policies))}

	for i, one := range from.Policies {
		p, entry := &c.Policies[i], path{"policies"}.item(i)
		*p = one.Policy
		p.Expires, p.Fresh = one.Expires, one.Fresh
		// The schema's defaults are for policies that hold calls; others must not have these keys.
		holds := p.Effect == rules.Pending || p.Effect == rules.Allow && p.RequireApprovalIf != ""
		if !holds && !f.isWritten(entry.child("quorum")) {
			p.Quorum = 0
		}
		if !holds && !f.isWritten(entry.child("expires")) {
			p.Expires = 0
		}
	}

	set, err := rules.Compile(c, claims...)
	places := &Places{file: f}
	places.noteFaults(err, set.Programs().Asking())
	if err := f.err(); err != nil {
		return nil, nil, err
	}

	return &c, places, nil
}

// namedEntries reads the file that a key of the configuration names. If the gateway records nothing,
// it refuses conditions about earlier calls.
func namedEntries[C any](l *loader, key string, read func(string, []byte, ...string) (*C, *Places, error)) (*C,
	*Places) {
	keyPath := path{key}
	if !l.isWritten(keyPath) {
		return nil, nil
	}
	name := l.resolvePath(l.textAt(keyPath))
	text, ok := l.readNamed(keyPath, name, "")
	if !ok {
		return nil, nil
	}
	var claims []string
	if rules := l.out.Content.Identity; rules != nil {
		claims = rules.Claims
	}
	content, places, err := read(name, text, claims...)
	if !l.addFaults(err) && l.out.ServesUnrecorded() {
		l.others = slices.Concat(l.others, places.asking)
	}
	return content, places
}
