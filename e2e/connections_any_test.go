package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/policy"
	"pgfsm/traces/ledger"
)

// interleavingSize is how much of everything there is.
type interleavingSize struct {
	people  int
	callers int // that call at the same time
	calls   int // that each of them requests at least
	kills   int // of gateways
}

const (
	callsEach = 5 // calls between two changes
	heldCalls = 3 // different calls that are held, of each person at each server
	maxKeys   = 4 // as many as a configuration may have
)

// A connected person is one whose agent calls, at any replica.
type connected struct {
	name   string        // of the account
	caller ledger.Caller // of the person at the console
	token  string        // of the agent

	mu       sync.Mutex
	sessions map[*served]string
}

// A personServer is a server that people use with accounts of their own: its tool look answers with the name of the account.
type personServer struct {
	*httptest.Server
	name   string
	issuer *identitytest.Provider // nil: people paste tokens

	mu       sync.Mutex
	seen     map[string]bool // tokens
	last     []string        // the tokens of the last requests
	refused  map[string]bool
	rejected int             // requests with refused tokens
	arrived  map[arrival]int // calls, those with refused tokens too
}

// interleaving is the state of the test.
type interleaving struct {
	*deadlyLedger
	size     interleavingSize
	servers  []*personServer
	people   []*connected
	replicas [2]atomic.Pointer[served]
	bob      string // tokens of an approver and an admin
	admin    string
	root     ledger.Caller
	issuer   string
	config   string        // of the gateways, with KEYS in place of the keys
	paced    chan struct{} // a value for each change
	approved atomic.Int64
	next     atomic.Int64
	rotated  atomic.Int64 // times that a key was replaced
	over     atomic.Bool  // all kills have happened

	starting sync.Mutex   // held while a gateway starts, or all reload
	sealing  sync.RWMutex // held for writing while keys change
	keys     []string     // the first seals

	counting sync.Mutex
	codes    map[string]int
}

// TestConnectionsOfAnyInterleaving: people connect accounts at three servers, connect again, disconnect, are revoked, blocked and unblocked, servers
// refuse tokens, tokens are refreshed, calls are held and approved, keys are replaced, two replicas reload and are killed while they refresh
// tokens, all at the same time. Most of the people have one agent that acts for all of them. Each call that arrives at a server comes with
// the account of the person for whom the record has it, and with the connection that the record names. Each refresh token is sent once, unless the
// gateway died that sent it. make crash asks for fifty people, PGFSM_SEED for the choices of an earlier run.
func TestConnectionsOfAnyInterleaving(t *testing.T) {
	t.Parallel()
	size, seed := interleavingSize{people: 5, callers: 6, calls: 40, kills: len(killings)}, uint64(1)
	if os.Getenv(crashKills) != "" {
		size, seed = interleavingSize{people: 50, callers: 16, calls: 400, kills: 10 * len(killings)}, uint64(time.Now().UnixNano())
	}
	if text := os.Getenv("PGFSM_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		check.NoError(t, err)
	}
	t.Logf("PGFSM_SEED=%d", seed)
	x := newInterleaving(t, size)

	var calling, changing sync.WaitGroup
	done := make(chan struct{})
	for n := range size.callers {
		calling.Go(func() { x.calls(rand.New(rand.NewPCG(seed, uint64(n)))) })
	}
	for n := range 2 {
		changing.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(1000+n)))
			var order []int
			for {
				if len(order) == 0 {
					order = random.Perm(kindsOfChanges)
				}
				select {
				case <-done:
					return
				case <-x.paced:
					x.change(order[0], random)
					order = order[1:]
				}
			}
		})
	}
	for n := range size.kills {
		x.killsNext(killings[n%len(killings)])
		select {
		case s := <-x.died:
			x.restart(s)
		case <-time.After(clitest.Patience):
			t.Error("no gateway refreshes a token")
		}
	}
	x.over.Store(true)
	calling.Wait()
	close(done)
	changing.Wait()
	x.rotate(rand.New(rand.NewPCG(seed, 2000)))
	x.beginAgain()
	x.approveAll()
	soon(t, "all decided runs end", x.allEnded)

	x.judge()
	for i := range x.replicas {
		x.replicas[i].Load().stop(t, exitYes)
	}
	command(t.Context(), nil, "ledger", "verify", "--deep", "-c", filepath.Join(x.dir, "pgfsm.yaml")).Want(t, exitYes)
	x.noTokens()
}

