package policy

import (
	"bytes"
	"fmt"
	"slices"

	"pgfsm/internal/canonical"
)

// Active returns the content of the active bundle now for a run that b judged, and the digest of
// this content. Flags and environment chose three parts for the run when it began, and these parts
// stay: the grants, to which further grants of the active bundle are added, because all must cover
// the call; the planner, whose plan is recorded and bound; and whether the run gets a summary.
func (b *Bundle) Active(now *Bundle) ([]byte, canonical.Digest, error) {
	content := b.ownContent(now.content)
	text, err := canonical.Marshal(&content)
	return text, canonical.Sum("bundle", text), err
}

// CompileActive compiles what [Bundle.Active] returned. The error says why the text is no bundle,
// or no bundle for a run that b judged. The last result is cached, because after a change of the
// configuration all runs that b held get the same bundle.
func (b *Bundle) CompileActive(text []byte, digest canonical.Digest) (*Bundle, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if a := b.active; a != nil && a.digest == digest && bytes.Equal(a.canonical, text) {
		return a, nil
	}
	active, err := b.compileActive(text, digest)
	if err != nil {
		return nil, err
	}
	b.active = active
	return active, nil
}

func (b *Bundle) compileActive(text []byte, digest canonical.Digest) (*Bundle, error) {
	var content Content
	if err := canonical.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	active, err := Compile(b.ownContent(content))
	if err != nil {
		return nil, err
	}
	if active.digest != digest {
		return nil, fmt.Errorf("its digest is %s, its content for this run has %s", digest.Short(),
			active.digest.Short())
	}
	return active, nil
}

func (b *Bundle) ownContent(c Content) Content {
	grants := slices.Clone(b.content.Grants)
	for _, g := range c.Grants {
		if !slices.ContainsFunc(b.content.Grants,
			func(own Grant) bool { return bytes.Equal(canonical.MustMarshal(&own), canonical.MustMarshal(&g)) }) {
			grants = append(grants, g)
		}
	}
	c.Grants, c.Planner, c.Summary = grants, b.content.Planner, b.content.Summary
	return c
}

// Connection identifies how a server is reached, without its timeouts; empty if the bundle has no
// such server.
func (b *Bundle) Connection(server string) canonical.Digest {
	for _, s := range b.content.Servers {
		if s.Name == server {
			s.ConnectTimeout, s.Timeout, s.TimeoutTotal = 0, 0, 0
			return canonical.Sum("connection", canonical.MustMarshal(&s))
		}
	}
	return ""
}
