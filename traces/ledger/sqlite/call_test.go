package sqlite_test

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
)

// A call is what the two commits of a call write: when it is sent 4 events, a decision, the request, and two blobs that are
// there already; when it has ended 2 events, and the request once more.
type call struct {
	events   []ledger.Event
	decision ledger.Decision
	request  ledger.Request
	blobs    []ledger.Blob
}

// firstEvents is how many events the first commit has.
const firstEvents = 4

func newCall(id string) call {
	digest := canonical.Sum("bench", []byte(id))
	value := `{"x":"` + strings.Repeat("0123456789", 30) + `"}`
	shared := strings.Repeat("0123456789", 800)
	c := call{
		decision: ledger.Decision{
			RunID: id, At: "2026-01-01T00:00:00Z", Outcome: "allow", Policy: "allow-reads", Condition: "tool.startsWith(\"read\")",
			Bundle: canonical.Sum("bundle", nil),
		},
		request: ledger.Request{
			RunID: id, At: "2026-01-01T00:00:00Z", Updated: "2026-01-01T00:00:00Z", Kind: "call", Actor: "ann", Task: "t1", Env: "prod", Server: "files",
			Tool: "read", Args: value, Arguments: digest, Definition: digest, Bundle: canonical.Sum("bundle", nil), Mode: "low", Score: 10,
			Policy: "allow-reads", Status: ledger.Allowed, State: "dispatched", Owner: "01890a5d-ac96-774b-bcce-b302099a8057",
			Sent: "2026-01-01T00:00:00Z", Steps: 9, Head: digest, Hash: digest,
		},
		blobs: []ledger.Blob{
			{Digest: canonical.Sum("bundle", nil), Kind: ledger.BlobBundle, Text: shared},
			{Digest: canonical.Sum("blob", []byte(shared)), Kind: ledger.BlobValue, Text: shared},
		},
	}
	for range 6 {
		c.events = append(c.events, ledger.Event{
			RunID: id, Type: ledger.DecisionMade, At: "2026-01-01T00:00:00Z", By: "ann", Payload: jsontext.Value(value),
			Prev: digest, RunPrev: digest, Hash: digest,
		})
	}
	return c
}

// from gives the events of the next commit their seqs, behind one, and returns the last of them.
func (c *call) from(seq int64) int64 {
	events := c.events[:firstEvents]
	if c.decision.Seq > 0 { // that was the first
		events = c.events[firstEvents:]
	}
	for i := range events {
		seq++
		events[i].Seq = seq
	}
	c.decision.Seq, c.request.Seq = max(c.decision.Seq, events[0].Seq), seq
	return seq
}

// leaves is the first commit.
func (c *call) leaves(tx ledger.Tx) error {
	for i := range c.blobs {
		if err := tx.PutBlob(c.blobs[i]); err != nil {
			return err
		}
	}
	return errors.Join(tx.AddDecision(c.decision), tx.AddRequest(c.request), tx.AddEvents(c.events[:firstEvents]))
}

// ends is the second one.
func (c *call) ends(tx ledger.Tx) error {
	q := c.request
	q.Status, q.State, q.Ended, q.Owner, q.Steps = ledger.Executed, "answered", q.At, "", 12
	return errors.Join(tx.PutRequest(q), tx.AddEvents(c.events[firstEvents:]))
}
