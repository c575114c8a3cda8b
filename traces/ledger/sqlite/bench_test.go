package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/sqlite"
)

// A call is what the first commit of a call writes: 6 events, 9 steps, a decision, the request, and two blobs that are there
// already.
type call struct {
	events   []ledger.Event
	steps    []ledger.Step
	decision ledger.Decision
	request  ledger.Request
	blobs    []ledger.Blob
}

func newCall(id string, seq int64) call {
	digest := canonical.Sum("bench", []byte(id))
	value := `{"x":"` + strings.Repeat("0123456789", 30) + `"}`
	shared := strings.Repeat("0123456789", 800)
	c := call{
		decision: ledger.Decision{
			Seq: seq + 2, RunID: id, At: "2026-01-01T00:00:00Z", Outcome: "allow", Policy: "allow-reads", Condition: "tool.startsWith(\"read\")",
			Bundle: canonical.Sum("bundle", nil),
		},
		request: ledger.Request{
			RunID: id, At: "2026-01-01T00:00:00Z", Updated: "2026-01-01T00:00:00Z", Kind: "call", Actor: "ann", Task: "t1", Env: "prod", Server: "files",
			Tool: "read", Args: value, Arguments: digest, Definition: digest, Bundle: canonical.Sum("bundle", nil), Mode: "low", Score: 10,
			Policy: "allow-reads", Status: ledger.Allowed, State: "dispatched", Owner: "01890a5d-ac96-774b-bcce-b302099a8057",
			Sent: "2026-01-01T00:00:00Z", Steps: 9, Head: digest, Seq: seq + 6, Hash: digest,
		},
		blobs: []ledger.Blob{
			{Digest: canonical.Sum("bundle", nil), Kind: ledger.BlobBundle, Text: shared},
			{Digest: canonical.Sum("blob", []byte(shared)), Kind: ledger.BlobValue, Text: shared},
		},
	}
	for i := range int64(6) {
		c.events = append(c.events, ledger.Event{
			Seq: seq + i + 1, RunID: id, Type: ledger.DecisionMade, At: "2026-01-01T00:00:00Z", By: "ann", Payload: jsontext.Value(value),
			Prev: digest, RunPrev: digest, Hash: digest,
		})
	}
	for i := range 9 {
		event := value
		if i == 2 {
			event = ledger.Ref(c.blobs[1].Digest)
		}
		c.steps = append(c.steps, ledger.Step{
			RunID: id, Seq: i, At: "2026-01-01T00:00:00Z", From: "received", Trigger: "screen", To: "screened", Facts: value, Command: value, Event: event,
			Prev: digest, Hash: digest,
		})
	}
	return c
}

func (c *call) write(tx ledger.Tx) error {
	for i := range c.events {
		if err := tx.AddEvents([]ledger.Event{c.events[i]}); err != nil {
			return err
		}
	}
	for i := range c.blobs {
		if err := tx.PutBlob(c.blobs[i]); err != nil {
			return err
		}
	}
	if err := tx.AddSteps(c.steps); err != nil {
		return err
	}
	if err := tx.AddDecision(c.decision); err != nil {
		return err
	}
	return tx.PutRequest(c.request)
}

// BenchmarkCommit writes the first commit of a call, alone and with others in one transaction.
func BenchmarkCommit(b *testing.B) {
	for _, batch := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("runs=%d", batch), func(b *testing.B) {
			s, err := sqlite.Open(filepath.Join(b.TempDir(), "ledger.db"), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.ReportAllocs()
			n, seq := 0, int64(0)
			for b.Loop() {
				err := s.Update(context.Background(), func(tx ledger.Tx) error {
					for range batch {
						id, err := uuid.NewV7()
						if err != nil {
							return err
						}
						c := newCall(id.String(), seq)
						if err := c.write(tx); err != nil {
							return err
						}
						seq += 6
						n++
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "calls/s")
			stats := s.Stats()
			b.ReportMetric(float64(stats.Commits)/float64(n), "flushes/call")
			b.ReportMetric(float64(stats.Checkpoints)/float64(n), "checkpoints/call")
		})
	}
}
