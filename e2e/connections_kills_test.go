package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/internal/identity/connect"
	"pgfsm/internal/identity/identitytest"
	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/stores"
)

// When an authorization server kills the gateway that sends it a refresh token.
const (
	killsBefore   = "before-the-token-is-used"
	killsAfter    = "before-the-answer"
	killsAnswered = "before-the-commit"
)

var killings = []string{killsBefore, killsAfter, killsAnswered}

const connectedScope = "repo" // of all tokens

// A deadlyLedger is a ledger with gateways that authorization servers kill. Each gateway has a client secret of its own, so that the servers know
// who asks.
type deadlyLedger struct {
	*ledger.Ledger
	t     *testing.T
	store ledger.Store
	dir   string
	died  chan *served // those that an authorization server has killed

	mu       sync.Mutex
	running  map[string]*served // by client secret
	killed   map[string]bool    // client secrets
	first    map[string]string  // by refresh token: the client secret with which it came first
	repeated map[string]bool    // refresh tokens that came twice
	kills    string             // the next refresh; empty: none
	accounts map[string]*madeAccount
	holders  map[string]string // by the holder of a lease: the client secret
	asked    map[string]int    // refreshes, by issuer
	pasted   atomic.Int64      // numbers tokens
}

// A madeAccount is an account that a person has connected. Its tokens have its id.
type madeAccount struct{ person, server, connection string }

func newDeadlyLedger(t *testing.T, dir string) *deadlyLedger {
	t.Helper()
	store, err := stores.Open(ledgerOf(dir), stores.ToWrite)
	check.NoError(t, err)
	t.Cleanup(func() { store.Close() })
	l, err := ledger.Open(t.Context(), store, ledger.Options{})
	check.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return &deadlyLedger{
		Ledger: l, t: t, store: store, dir: dir, died: make(chan *served, 1),
		running: make(map[string]*served), killed: make(map[string]bool), first: make(map[string]string), repeated: make(map[string]bool),
		accounts: make(map[string]*madeAccount), holders: make(map[string]string), asked: make(map[string]int),
	}
}

// serve starts a gateway.
func (d *deadlyLedger) serve() *served {
	d.t.Helper()
	d.mu.Lock()
	secret := fmt.Sprintf("secret-of-replica-%d", len(d.running))
	d.running[secret] = nil
	d.mu.Unlock()
	s := startWith(d.t, d.dir, []string{"PGFSM_CLIENT_SECRET=" + secret}, "serve", "--listen", "127.0.0.1:0")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running[secret] = s
	return s
}

// newIssuer returns an authorization server for the tokens of a server. Its access tokens end so soon that each request wants newer ones.
func (d *deadlyLedger) newIssuer(configure func(*identitytest.Provider)) *identitytest.Provider {
	p := identitytest.New(d.t)
	p.Life = 50 * time.Second
	p.Clients["app"] = "secret-of-the-client"
	configure(p)
	p.Override("/token", func(w http.ResponseWriter, r *http.Request) { d.token(p, w, r) })
	return p
}

