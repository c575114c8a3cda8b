package ledger_test

import (
	"context"
	"errors"
	"testing"

	"pgfsm/traces/ledger"
)

// TestAForeignLastEntryIsRefused shows that readers refuse an entry that another program added at the end, with an error. They check no tree.
func TestAForeignLastEntryIsRefused(t *testing.T) {
	t.Parallel()
	path := archive(t)
	next := "(SELECT max(idx) + 1 FROM entries)"
	for _, c := range []struct {
		name, index, kind, events string
		read                      func(ledger.Reader) error
	}{
		{"name-of-another-type", next, "log.created", `[{"id":"x","type":"token.revoked"}]`, origin},
		{"name-of-several-events", next, "log.created", `[{"id":"x","type":"token.revoked"},{"origin":"x","type":"log.created"}]`, origin},
		{"key-of-another-type", next, "key.added", `[{"id":"x","type":"token.revoked"}]`, keys},
		{"index-at-the-end-of-numbers", "9223372036854775807", "bundle.activated", `[]`, checkpointed},
		{"index-of-no-tree", "9223372036854775806", "bundle.activated", `[]`, checkpointed},
		{"index-past-the-largest-tree", "4611686018427387904", "bundle.activated", `[]`, checkpointed},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := openRaw(t, path)
			b.exec(t, "INSERT INTO entries SELECT "+c.index+", max(at), NULL, 0, NULL, ?, ?, NULL, zeroblob(32) FROM entries", c.kind,
				`{"by":"x","events":`+c.events+`,"salt":"AAAAAAAAAAAAAAAAAAAAAA=="}`)
			skeletonOf(t, b.path, func(r ledger.Reader) error {
				if err := c.read(r); !errors.Is(err, ledger.ErrChanged) && !errors.Is(err, ledger.ErrMalformed) {
					t.Errorf("read() = %v", err)
				}
				if _, err := ledger.Verify(context.Background(), r, ledger.VerifyOptions{}); !errors.Is(err, ledger.ErrTampered) {
					t.Errorf("Verify() = %v", err)
				}
				return nil
			})
		})
	}
}

func origin(r ledger.Reader) error {
	_, err := ledger.Origin(r)
	return err
}

func keys(r ledger.Reader) error {
	_, err := ledger.Keys(r)
	return err
}

func checkpointed(r ledger.Reader) error {
	_, err := ledger.TakeCheckpoint(r)
	return err
}
