package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

const (
	callers    = 6  // that call at the same time
	callsOfOne = 40 // that each of them requests
	callsEach  = 5  // calls between two changes
)

// A connected person is one whose agent calls, at any replica.
type connected struct {
	name   string        // of the account
	caller ledger.Caller // of the person at the console
	agents []*agent      // one for each replica
}

// TestConnectionsOfAnyInterleaving: people connect, connect again, disconnect, are revoked, blocked and unblocked, calls are held and approved, and
// two replicas reload, all at the same time. Three of the people have one agent that acts for all of them. Each call that arrives at the server
// comes with the account of the person for whom it was requested, at most once, and no answer has another's name.
func TestConnectionsOfAnyInterleaving(t *testing.T) {
	t.Parallel()
	who, provider := newWhoami(t), identitytest.New(t)
	dir := who.folder(t, fmt.Sprintf(`policy: policy.yaml
identity:
  issuers: [{issuer: %s, audiences: {mcp: [gateway], admin: [approvals]}, people: [pgfsm-cli]}]
`, provider.Issuer), "policy.yaml", `version: 1
policies:
  - {id: people, match: {tool: look}, effect: pending, when: "args.n % 4 == 0", reason: "People decide.", expires: 1h}
  - {id: rest, match: {tool: "*"}, effect: allow, reason: "Agents may."}
`)
	replicas := []*served{serve(t, dir), serve(t, dir)}
	bob := makeToken(t, replicas[0].config, "approver", "bob")
	store, err := stores.Open(ledgerOf(dir), stores.ToWrite)
	check.NoError(t, err)
	defer store.Close()
	l, err := ledger.Open(t.Context(), store, ledger.Options{})
	check.NoError(t, err)
	defer l.Close()

	x := &interleaving{t: t, who: who, l: l, replicas: replicas, bob: bob, issuer: provider.Issuer, requested: make(map[string]string)}
	key, err := base64.StdEncoding.DecodeString(sealKey)
	check.NoError(t, err)
	x.keys = ledger.SealKeys{key}
	for i := range 5 {
		p := &connected{name: fmt.Sprint("p", i)}
		token := makeToken(t, replicas[0].config, "person", p.name)
		if i < 3 { // one agent acts for all of them
			token = provider.Sign(map[string]any{"sub": p.name, "act": map[string]any{"sub": "bot"}, "client_id": "robot", "aud": "gateway"})
			p.caller = ledger.Caller{Name: policy.SubjectName(provider.Issuer, p.name), Expires: "2099-01-01T00:00:00.000Z",
				Identity: &policy.Identity{Kind: policy.ActorPerson}}
		} else {
			p.caller, err = l.Authenticate(t.Context(), token)
			check.NoError(t, err)
		}
		for _, s := range replicas {
			p.agents = append(p.agents, s.agent("/servers/forge/mcp", token))
		}
		x.people = append(x.people, p)
		x.connect(p)
	}

	var calling, changing sync.WaitGroup
	done := make(chan struct{})
	x.paced = make(chan struct{}, callers*callsOfOne)
	for seed := range callers {
		calling.Go(func() { x.calls(rand.New(rand.NewPCG(1, uint64(seed)))) })
	}
	for seed := range 2 {
		changing.Go(func() {
			random := rand.New(rand.NewPCG(2, uint64(seed)))
			for {
				select {
				case <-done:
					return
				case <-x.paced:
					x.change(random)
				}
			}
		})
	}
	changing.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				x.approveAll()
			}
		}
	})
	calling.Wait()
	close(done)
	changing.Wait()
	x.approveAll()
	soon(t, "all decided runs end", x.allEnded)

	who.mu.Lock()
	for n, names := range who.arrived { // in any order
		if len(names) != 1 || names[0] != x.requested[n] {
			t.Errorf("the call %s of %s arrived with the accounts %q", n, x.requested[n], names)
		}
	}
	t.Logf("%d calls, %d arrived, codes %v", len(x.requested), len(who.arrived), x.codes)
	if len(who.arrived) == 0 || x.approved.Load() == 0 || x.codes["credentials_needed"] == 0 {
		t.Error("nothing arrived, nothing was approved, or nothing was refused: the test shows nothing")
	}
	who.mu.Unlock()
	for _, s := range replicas {
		s.stop(t, exitYes)
		clitest.WantNone(t, "the log", s.stderr.String(), "pat-p")
	}
	verifies(t, dir)
}