func newInterleaving(t *testing.T, size interleavingSize) *interleaving {
	t.Helper()
	idp, ledgerURL := identitytest.New(t), newLedger(t)
	files := []string{"allowlist.json", `{"forge": ["look"], "wiki": ["look"], "desk": ["look"]}`, "key-0", sealKey, "policy.yaml", `version: 1
policies:
  - {id: people, match: {tool: look}, effect: pending, when: "args.n % 4 == 0", reason: "People decide.", expires: 1h}
  - {id: rest, match: {tool: "*"}, effect: allow, reason: "Agents may."}
`}
	if ledgerURL != inFile {
		files = append(files, "ledger.url", ledgerURL)
	}
	x := &interleaving{
		size: size, issuer: idp.Issuer, keys: []string{sealKey}, codes: make(map[string]int), paced: make(chan struct{}, size.callers*size.calls),
		deadlyLedger: newDeadlyLedger(t, clitest.Folder(t, files...)),
	}
	rotating := x.newIssuer(func(p *identitytest.Provider) { p.Rotate = true })
	keeping := x.newIssuer(func(p *identitytest.Provider) { p.Keeps = true })
	x.servers = []*personServer{x.newServer("forge", nil), x.newServer("wiki", rotating), x.newServer("desk", keeping)}
	x.config = fmt.Sprintf(`version: 1
servers:
  forge: {type: http, url: %q, auth: {person: {secret: {}}}}
  wiki: {url: %q, auth: {person: {oauth: {issuer: %q, client_id: app, client_secret: "${env:PGFSM_CLIENT_SECRET}", scopes: [repo]}}}}
  desk: {url: %q, sessions: session, auth: {person: {oauth: {issuer: %q, client_id: app, client_secret: "${env:PGFSM_CLIENT_SECRET}", scopes: [repo]}}}}
allowlist: allowlist.json
policy: policy.yaml
connections: {keys: [KEYS]}
ledger: %q
identity:
  issuers: [{issuer: %s, audiences: {mcp: [gateway], admin: [approvals]}, people: [pgfsm-cli]}]
`, x.servers[0].URL, x.servers[1].URL, rotating.Issuer, x.servers[2].URL, keeping.Issuer, ledgerURL, idp.Issuer)
	config := x.configure()
	x.bob = makeToken(t, config, "approver", "bob")
	for i := range x.replicas {
		x.replicas[i].Store(x.serve())
	}
	for i := range size.people {
		p := &connected{name: fmt.Sprint("p", i), sessions: make(map[*served]string)}
		if i%5 < 3 { // one agent acts for all of them
			p.token = idp.Sign(map[string]any{"sub": p.name, "act": map[string]any{"sub": "bot"}, "client_id": "robot", "aud": "gateway"})
			p.caller = ledger.Caller{Name: policy.SubjectName(idp.Issuer, p.name), Expires: "2099-01-01T00:00:00.000Z",
				Identity: &policy.Identity{Kind: policy.ActorPerson}}
		} else {
			var err error
			p.token = makeToken(t, config, "person", p.name)
			p.caller, err = x.Authenticate(t.Context(), p.token)
			check.NoError(t, err)
		}
		x.people = append(x.people, p)
		for _, s := range x.servers {
			x.connectAt(p, s)
		}
	}
	x.admin = makeToken(t, config, "admin", "root") // the last token: from now on, only admins make tokens
	var err error
	x.root, err = x.Authenticate(t.Context(), x.admin)
	check.NoError(t, err)
	return x
}

func (x *interleaving) newServer(name string, issuer *identitytest.Provider) *personServer {
	nameOfToken := nameOf
	if issuer != nil {
		nameOfToken = subjectOf
	}
	s := &personServer{name: name, issuer: issuer, seen: make(map[string]bool), refused: make(map[string]bool), arrived: make(map[arrival]int)}
	inner := newLooks(x.t, nameOfToken)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, n := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), argumentOf(r)
		s.mu.Lock()
		s.seen[token] = true
		s.last = append(s.last, token)[max(0, len(s.last)-10):]
		if n != "" { // the connection is known at the end
			s.arrived[arrival{name, n, nameOfToken(r), accountOf(token)}]++
		}
		refused := s.refused[token]
		if refused {
			s.rejected++
		}
		s.mu.Unlock()
		if refused || nameOfToken(r) == "" {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	x.t.Cleanup(s.Close)
	return s
}

