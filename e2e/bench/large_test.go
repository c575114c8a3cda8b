package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"pgfsm/internal/test/check"
	"pgfsm/mcp/wire"
)

// TestMemoryOfLargeMessages measures how much memory pgfsm takes at most for large calls that arrive together: the figures behind the
// budgets for bodies and for results. Each line has a fresh process.
func TestMemoryOfLargeMessages(t *testing.T) {
	if !*load || *program == "" {
		t.Skip("it measures: go test ./e2e/bench -v -run MemoryOfLarge -args -load -pgfsm PATH")
	}
	machine(t)
	upstream := self(t, upstreamRole)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "calls\tKB each\tvalues\tpeak MB\tKB a call\tCPU ms a call\tanswered\t  \t")
	text := func(size int) string { return `"` + strings.Repeat("x", size) + `"` }
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":1`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	for _, line := range []struct {
		name, tool, arguments string
		together              int
		result                int // bytes
	}{
		{"a text", "refused", `{"message":` + text(1_000_000) + `}`, 8, 0},
		{"values", "refused", `{"message":` + members(wire.MaxValues-100) + `}`, 3, 0},
		{"a text that is refused for its size", "refused", `{"message":` + text(4_000_000) + `}`, 7, 0},
		{"values that are refused for their number", "refused", `{"message":` + members(300_000) + `}`, 7, 0},
		{"one result", "blob", fmt.Sprintf(`{"seed":"x","size":%d}`, 15_000_000), 1, 15_000_000},
		{"results", "blob", fmt.Sprintf(`{"seed":"x","size":%d}`, 15_000_000), 32, 15_000_000},
	} {
		g := setup{policies: 100, servers: 1, durable: true}.serve(t, upstream)
		answers := func(tool, arguments string) bool {
			c, err := openPlain(g.single().door)
			if err != nil {
				t.Error(err)
				return false
			}
			defer func() { _ = c.end() }()
			status, _, err := c.(*caller).exchange(http.MethodPost,
				`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+`}}`)
			return err == nil && status == http.StatusOK // a result or a refusal of the gates, and not 429
		}
		answers("echo", `{"message":"warm"}`)
		before := g.usage()
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", g.Process.Pid), []byte("5"), 0); err != nil { // resets the peak
			t.Skip(err)
		}
		answered := make(chan bool, line.together)
		for range line.together {
			go func() { answered <- answers(line.tool, line.arguments) }()
		}
		good := 0
		for range line.together {
			if <-answered {
				good++
			}
		}
		values := strings.Count(line.arguments, ",") + 2
		peak, after := g.peak(t), g.usage()
		fmt.Fprintf(table, "%d\t%d\t%d\t%.0f\t%d\t%d\t%d\t  %s\t\n", line.together, max(len(line.arguments), line.result)/1000, values, float64(peak)/1e6,
			(peak-before.resident)/int64(line.together)/1000, (after.cpu-before.cpu).Milliseconds()/int64(line.together), good, line.name)
	}
	table.Flush()
}

// peak is the most memory that the process had, in bytes.
func (p *process) peak(t *testing.T) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	_, rest, found := bytes.Cut(status, []byte("\nVmHWM:"))
	if err != nil || !found {
		t.Fatalf("no peak: %v", err)
	}
	kib, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	check.NoError(t, err)
	return kib << 10
}
