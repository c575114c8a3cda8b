//go:build unix

package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger/postgres/pgtest"
)

// mostReplicas is how many gateways share the database. Those that get no sessions run, too.
const mostReplicas = 4

// An office is one gateway on SQLite, and several on one database.
type office struct {
	t        *testing.T
	cluster  *pgtest.Cluster
	db       *pgx.Conn
	file     *place
	replicas []*place
	gateways []*gateway // the replicas
}

// TestReplicas measures gateways on one Postgres beside one gateway on SQLite: without a standby, with a synchronous one, and a takeover.
func TestReplicas(t *testing.T) {
	if !*load {
		t.Skip("it measures for minutes: make bench-replicas")
	}
	machine(t)
	o := newOffice(t)
	o.compare("no standby")
	o.takeOver()
	o.cluster.Standby(t, o.cluster.Address())
	o.replicas = o.replicas[1:] // the first one was killed
	o.compare("synchronous standby")
	o.cluster.Set(t, "synchronous_standby_names", "") // otherwise the gateways cannot end when the standby is gone
	fmt.Println("\ngateways, database, own: processor time of a call, of all gateways of the line, of the primary, and of the callers.\n" +
		"Every answer was there and was right.")
}

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{t: t, cluster: pgtest.Start(t)}
	s := setup{servers: 1, record: inLedger}
	upstream := self(t, upstreamRole)
	file := s.serve(t, upstream).single()
	o.file = &file
	check.NoError(t, o.cluster.Exec(t.Context(), "postgres", "CREATE DATABASE office"))
	s.database = o.cluster.URL(pgtest.Superuser, "office")
	if out, err := exec.Command(*program, "ledger", "init", "--ledger", s.database).CombinedOutput(); err != nil {
		t.Fatalf("pgfsm ledger init: %v\n%s", err, out)
	}
	for range mostReplicas {
		g := s.serve(t, upstream)
		p := g.single()
		o.replicas, o.gateways = append(o.replicas, &p), append(o.gateways, g)
	}
	var err error
	if o.db, err = pgx.Connect(t.Context(), s.database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.db.Close(context.Background()) })
	return o
}

// some are the first n replicas. Sessions are spread over them.
func (o *office) some(n int) *place {
	p := *o.replicas[0]
	p.beside, p.database = o.replicas[1:n], o.databaseTime
	return &p
}

// compare prints the calls of one session and of many, and what they take in the database.
func (o *office) compare(title string) {
	for _, b := range []block{{callers: 1}, {callers: 32}} {
		b.title, b.open, b.turn, b.rounds = "Replicas, "+title, openPlain, *lasts, *rounds
		b.variants = []variant{{name: "SQLite, 1 gateway", place: o.file, kind: echo}}
		for n := 1; n <= min(b.callers, len(o.replicas)); n *= 2 {
			b.variants = append(b.variants, variant{name: "Postgres, " + count(n, "replica"), place: o.some(n), kind: echo})
		}
		before := o.space()
		s, err := b.run(time.Now().Add(*budget))
		check.NoError(o.t, err)
		after := o.space()
		b.printReplicas(os.Stdout, s)
		calls := float64(after.entries-before.entries) / 2 // an allowed call has two entries
		fmt.Printf("  %.0f calls in Postgres: %.1f commits, %.0f bytes of tables and indexes, %.0f bytes of WAL a call\n", calls,
			float64(after.commits-before.commits)/calls, float64(after.bytes-before.bytes)/calls, float64(after.wal-before.wal)/calls)
	}
}

// printReplicas writes the table of a block.
func (b *block) printReplicas(w io.Writer, s series) {
	fmt.Fprintf(w, "\n%s, %s of %v\n", b.heading(), count(len(s[0]), "round"), b.turn)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "calls/s\tshare\tleast–most\tp50 ms\tp99 ms\tgateways µs\tdatabase µs\town µs\t  \t")
	for i, f := range s.figures() {
		fmt.Fprintf(table, "%.0f\t%.0f %%\t%.0f–%.0f\t%s\t%s\t%d\t%d\t%d\t  %s\n", f.rate, 100*f.share.median, 100*f.share.least, 100*f.share.most,
			millis(f.p50), millis(f.p99), f.cpu.Microseconds(), f.database.Microseconds(), f.own.Microseconds(), b.variants[i].name)
	}
	table.Flush()
}