// configure writes the configuration with the keys, and returns its path.
func (x *interleaving) configure() string {
	path, names := filepath.Join(x.dir, "pgfsm.yaml"), []string(nil)
	for _, key := range x.keys {
		name := "key-" + base64.RawURLEncoding.EncodeToString([]byte(key[:6]))
		clitest.Write(x.t, filepath.Join(x.dir, name), key)
		names = append(names, `"${file:`+name+`}"`)
	}
	clitest.Write(x.t, path+".new", strings.Replace(x.config, "KEYS", strings.Join(names, ", "), 1))
	check.NoError(x.t, os.Rename(path+".new", path)) // a gateway may read it now
	return path
}

// restart starts another gateway in place of one that was killed.
func (x *interleaving) restart(s *served) {
	x.starting.Lock()
	defer x.starting.Unlock()
	for i := range x.replicas {
		if x.replicas[i].Load() == s {
			x.replicas[i].Store(x.serve())
		}
	}
}

// beginAgain lets the servers accept all tokens, and starts the gateways again, so that they try the approved calls at once.
func (x *interleaving) beginAgain() {
	for _, s := range x.servers {
		s.mu.Lock()
		clear(s.refused)
		s.mu.Unlock()
	}
	for i := range x.replicas {
		x.replicas[i].Load().stop(x.t, exitYes)
		x.replicas[i].Store(x.serve())
	}
}

// replica returns any gateway that lives, if there is one.
func (x *interleaving) replica(random *rand.Rand) *served {
	i := random.IntN(len(x.replicas))
	if s := x.replicas[i].Load(); !x.isKilled(s) {
		return s
	}
	return x.replicas[1-i].Load()
}

// calls requests calls of any people, some of them two at the same time. An answer with a name has the name of the person.
func (x *interleaving) calls(random *rand.Rand) {
	for i := 0; i < x.size.calls || !x.over.Load(); i++ {
		p, server := x.people[random.IntN(len(x.people))], x.servers[random.IntN(len(x.servers))]
		var both sync.WaitGroup
		for range 1 + random.IntN(2) {
			n, seed := 4*x.next.Add(1)+1, random.Uint64()
			if random.IntN(4) == 0 {
				n = 4 * (1 + random.Int64N(heldCalls))
			}
			both.Go(func() { x.call(rand.New(rand.NewPCG(seed, 0)), p, server.name+"__look", fmt.Sprintf(`{"n":%d}`, n)) })
		}
		both.Wait()
		if random.IntN(callsEach) == 0 {
			select {
			case x.paced <- struct{}{}:
			default:
			}
		}
	}
}

// call makes a call at any replica, and notes what it comes to.
func (x *interleaving) call(random *rand.Rand, p *connected, tool, args string) {
	code := x.answer(random, p, x.replica(random), tool, args)
	if code != p.name && slices.ContainsFunc(x.people, func(other *connected) bool { return other.name == code }) {
		x.t.Errorf("a call of %s is answered by %s", p.name, code)
	}
	x.counting.Lock()
	defer x.counting.Unlock()
	x.codes[code]++
}

// answer makes a call with a session or without, and returns what it comes to.
func (x *interleaving) answer(random *rand.Rand, p *connected, s *served, tool, args string) string {
	var body []byte
	var err error
	if random.IntN(2) == 0 {
		var resp *http.Response
		client := &stateless{s: s, url: s.mcp, token: p.token, can: `{}`}
		if resp, err = client.ask(context.Background(), "tools/call", tool, `"name":"`+tool+`","arguments":`+args); err == nil {
			var all [][]byte
			if all, err = messages(resp); len(all) > 0 {
				body = all[len(all)-1]
			}
			resp.Body.Close()
		}
	} else {
		message := `{"jsonrpc":"2.0","id":` + strconv.FormatUint(random.Uint64()>>12, 10) + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
		a := &agent{s: s, url: s.mcp, token: p.token, session: p.session(s)}
		if random.IntN(8) == 0 { // in the session of any person
			a.session = x.people[random.IntN(len(x.people))].session(s)
		}
		_, body, err = a.try(message)
	}
	var got answered
	switch {
	case err == nil && json.Unmarshal(body, &got) == nil:
		got.Raw = body
		return got.code()
	case x.isKilled(s):
		return "killed"
	}
	return fmt.Sprintf("%q, %v", body, err)
}

