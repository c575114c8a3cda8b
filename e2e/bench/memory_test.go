package bench

import (
	"fmt"
	"os"
	"testing"
	"text/tabwriter"

	"pgfsm/internal/test/check"
)

const (
	idleSessions    = 1000
	idlePerIdentity = 200 // sessions of one token: a gateway bounds them. Without tokens all callers are the same
	warmSessions    = 50  // opened and ended first, so that what a process makes once is there
)

// memory prints what sessions cost that do nothing: their handshake is done, one call was made, and they are not connected.
// Each place is a fresh process in front of a fresh upstream. What the sessions need at the upstream is counted in the first line.
func memory(t *testing.T) {
	fmt.Printf("\nMemory of idle sessions, each with one call behind it\n")
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "sessions\tRSS before MB\tafter MB\tKiB a session\t  \t")
	upstream := self(t, upstreamRole)
	line := func(name string, of *process, doors ...door) {
		n := idleSessions
		if len(doors) == 1 && of != upstream {
			n = idlePerIdentity
		}
		before, after := idle(t, of, doors, n)
		fmt.Fprintf(table, "%d\t%.1f\t%.1f\t%.1f\t  %s\n", n, float64(before)/1e6, float64(after)/1e6, float64(after-before)/1024/float64(n), name)
	}
	line("direct: the upstream", upstream, upstream.place("/mcp").door)
	bare := self(t, bareRole, proxyTo+"="+upstream.host)
	line("bare proxy", bare, bare.place("/mcp").door)
	if *program != "" {
		for _, s := range []setup{volatile, durable} {
			g := s.serve(t, upstream)
			doors := []door{g.single().door}
			for i := 1; s.durable && i < idleSessions/idlePerIdentity; i++ {
				d := g.single().door
				d.token = g.agent(t, fmt.Sprintf("agent%d", i))
				doors = append(doors, d)
			}
			line("pgfsm, "+s.ledger(), g.process, doors...)
		}
	}
	table.Flush()
}

// idle opens sessions through the doors, the same number through each, and says what the process had in memory before and has
// afterwards.
func idle(t *testing.T, p *process, doors []door, n int) (before, after int64) {
	t.Helper()
	visit := func(d door) client {
		c, err := openPlain(d)
		check.NoError(t, err)
		if _, err := c.call(echo); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range warmSessions {
		check.NoError(t, visit(doors[0]).end())
	}
	before = p.usage().resident
	for i := range n {
		visit(doors[i*len(doors)/n]).hangUp()
	}
	return before, p.usage().resident
}
