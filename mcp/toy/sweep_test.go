package toy

import (
	"net"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestSweepWaitsForAnswers(t *testing.T) {
	tests := []struct {
		name      string
		answering int
		last      bool
		alive     bool
	}{
		{"a-request-is-being-answered", 1, false, true},
		{"nothing-is-being-answered", 0, false, false},
		{"the-last-time", 1, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := &berth{server: Servers()[0], silent: map[net.Conn]bool{}}
			here, there := sdk.NewInMemoryTransports()
			if _, err := b.server.MCP().Connect(t.Context(), here, nil); err != nil {
				t.Fatal(err)
			}
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
			cs, err := client.Connect(t.Context(), there, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			b.add(tt.answering)
			b.sweep(tt.last)
			if _, err := cs.ListTools(t.Context(), nil); (err == nil) != tt.alive {
				t.Errorf("sweep(%t) with %d requests: then ListTools = %v, want the session alive %t",
					tt.last, tt.answering, err, tt.alive)
			}
		})
	}
}
