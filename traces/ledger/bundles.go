package ledger

import (
	"context"
	"fmt"
	"sync"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// maxBundles bounds the cache of compiled bundles. Most runs of a ledger share a few bundles.
const maxBundles = 16

// bundles is a cache of compiled bundles. The zero value is ready for use.
type bundles struct {
	mu    sync.Mutex
	known map[canonical.Digest]*policy.Bundle
}

// runBundle returns the run's own bundle, not the current one. A run's bundle never changes. It is
// compiled before the transaction of a vote begins, because other writers wait for that
// transaction.
func (l *Ledger) runBundle(ctx context.Context, run string) (b *policy.Bundle, err error) {
	err = l.View(ctx, func(r Reader) error {
		q, err := r.Run(run)
		if err != nil {
			return explainNotFound(run, err)
		}
		if b, err = l.bundles.compiledBundle(r, q.Bundle); err != nil {
			return fmt.Errorf("the bundle of run %s cannot be read, so the approvers are unknown: %w", run, err)
		}
		return nil
	})
	return b, err
}

func (c *bundles) compiledBundle(r Reader, digest canonical.Digest) (*policy.Bundle, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.known[digest]; b != nil {
		return b, nil
	}
	content, err := BundleContent(r, digest)
	if err != nil {
		return nil, err
	}
	b, err := policy.Compile(*content)
	if err != nil {
		return nil, err
	}
	if b.Digest() != digest {
		return nil, fmt.Errorf("the blob %s is not complete: this version writes it otherwise", digest.Short())
	}
	if c.known == nil || len(c.known) >= maxBundles {
		c.known = make(map[canonical.Digest]*policy.Bundle)
	}
	c.known[digest] = b
	return b, nil
}

// BundleContent returns the content of a bundle that is stored in the ledger.
func BundleContent(r Reader, digest canonical.Digest) (*policy.Content, error) {
	text, err := readBlob(r, digest, BlobBundle)
	if err != nil {
		return nil, err
	}
	content := new(policy.Content)
	return content, canonical.Unmarshal([]byte(text), content)
}
