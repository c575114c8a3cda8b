//go:build linux

package partition_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/postgres/pgtest"
	"pgfsm/traces/ledger/stores"
)

// replicas is how many gateways there are.
const replicas = 3

// A bed is a ledger with several gateways on it, and the server behind them.
type bed struct {
	t        *testing.T
	binary   string
	dir      string
	url      string // of the ledger, for commands and for looking at it
	gateways []*gateway
	up       *upstream
	db       *database
	store    ledger.Store // to look at it
	history  *history

	revokeNow chan struct{} // the faults send a value when a revocation would be hit by them
}

const policyFile = `version: 1
policies:
  - {id: free, match: {tool: free}, effect: allow, reason: "Anybody may."}
  - id: counted
    match: {tool: counted}
    effect: allow
    deny: history.count("actor", "1d") >= int(args.limit)
    reason: "So many and no more."
  - {id: held, match: {tool: held}, effect: pending, approvers: [owners], quorum: 1, expires: 1h, reason: "A person decides."}
  - {id: two, match: {tool: two}, effect: pending, approvers: [owners], quorum: 2, expires: 1h, reason: "Two people decide."}
  - {id: brief, match: {tool: brief}, effect: pending, approvers: [owners], quorum: 1, expires: 3s, reason: "A person decides soon."}
`

// configure writes the configuration of a gateway. All have the same bundle, and each reaches the ledger in its own way.
func (b *bed) configure(dir, url string) {
	b.t.Helper()
	owners := ""
	for i := range approvers {
		owners += fmt.Sprintf("%s, ", approverName(i))
	}
	files := map[string]string{
		"pgfsm.yaml": fmt.Sprintf("version: 1\nservers: {up: {type: http, url: %q}}\nallowlist: allowlist.json\npolicy: policy.yaml\n"+
			"ledger: %q\nroles: {owners: [%s]}\n", b.up.URL, url, owners),
		"policy.yaml":    policyFile,
		"allowlist.json": `{"up": ["free", "counted", "held", "two", "brief"]}`,
	}
	for name, text := range files { // in any order
		check.NoError(b.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

func agentName(i int) string    { return fmt.Sprintf("agent-%d", i) }
func approverName(i int) string { return fmt.Sprintf("owner-%d", i) }

// build builds pgfsm.
func build(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "pgfsm")
	if out, err := exec.Command("go", "build", "-o", path, "pgfsm/cmd/pgfsm").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// newBed makes a ledger, people with tokens, and gateways that listen.
func newBed(t *testing.T) (*bed, *crowd) {
	b := &bed{t: t, binary: build(t), dir: t.TempDir(), history: &history{told: make(map[string]int)}, revokeNow: make(chan struct{}, 1)}
	b.history.began = time.Now()
	b.up = newUpstream(t, b.history.now)
	b.db = newDatabase(t)
	b.url = b.db.url(pgtest.Superuser)
	roles, err := b.command("ledger", "init")
	if err != nil {
		t.Fatal(roles)
	}
	b.db.must(b.db.primary.Exec(t.Context(), "postgres", roles))
	b.url = b.db.url(serving)
	c := &crowd{bed: b, history: b.history, over: make(chan struct{})}
	for i := range agents {
		c.agents = append(c.agents, b.person(agentName(i), ledger.RoleAgent))
	}
	for i := range approvers {
		c.approvers = append(c.approvers, b.person(approverName(i), ledger.RoleApprover))
	}
	store, err := stores.Open(b.url, stores.ToRead)
	check.NoError(t, err)
	t.Cleanup(func() { store.Close() })
	b.store, b.up.look = store, b.look
	for i := range replicas {
		g := &gateway{t: t, binary: b.binary, dir: filepath.Join(b.dir, fmt.Sprintf("gateway-%d", i))}
		check.NoError(t, os.Mkdir(g.dir, 0o700))
		b.configure(g.dir, b.db.client())
		g.start()
		b.gateways = append(b.gateways, g)
	}
	t.Cleanup(b.stop)
	for _, g := range b.gateways {
		g.listens()
	}
	return b, c
}

// logs are lines of the gateways' logs that contain a text.
func (b *bed) logs(text string) string {
	var all strings.Builder
	for _, g := range b.gateways {
		for line := range strings.Lines(g.log()) {
			if strings.Contains(line, text) {
				all.WriteString(line)
			}
		}
	}
	return all.String()
}

// stop ends the gateways, whatever they do.
func (b *bed) stop() {
	for _, g := range b.gateways {
		g.process.Process.Kill() // it may have ended
		<-g.ended
	}
}

func (b *bed) person(name, role string) *person {
	b.t.Helper()
	p := &person{name: name, role: role}
	p.limit.Store(3)
	made, err := b.newToken(role, name)
	check.NoError(b.t, err)
	p.token.Store(made)
	return p
}

// look reads the ledger as it is now.
func (b *bed) look(ctx context.Context, do func(ledger.Reader) error) error {
	return b.store.View(ctx, do)
}
