package e2e

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/traces/ledger"
)

// An arrival is a call as a server sees it, or as the record has it.
type arrival struct{ server, n, person, connection string }

// judge compares what arrived at the servers with what the record has.
func (x *interleaving) judge() {
	sent, made, arrived := make(map[arrival]int), make(map[arrival]int), make(map[arrival]int)
	names := make(map[string]string)
	for _, p := range x.people {
		names[p.caller.Principal()] = p.name
	}
	check.NoError(x.t, x.View(context.Background(), func(r ledger.Reader) error {
		for q, err := range r.Runs(ledger.Filter{}) {
			if err != nil {
				return err
			}
			rec, err := ledger.Load(r, q.RunID)
			if err != nil {
				return err
			}
			if q.Sent == "" {
				continue
			}
			request := rec.Header.Request
			n, err := clitest.ValueAt([]byte(q.Args), "/n")
			if err != nil || request.Account == nil {
				return fmt.Errorf("the run %s was sent with %s and the account %+v: %w", q.RunID, q.Args, request.Account, err)
			}
			a := arrival{q.Server, string(n), names[request.Principal()], request.Account.Connection}
			sent[a]++
			if q.Status == ledger.Executed {
				made[a]++
			}
		}
		for c, err := range r.Connections() {
			if keys := testKeys(x.t, x.keys...); err != nil || c.Usable() && !keys.Opens(r, &c) {
				return fmt.Errorf("the connection of %s to %s does not open: %w", c.Person, c.Server, err)
			}
		}
		return nil
	}))
	for _, s := range x.servers {
		for a, count := range s.arrived { // in any order
			account := x.accounts[a.connection]
			if account == nil || names[account.person] != a.person || account.server != s.name {
				x.t.Errorf("a token of %+v arrived at %s: it belongs to %+v", a, s.name, account)
				continue
			}
			a.connection = account.connection
			arrived[a] += count
		}
	}
	for a, count := range arrived { // in any order
		if count > sent[a] {
			x.t.Errorf("%d calls arrived as %+v; the record has %d", count, a, sent[a])
		}
	}
	for a, count := range made { // in any order
		if count > arrived[a] {
			x.t.Errorf("the record has %d calls as %+v; %d arrived", count, a, arrived[a])
		}
	}
	rejected := 0
	for _, s := range x.servers {
		rejected += s.rejected
	}
	x.t.Logf("%d arrived, %d approved, %d rejected, %d keys replaced, refreshes %v, %d refresh tokens came again after kills, codes %v", len(arrived),
		x.approved.Load(), rejected, x.rotated.Load(), x.asked, len(x.repeated), x.codes)
	if len(made) == 0 || x.approved.Load() == 0 || x.codes["credentials_needed"] == 0 || len(x.asked) != 2 {
		x.t.Error("nothing was called, approved or refused, or an issuer has refreshed nothing: the test shows less than it should")
	}
}

// noTokens looks for tokens in what gateways have written.
func (x *interleaving) noTokens() {
	written := command(x.t.Context(), nil, "ledger", "export", "-c", filepath.Join(x.dir, "pgfsm.yaml")).Stdout
	for _, s := range x.running { // in any order
		written += s.stderr.String()
	}
	if !onPostgres() {
		written += clitest.Read(x.t, filepath.Join(x.dir, "pgfsm.db"))
	}
	forms := slices.Collect(maps.Keys(x.running))
	for _, tokens := range []iter.Seq[string]{maps.Keys(x.servers[0].seen), maps.Keys(x.servers[1].seen), maps.Keys(x.first)} {
		for token := range tokens { // any of them
			if forms = append(forms, token); len(forms)%20 == 0 {
				break
			}
		}
	}
	clitest.WantNone(x.t, "written", written, forms...)
}
