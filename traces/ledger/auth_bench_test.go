package ledger_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"pgfsm/policy/canonical"
	"pgfsm/traces/ledger"
)

// BenchmarkAuthenticate asks who presents a token, so many at a time: what every request of every agent costs.
func BenchmarkAuthenticate(b *testing.B) {
	for _, together := range []int{1, 2} {
		b.Run(fmt.Sprintf("together=%d", together), func(b *testing.B) {
			o := newOffice(b, filepath.Join(b.TempDir(), "ledger.db"))
			text := o.agent("worker-1")
			for range 100 { // more tokens, and a last event that is not one of theirs
				o.agent("worker-2")
			}
			if _, err := o.run(o.allows); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			each(b, b.N, together, func(int) error {
				_, err := o.Authenticate(context.Background(), text)
				return err
			})
		})
	}
}

// BenchmarkAttach looks for a held call to attach to, beside so many that are held, and finds none.
func BenchmarkAttach(b *testing.B) {
	o := newOffice(b, filepath.Join(b.TempDir(), "ledger.db"))
	for range 200 {
		if _, err := o.run(o.holds); err != nil {
			b.Fatal(err)
		}
	}
	look := ledger.Look{Actor: carol, Server: "files", Tool: "read", Arguments: canonical.Sum("arguments", nil)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := o.Attach(context.Background(), look); err == nil {
			b.Fatal("something is found")
		}
	}
}

// agent makes a token for calls and returns its text.
func (o *office) agent(name string) string {
	o.tb.Helper()
	text, _, err := o.CreateToken(context.Background(), ledger.Local("local:root"), name, ledger.RoleAgent, "")
	if err != nil {
		o.tb.Fatal(err)
	}
	return text
}