// token answers a request with a refresh token. It comes once, unless the gateway is dead that sent it first.
func (d *deadlyLedger) token(p *identitytest.Provider, w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	refresh := r.PostFormValue("refresh_token")
	r.SetBasicAuth(id, p.Clients["app"])
	d.mu.Lock()
	first, again := d.first[refresh]
	if !again {
		d.first[refresh] = secret
	} else if !p.Keeps {
		d.repeated[refresh] = true
		if !d.killed[first] {
			d.t.Errorf("the refresh token that came with %s comes again with %s", first, secret)
		}
	}
	d.asked[p.Issuer]++
	account := d.accounts[identitytest.Family(refresh)]
	d.mu.Unlock()
	for range 20 { // meanwhile others want to refresh the same token
		_ = d.store.View(r.Context(), func(r ledger.Reader) error {
			c, err := r.Connection(account.person, account.server)
			if err == nil && c.ID == account.connection {
				d.mu.Lock()
				defer d.mu.Unlock()
				d.holders[c.Holder] = secret
			}
			return err
		})
	}
	d.mu.Lock()
	s, kills := d.running[secret], d.kills
	if kills == "" || s == nil || again {
		d.mu.Unlock()
		p.Default(w, r)
		return
	}
	d.kills, d.killed[secret] = "", true
	d.mu.Unlock()

	// The ledger is locked, so that the gateway cannot store what it gets. Afterwards a minute has passed: its leases have ended.
	err := d.store.Update(context.Background(), func(tx ledger.Tx) error {
		if kills != killsBefore {
			answer := httptest.NewRecorder()
			p.Default(answer, r)
			if kills == killsAnswered {
				w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
				w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
				_, _ = w.Write(answer.Body.Bytes())
				w.(http.Flusher).Flush()
			}
		}
		s.kill()
		d.mu.Lock()
		defer d.mu.Unlock()
		for c, err := range tx.Connections() {
			if err == nil && c.Holder != "" && d.holders[c.Holder] == secret {
				c.Until = ""
				err = tx.PutConnection(c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		d.t.Errorf("the lease of the killed gateway: %v", err)
	}
	d.died <- s
	panic(http.ErrAbortHandler)
}

// connect connects an account of a person at an authorization server, or with a pasted token if there is none.
func (d *deadlyLedger) connect(p *identitytest.Provider, by ledger.Caller, keys ledger.SealKeys, server, resource, name string) (id string, err error) {
	c := ledger.Connection{Server: server, Kind: ledger.ConnectionSecret, Resource: resource}
	id = fmt.Sprintf("%08d", d.pasted.Add(1))
	credentials := "pat-" + name + "-" + id
	if p != nil {
		answer := p.Grant("app", name, resource, connectedScope)
		tokens := connect.Tokens{Access: answer["access_token"].(string), Refresh: answer["refresh_token"].(string), Expires: time.Now().Add(p.Life)}
		text, err := tokens.Encode()
		check.NoError(d.t, err)
		c.Kind, c.Issuer, c.Client, c.Scopes = ledger.ConnectionOAuth, p.Issuer, "app", []string{connectedScope}
		id, credentials = identitytest.Family(tokens.Refresh), string(text)
	}
	d.mu.Lock()
	account := &madeAccount{person: by.Principal(), server: server}
	d.accounts[id] = account
	d.mu.Unlock()
	made, err := d.Connect(context.Background(), by, keys, c, credentials)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		account.connection = made.ID
	}
	return id, err
}

// killsNext has the next refresh kill its gateway.
func (d *deadlyLedger) killsNext(when string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kills = when
}

// isKilled reports whether a gateway was killed.
func (d *deadlyLedger) isKilled(s *served) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for secret, running := range d.running { // in any order
		if running == s && d.killed[secret] {
			return true
		}
	}
	return false
}

// accountOf returns the id of the account whose token this is.
func accountOf(token string) string {
	if _, family := claimsOf(token); family != "" {
		return family
	}
	return token[strings.LastIndex(token, "-")+1:]
}

// testKeys are the keys of the configuration.
func testKeys(t *testing.T, encoded ...string) (keys ledger.SealKeys) {
	t.Helper()
	for _, k := range encoded {
		key, err := base64.StdEncoding.DecodeString(k)
		check.NoError(t, err)
		keys = append(keys, key)
	}
	return keys
}

// TestRefreshSurvivesKills: a gateway is killed while it refreshes a token. Until the authorization server has used the token, another gateway goes
// on with it. Afterwards the connection is lost, which is counted, and the person connects again. A newer connection is not touched.
func TestRefreshSurvivesKills(t *testing.T) {
	t.Parallel()
	for _, kills := range killings {
		t.Run(kills, func(t *testing.T) {
			t.Parallel()
			forge := newOAuthForge(t)
			dir := forge.folder(t)
			d := newDeadlyLedger(t, dir)
			issuer := d.newIssuer(func(p *identitytest.Provider) { p.Rotate = true })
			config := clitest.Read(t, filepath.Join(dir, "pgfsm.yaml"))
			clitest.Write(t, filepath.Join(dir, "pgfsm.yaml"), strings.NewReplacer(forge.Issuer, issuer.Issuer, "forge-client", "app", "${file:forge.secret}",
				"${env:PGFSM_CLIENT_SECRET}").Replace(config))
			doomed, survivor := d.serve(), d.serve()
			token := makeToken(t, doomed.config, "person", "ann")
			caller, err := d.Authenticate(t.Context(), token)
			check.NoError(t, err)
			connects := func() {
				t.Helper()
				_, err := d.connect(issuer, caller, testKeys(t, sealKey), "forge", forge.URL, "ann")
				check.NoError(t, err)
			}
			connects()
			d.killsNext(kills)
			call := &stateless{s: doomed, url: doomed.mcp, token: token, can: `{}`}
			if resp, err := call.ask(clitest.Patient(t), "tools/call", "forge__look", `"name":"forge__look","arguments":{"n":1}`); err == nil {
				t.Errorf("the killed gateway answers: %s", resp.Status)
			}
			<-d.died

			ann, want := survivor.agent("/mcp", token), map[bool]string{true: "ann", false: "credentials_needed"}[kills == killsBefore]
			ann.gets(t, "forge__look", `{"n":2}`, want)
			if want == "credentials_needed" {
				if d.stateOf(t, caller.Principal(), "forge") != ledger.ConnectionLost || !strings.Contains(survivor.stderr.String(), "a connection is lost") {
					t.Errorf("the connection is not lost: %s", survivor.stderr)
				}
				connects()
				ann.gets(t, "forge__look", `{"n":3}`, "ann")
			}
			lost := map[bool]int{true: 0, false: 1}[kills == killsBefore]
			if issuer.Reuses() != lost || issuer.Live() != 1 || forge.called() != 1 {
				t.Errorf("%d tokens came again, %d families are live, %d calls arrived", issuer.Reuses(), issuer.Live(), forge.called())
			}
			_, _, text := survivor.scraped(t, nil)
			if counted := strings.Contains(text, `pgfsm_connections_changed_total{change="lost"} 1`); counted != (lost == 1) {
				t.Errorf("the metrics:\n%s", text)
			}
			survivor.stop(t, exitYes)
			verifies(t, dir)
		})
	}
}

// stateOf returns the state of a connection.
func (d *deadlyLedger) stateOf(t *testing.T, person, server string) (state string) {
	t.Helper()
	check.NoError(t, d.View(t.Context(), func(r ledger.Reader) error {
		c, err := r.Connection(person, server)
		state = c.State
		return err
	}))
	return state
}
