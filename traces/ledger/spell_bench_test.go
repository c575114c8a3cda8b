package ledger

import (
	"testing"

	"pgfsm/policy/canonical"
	"pgfsm/states"
)

// benchPayloads are what the events of an allowed call of an agent say.
func benchPayloads() []payload {
	d := canonical.Sum("bench", nil)
	return []payload{
		&created{
			Bundle: d, Env: "prod", Format: "pgfsm.trace/v1", Machine: d, Owner: "01890a5d-ac96-774b-bcce-b302099a8057",
			Request: states.Request{
				Actor: "bench", At: "2026-01-01T00:00:00Z", Kind: states.KindAgent,
				Text: canonical.Text(`{"args":{"message":"hello"},"server":"kb","tool":"echo","type":"call_tool"}`),
			},
			Call: &call{Args: []byte(`{"message":"hello"}`), Arguments: d, Definition: d, Server: "kb", Tool: "echo"},
		},
		&scored{Mode: "guarded", Rules: []string{"unknown-tool"}, Score: 20},
		&decision{Bundle: d, Gate: "policy", Outcome: "allow", Policy: "work", Reason: "The policy work allows it."},
		&sent{anchor: anchor{Last: d, Steps: 9}, Permit: d},
		&returned{Bytes: 120, Result: d},
		&ended{anchor: anchor{Last: d, Steps: 12}, Head: d, Outcome: states.Outcome{State: "answered", Type: "tool_result", Effect: "applied"}},
	}
}

// BenchmarkPayloads spells the payloads of an allowed call: as they are written, and as they are held to their form when they
// are read.
func BenchmarkPayloads(b *testing.B) {
	all := benchPayloads()
	b.Run("written", func(b *testing.B) {
		b.ReportAllocs()
		var room []byte
		for b.Loop() {
			for _, p := range all {
				var err error
				if room, err = spelled(room, p); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, p := range all {
				if _, err := respelled(p); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