// interleaving is the state of the test.
type interleaving struct {
	t        *testing.T
	who      *whoami
	l        *ledger.Ledger
	keys     ledger.SealKeys
	replicas []*served
	people   []*connected
	bob      string
	issuer   string
	paced    chan struct{} // a value for each change
	tokens   atomic.Int64
	approved atomic.Int64

	mu        sync.Mutex
	next      int
	requested map[string]string // the name of the person, by the argument n
	codes     map[string]int
}

// calls requests calls of any people at any replica. An answer with a name has the name of the person.
func (x *interleaving) calls(random *rand.Rand) {
	for range callsOfOne {
		p := x.people[random.IntN(len(x.people))]
		x.mu.Lock()
		x.next++
		n := strconv.Itoa(x.next)
		x.requested[n] = p.name
		x.mu.Unlock()
		_, body, err := p.agents[random.IntN(len(p.agents))].try(
			`{"jsonrpc":"2.0","id":` + n + `,"method":"tools/call","params":{"name":"look","arguments":{"n":` + n + `}}}`)
		var got answered
		if err != nil || json.Unmarshal(body, &got) != nil {
			x.t.Errorf("a call is answered with %s, %v", body, err)
			return
		}
		code := got.code()
		if strings.HasPrefix(code, "p") && len(code) == 2 && code != p.name {
			x.t.Errorf("a call of %s is answered by %s", p.name, code)
		}
		x.mu.Lock()
		if x.codes == nil {
			x.codes = make(map[string]int)
		}
		x.codes[code]++
		x.mu.Unlock()
		if random.IntN(callsEach) == 0 {
			x.paced <- struct{}{}
		}
	}
}

// change makes one random change.
func (x *interleaving) change(random *rand.Rand) {
	p, ctx := x.people[random.IntN(len(x.people))], context.Background()
	switch random.IntN(8) {
	case 0, 1, 2:
		x.connect(p)
	case 3:
		_, err := x.l.Disconnect(ctx, p.caller, "forge")
		x.may(err, ledger.ErrConnection, ledger.ErrBlocked)
	case 4:
		_, err := x.l.RevokeConnections(ctx, ledger.LocalUser("local:root"), p.caller.Name, "")
		x.may(err, ledger.ErrConnection)
	case 5, 6:
		if !policy.HasSubject(p.caller.Name) {
			return
		}
		x.may(x.l.BlockIdentity(ctx, ledger.LocalUser("local:root"), x.issuer, p.name), ledger.ErrBlock)
		x.may(x.l.UnblockIdentity(ctx, ledger.LocalUser("local:root"), x.issuer, p.name), ledger.ErrBlock)
		x.connect(p)
	case 7:
		x.may(x.replicas[random.IntN(len(x.replicas))].cmd.Process.Signal(syscall.SIGHUP))
	}
}

// connect connects an account of the person with a token of its own.
func (x *interleaving) connect(p *connected) {
	_, err := x.l.Connect(context.Background(), p.caller, x.keys, ledger.Connection{Server: "forge", Kind: ledger.ConnectionSecret, Resource: x.who.URL},
		fmt.Sprintf("pat-%s-%08d", p.name, x.tokens.Add(1)))
	x.may(err, ledger.ErrBlocked)
}

// may reports an error that is none of those that other changes can cause.
func (x *interleaving) may(err error, expected ...error) {
	if err != nil && !slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) }) {
		x.t.Error(err)
	}
}

// approveAll approves the calls that wait, at any replica.
func (x *interleaving) approveAll() {
	for i, q := range x.runs(ledger.Filter{Statuses: []ledger.Status{ledger.Pending}}) {
		resp, err := send(context.Background(), http.MethodPost, x.replicas[i%len(x.replicas)].admin+"/approve/"+q.RunID,
			http.Header{"Authorization": {"Bearer " + x.bob}, "Content-Type": {"application/json"}},
			fmt.Sprintf(`{"expected_digest":%q,"reason":"as decided"}`, q.Binding))
		if err != nil {
			x.t.Error(err)
			return
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			x.approved.Add(1)
		}
	}
}

func (x *interleaving) runs(f ledger.Filter) (all []ledger.RunRow) {
	x.may(x.l.View(context.Background(), func(r ledger.Reader) error {
		all = nil
		for q, err := range r.Runs(f) {
			if err != nil {
				return err
			}
			all = append(all, q)
		}
		return nil
	}))
	return all
}

func (x *interleaving) allEnded() bool { return len(x.runs(ledger.Filter{Open: true})) == 0 }
