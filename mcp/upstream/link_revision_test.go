package upstream

import (
	"fmt"
	"sync/atomic"
	"testing"
)

// A server that refuses the latest revision and says that it speaks it is asked once more, and not again.
func TestRevisionThatIsRefusedAndSpoken(t *testing.T) {
	for _, tt := range []struct {
		name, supported string
		refusals, asked int
		want            string
	}{
		{"once", `["2025-11-25","2026-07-28"]`, 1, 2, newer},
		{"twice", `["2026-07-28"]`, 2, 2, older},
		{"others-are-spoken", `["2025-11-25"]`, 1, 1, older},
		{"not-a-list", `"2026-07-28"`, 1, 1, older},
		{"list-of-something-else", `[1,"2026-07-28"]`, 1, 1, older},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			both := modern(func(w spoken) []string { return []string{failure(w.id, -32601)} })()
			var asked atomic.Int32
			srv := serveScript(t, func(w spoken) []string {
				if w.method == methodDiscover && int(asked.Add(1)) <= tt.refusals {
					return []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":%s}}}`, w.id, tt.supported)}
				}
				return both(w)
			}, false)
			l := mustLink(t, upstreams(t, Limits{}, srv.server()), "web", Peer{Protocol: newer})
			if got := l.ServerInfo().Protocol; got != tt.want || int(asked.Load()) != tt.asked {
				t.Errorf("revision %s after %d questions, want %s after %d", got, asked.Load(), tt.want, tt.asked)
			}
		})
	}
}
