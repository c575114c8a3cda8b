//go:build linux

package partition_test

import (
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// A database is a PostgreSQL server with a synchronous standby. Clients and the standby reach it through proxies.
type database struct {
	t       *testing.T
	primary *pgtest.Cluster
	standby *pgtest.Cluster
	link    *pgtest.Proxy   // of the standby to the primary
	clients []*pgtest.Proxy // of the gateways
	own     *pgtest.Proxy   // of commands; it only follows the primary
}

// newDatabase makes the servers.
func newDatabase(t *testing.T) *database {
	d := &database{t: t, primary: pgtest.Start(t)}
	d.follows()
	d.own = pgtest.NewProxy(t, d.primary.Address())
	return d
}

// follows makes a standby of the primary.
func (d *database) follows() {
	d.t.Helper()
	d.link = pgtest.NewProxy(d.t, d.primary.Address())
	d.standby = d.primary.Standby(d.t, d.link.Address())
}

// serving is the role of gateways and commands, which ledger init describes.
const serving = "pgfsm_serve"

// url is that of commands.
func (d *database) url(role string) string { return pgtest.URL(d.own.Address(), role, "postgres") }

// client is the URL of one more gateway.
func (d *database) client() string {
	p := pgtest.NewProxy(d.t, d.primary.Address())
	d.clients = append(d.clients, p)
	return pgtest.URL(p.Address(), serving, "postgres") + "&lease=" + lease.String()
}

// must fails the test.
func (d *database) must(err error) {
	d.t.Helper()
	check.NoError(d.t, err)
}

// failsOver lets the standby take the primary's place. A primary that is isolated still answers, but its commits wait for a standby that
// does not hear it any more; the gateways turn to the new one after each other.
func (n *nemesis) failsOver(isolated bool) {
	d := n.db
	old := d.primary
	if isolated {
		n.cutsStandby()
		time.Sleep(n.between(0, time.Second))
	} else {
		d.must(old.StopAtOnce())
	}
	n.up.moved.Add(1) // what is read may be behind, until all turned
	d.must(d.standby.Promote(d.t.Context()))
	d.primary = d.standby
	for _, p := range append([]*pgtest.Proxy{d.own}, d.clients...) {
		if isolated {
			time.Sleep(n.between(0, 500*time.Millisecond))
		}
		p.Redirect(d.primary.Address())
	}
	n.up.moved.Add(1)
	old.Remove()
	d.follows()
}

// cutsStandby cuts the standby off: no commit is acknowledged any more. A revocation is under way then.
func (n *nemesis) cutsStandby() {
	n.db.link.Cut()
	select {
	case n.revokeNow <- struct{}{}:
	default:
	}
}

// cancels cancels the commits of gateways that wait for the standby: they return with a warning.
func (d *database) cancels() {
	d.must(d.primary.Exec(d.t.Context(), "postgres", "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
}

// databases are the faults of connections and of the database.
func (n *nemesis) databases() []trouble {
	d := n.db
	during := func(p *pgtest.Proxy, from, to time.Duration, fault func()) func() {
		return func() {
			fault()
			time.Sleep(n.between(from, to))
			p.Restore()
		}
	}
	p := d.clients[n.r.IntN(len(d.clients))]
	delay := n.between(10*time.Millisecond, 300*time.Millisecond)
	again := func(stop func() error) func() {
		return func() {
			d.must(stop())
			time.Sleep(n.between(0, time.Second))
			d.must(d.primary.Start())
			d.must(d.primary.Synchronous(d.t.Context()))
		}
	}
	return []trouble{
		{"client cut", 4, during(p, 50*time.Millisecond, lease*3/2, p.Cut)},
		{"client delayed", 4, during(p, 500*time.Millisecond, 2*time.Second, func() { p.Delay(delay) })},
		{"requests of a client lost", 4, during(p, 100*time.Millisecond, lease*3/2, p.LoseRequests)},
		{"answers to a client lost", 4, during(p, 100*time.Millisecond, lease*3/2, p.LoseAnswers)},
		{"standby cut", 2, during(d.link, 100*time.Millisecond, 2*time.Second, d.link.Cut)},
		{"waits for the standby cancelled", 2, during(d.link, 0, time.Second, func() {
			n.cutsStandby()
			time.Sleep(n.between(100*time.Millisecond, time.Second))
			d.cancels()
		})},
		{"sessions ended", 2, func() {
			d.must(d.primary.Exec(d.t.Context(), "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "+
				"WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND random() < 0.5"))
		}},
		{"database restarted", 1, again(func() error { return d.primary.Stop() })},
		{"database stopped at once", 1, again(func() error { return d.primary.StopAtOnce() })},
		{"database killed", 1, again(func() error { return d.primary.Kill() })},
		{"database stopped and failed over", 1, func() { n.failsOver(false) }},
		{"database isolated and failed over", 1, func() { n.failsOver(true) }},
		{"waits cancelled, then failed over", 1, func() {
			n.cutsStandby()
			time.Sleep(n.between(100*time.Millisecond, time.Second))
			d.cancels()
			time.Sleep(n.between(0, 500*time.Millisecond))
			n.failsOver(true)
		}},
	}
}