// Space is what the ledger has written.
type space struct{ entries, commits, bytes, wal int64 }

func (o *office) space() (s space) {
	o.query("SELECT (SELECT size FROM log), (SELECT sum(commits)::bigint FROM replicas), pg_database_size(current_database()), "+
		"pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint", &s.entries, &s.commits, &s.bytes, &s.wal)
	return s
}

func (o *office) query(sql string, into ...any) {
	o.t.Helper()
	if err := o.db.QueryRow(o.t.Context(), sql).Scan(into...); err != nil {
		o.t.Fatalf("%s: %v", sql, err)
	}
}

// databaseTime is the processor time of all processes of the primary: its main process, those that ended, and those that run.
func (o *office) databaseTime() (sum time.Duration) {
	main := strconv.Itoa(o.cluster.PID())
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // fails only if the pattern is malformed
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
		fields, last := bytes.Fields(rest), 15
		switch main {
		case filepath.Base(filepath.Dir(path)):
			last = 17 // and its children that have ended
		case string(fields[1]): // its parent
		default:
			continue
		}
		took, err := ticks(stat, 14, last)
		check.NoError(o.t, err)
		sum += took
	}
	return sum
}

// takeOver kills a replica whose calls are under way. It prints when the others have ended its runs, and how long calls of another session took.
func (o *office) takeOver() {
	const of = " FROM requests WHERE tool = 'stuck' AND "
	crowd, err := gather(openPlain, o.replicas[0], *stuck)
	check.NoError(o.t, err)
	for _, c := range crowd {
		go func() {
			defer c.hangUp()
			_, _ = c.call(kind{tool: "stuck", size: tokenBytes, judge: said}) // it gets no answer
		}()
	}
	n := len(crowd)
	o.until("SELECT count(*) = $1"+of+"sent <> ''", n)
	stop, took := make(chan struct{}), make(chan []time.Duration)
	go o.probe(stop, took)
	killed := time.Now()
	check.NoError(o.t, o.gateways[0].Process.Signal(syscall.SIGKILL))
	o.until("SELECT count(*) >= $1"+of+"ended <> ''", 1)
	began := time.Now()
	close(stop)
	waiting := <-took
	stop = make(chan struct{})
	go o.probe(stop, took)
	o.until("SELECT count(*) = $1"+of+"ended <> ''", n)
	ended := time.Now()
	close(stop)
	meanwhile := <-took
	var entries, indeterminate int
	o.query("SELECT sum(entries - 1)::bigint, count(*) FILTER (WHERE status = 'indeterminate')"+of+"true", &entries, &indeterminate)
	fmt.Printf("\nA replica is killed with %s under way: a run was ended after %.1f s, all of them %.2f s later (%d indeterminate), %.1f entries a run\n",
		count(n, "call"), began.Sub(killed).Seconds(), ended.Sub(began).Seconds(), indeterminate, float64(entries)/float64(n))
	for i, took := range [][]time.Duration{waiting, meanwhile} {
		slices.Sort(took)
		fmt.Printf("  calls of another session %s: %d, p50 %s ms, p99 %s ms\n", []string{"before", "meanwhile"}[i], len(took),
			millis(quantile(took, 0.5)), millis(quantile(took, 0.99)))
	}
}

// until asks until the answer is yes.
func (o *office) until(question string, n int) {
	o.t.Helper()
	for end := time.Now().Add(answerWithin); ; time.Sleep(10 * time.Millisecond) {
		var yes bool
		check.NoError(o.t, o.db.QueryRow(o.t.Context(), question, n).Scan(&yes))
		if yes {
			return
		}
		if time.Now().After(end) {
			o.t.Fatalf("%s: not within %v", question, answerWithin)
		}
	}
}

// probe makes calls through the second replica until it is stopped.
func (o *office) probe(stop chan struct{}, took chan []time.Duration) {
	var all []time.Duration
	defer func() { took <- all }()
	c, err := openPlain(o.replicas[1].door)
	if err != nil {
		o.t.Error(err)
		return
	}
	defer c.hangUp()
	for {
		select {
		case <-stop:
			return
		case <-time.After(10 * time.Millisecond):
		}
		lasted, err := c.call(echo)
		if err != nil {
			o.t.Error(err)
			return
		}
		all = append(all, lasted)
	}
}