// session returns the id of the person's session with a gateway.
func (p *connected) session(s *served) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sessions[s] == "" {
		a := &agent{s: s, url: s.mcp, token: p.token}
		resp, _, err := a.try(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
		if err == nil {
			p.sessions[s] = resp.Header.Get("Mcp-Session-Id")
		}
	}
	return p.sessions[s]
}

// kindsOfChanges counts the cases of [interleaving.change]. Frequent changes have several.
const kindsOfChanges = 18

// change makes one change of a kind.
func (x *interleaving) change(kind int, random *rand.Rand) {
	p, s, ctx := x.people[random.IntN(len(x.people))], x.servers[random.IntN(len(x.servers))], context.Background()
	switch kind {
	case 0, 1, 2, 3, 4, 5:
		x.connectAt(p, s)
	case 6:
		x.may(x.Disconnect(ctx, p.caller, s.name), ledger.ErrConnection, ledger.ErrBlocked)
	case 7:
		_, err := x.RevokeConnections(ctx, x.root, p.caller.Name, []string{"", s.name}[random.IntN(2)])
		x.may(err, ledger.ErrConnection)
	case 8:
		if policy.HasSubject(p.caller.Name) {
			x.may(x.BlockIdentity(ctx, x.root, x.issuer, p.name), ledger.ErrBlock)
			x.may(x.UnblockIdentity(ctx, x.root, x.issuer, p.name), ledger.ErrBlock)
			x.connectAt(p, s)
		}
	case 9:
		x.may(x.replica(random).cmd.Process.Signal(syscall.SIGHUP), os.ErrProcessDone)
	case 10:
		x.rotate(random)
	case 11, 12:
		s.refuse(random)
	case 13, 14, 15:
		x.pausesEnd()
	case 16, 17:
		x.approveAll()
	}
}

// refuse makes the server refuse a token that it has just got.
func (s *personServer) refuse(random *rand.Rand) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) > 0 {
		s.refused[s.last[random.IntN(len(s.last))]] = true
	}
}

// connectAt connects an account of the person.
func (x *interleaving) connectAt(p *connected, s *personServer) {
	x.sealing.RLock()
	defer x.sealing.RUnlock()
	_, err := x.connect(s.issuer, p.caller, testKeys(x.t, x.keys...), s.name, s.URL, p.name)
	x.may(err, ledger.ErrBlocked)
}

// pausesEnd lets the pauses after refreshes end, as ten seconds do.
func (x *interleaving) pausesEnd() {
	x.may(x.store.Update(context.Background(), func(tx ledger.Tx) error {
		for c, err := range tx.Connections() {
			if err == nil && c.Usable() && c.Until != "" && c.Holder == "" {
				c.Until = ""
				err = tx.PutConnection(c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// rotate replaces the key as the documentation says. If a gateway is refreshing tokens, the old keys stay until the next time.
func (x *interleaving) rotate(random *rand.Rand) {
	x.starting.Lock()
	defer x.starting.Unlock()
	key := make([]byte, ledger.SealKeyBytes)
	for i := range key {
		key[i] = byte(random.Uint32())
	}
	change := func(keys []string) {
		x.sealing.Lock()
		defer x.sealing.Unlock()
		x.keys = keys
		x.configure()
		for i := range x.replicas {
			s := x.replicas[i].Load()
			resp, err := send(context.Background(), http.MethodPost, s.admin+"/reload", http.Header{"Authorization": {"Bearer " + x.admin}}, "")
			if err == nil {
				resp.Body.Close()
			}
			if (err != nil || resp.StatusCode != http.StatusOK) && !x.isKilled(s) {
				x.t.Errorf("reload: %v, %v", resp, err)
			}
		}
	}
	if len(x.keys) < maxKeys {
		change(append([]string{base64.StdEncoding.EncodeToString(key)}, x.keys...))
	}
	_, err := x.ResealConnections(context.Background(), x.root, testKeys(x.t, x.keys...))
	if x.may(err, ledger.ErrConnection); err == nil {
		change(x.keys[:1])
		x.rotated.Add(1)
	}
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
		s := x.replicas[i%len(x.replicas)].Load()
		resp, err := send(context.Background(), http.MethodPost, s.admin+"/approve/"+q.RunID,
			http.Header{"Authorization": {"Bearer " + x.bob}, "Content-Type": {"application/json"}},
			fmt.Sprintf(`{"expected_digest":%q,"reason":"as decided"}`, q.Binding))
		if err != nil && x.isKilled(s) {
			continue
		}
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
	x.may(x.View(context.Background(), func(r ledger.Reader) error {
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
