package gateway

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// What the front adds to a call, without a connection.
func BenchmarkFront(b *testing.B) {
	for _, size := range []int{32, 64 << 10, 1 << 20} {
		for _, era := range []string{"2026-07-28", "2025-11-25"} {
			b.Run(fmt.Sprintf("%s/%d", era, size), func(b *testing.B) {
				g, _ := scripted(&testing.T{}, nil)
				headers := []string{"Mcp-Protocol-Version: " + era}
				params := `{"name":"echo","arguments":{"text":"` + strings.Repeat("x", size) + `"}`
				if era == Stateless {
					headers = append(headers, "Mcp-Method: tools/call", "Mcp-Name: echo")
					params += "," + meta
				} else {
					headers = append(headers, "Mcp-Session-Id: "+begin(&testing.T{}, g, "/mcp", era))
				}
				body := rpc("1", "tools/call", params+"}")
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					w := httptest.NewRecorder()
					g.Handler().ServeHTTP(w, come("POST", "/mcp", body, headers...))
					if w.Code != 200 {
						b.Fatal(w.Body)
					}
				}
			})
		}
	}
}
