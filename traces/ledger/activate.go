package ledger

import (
	"context"

	"pgfsm/policy"
)

// Activate records that a gateway starts with a bundle.
func (l *Ledger) Activate(ctx context.Context, active *policy.Bundle) error {
	return l.commit(ctx, func(b *batch) error {
		b.wrote = true
		if err := b.PutBlob(Blob{Digest: active.Digest(), Kind: BlobBundle, Text: active.Text()}); err != nil {
			return err
		}
		return b.add(nil, "", l.owner, &activated{Build: l.build, Bundle: active.Digest()})
	})
}
