package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/internal/test/clitest"
	"pgfsm/internal/test/mcptest"
	"pgfsm/traces/ledger"
)

// The kills of the gateway. All of them take minutes, so by default there are few; make crash asks for all.
const (
	crashKills        = "PGFSM_CRASH_KILLS"
	crashKillsDefault = 4
	crashKillsShort   = 3 // and under the race detector, where a process takes a second to start
)

func killsWanted(t *testing.T) int {
	t.Helper()
	text, set := os.LookupEnv(crashKills)
	switch {
	case set:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s is %q: want a number", crashKills, text)
		}
		return n
	case testing.Short():
		return crashKillsShort
	}
	return max(crashKillsShort, scaled(crashKillsDefault))
}

const (
	crashAgents    = 6 // that repeat identical calls
	crashCalls     = 3 // different calls
	crashApprovers = 3
	crashLedger    = 15                     // kills after which a new ledger begins: each verification reads all of it
	crashTime      = 500 * time.Millisecond // within which the gateway is killed at a random moment, or as a call arrives or was answered
)

// A riot is many agents that repeat the same held calls, and approvers that approve and deny them, while the gateway is killed and
// started again.
type riot struct {
	*testing.T
	u      *mcptest.Server
	dir    string
	agents []string                // tokens; each is that of many agents at once
	bosses []string                // tokens of approvers
	now    atomic.Pointer[served]  // the gateway of the moment; nil: none
	other  *served                 // one on the same ledger that is not killed; nil: none
	kill   atomic.Pointer[cutting] // what the server does about it
	base   atomic.Int32            // of the calls that agents make: it grows, so that there are few runs of each
	over   chan struct{}

	mu       sync.Mutex
	tickets  map[string]string // what a call was answered by the server, and with which arguments it came
	asked    map[string]int    // calls that arrived, by their arguments
	received map[string]int    // outcomes that agents were told: tickets, and runs that were refused
	denied   map[string]bool   // runs whose denial was acknowledged
	agreed   map[string]bool   // runs whose approval was acknowledged
	faults   []string
}

// A cutting is a kill by the server: when the nth call from now on arrives, or was answered.
type cutting struct {
	left     atomic.Int32
	answered bool
	process  *os.Process
}

// TestServeCrash kills the gateway at random moments while agents repeat the calls that it holds and people decide about them. No
// run is called twice, none after an acknowledged denial, no outcome is told twice, and the ledger verifies after every kill.
func TestServeCrash(t *testing.T) {
	t.Parallel()
	kills := killsWanted(t)
	for name, beside := range map[string]bool{"alone": false, "beside-another-gateway": true} { // in any order
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for left := kills; left > 0 && !t.Failed(); left -= crashLedger {
				newRiot(t, beside).rages(min(left, crashLedger), uint64(left))
			}
		})
	}
}

// rages lets the gateway be killed so many times, each time another way.
func (o *riot) rages(kills int, stream uint64) {
	const seed = 20261121
	r := rand.New(rand.NewPCG(seed+stream, 6))
	var agents sync.WaitGroup
	for n := range crashAgents * len(o.agents) {
		rnd := rand.New(rand.NewPCG(seed+stream, uint64(100+n)))
		agents.Go(func() { o.repeats(rnd, o.agents[n%len(o.agents)], n%4 == 0) })
	}
	for n := range crashApprovers {
		rnd := rand.New(rand.NewPCG(seed+stream, uint64(1000+n)))
		agents.Go(func() { o.decides(rnd, o.bosses[n]) })
	}
	for n := range kills {
		after := time.Duration(r.Int64N(int64(crashTime)))
		if n%4 == 3 {
			o.killsEarly(after)
			continue
		}
		s := serve(o.T, o.dir)
		if n%4 < 2 {
			after += 4 * crashTime // unless the server is faster
			c := &cutting{answered: n%4 == 1, process: s.cmd.Process}
			c.left.Store(1 + int32(r.IntN(3)))
			o.kill.Store(c)
		}
		o.now.Store(s)
		timer := time.AfterFunc(after, func() { s.cmd.Process.Kill() })
		s.cmd.Wait()
		timer.Stop()
		o.now.Store(nil)
		o.kill.Store(nil)
		verifies(o.T, o.dir)
		o.holds(fmt.Sprintf("kill %d", n+1), false)
		if o.Failed() {
			break
		}
	}
	o.ends(kills, func() {
		close(o.over)
		agents.Wait()
	})
}

// killsEarly kills a gateway that starts: while it opens the ledger, or ends what the one before has left.
func (o *riot) killsEarly(after time.Duration) {
	o.Helper()
	cmd, _, _ := child(o.Context(), "pgfsm", nil, "serve", "-c", filepath.Join(o.dir, "pgfsm.yaml"), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	check.NoError(o, cmd.Start())
	defer time.AfterFunc(after, func() { cmd.Process.Kill() }).Stop()
	cmd.Wait()
	verifies(o.T, o.dir)
}

func newRiot(t *testing.T, beside bool) *riot {
	o := &riot{
		T: t, over: make(chan struct{}), tickets: make(map[string]string), asked: make(map[string]int), received: make(map[string]int),
		denied: make(map[string]bool), agreed: make(map[string]bool),
	}
	o.u = mcptest.New(t, mcptest.Except("tools/list", mcptest.TwoTools))
	o.u.Came = make(chan string) // nobody listens
	o.u.Arguments = o.called
	url := newLedger(t)
	o.dir = gatewayFolder(t, o.u, strings.Replace(inOffice, inFile, clitest.Quote(url), 1))
	if url != inFile {
		clitest.Write(t, filepath.Join(o.dir, "ledger.url"), url)
	}
	clitest.Write(t, filepath.Join(o.dir, "policy.yaml"), holdLook)
	config := filepath.Join(o.dir, "pgfsm.yaml")
	for n := range 2 {
		o.agents = append(o.agents, makeToken(t, config, "agent", fmt.Sprintf("agent-%d", n)))
	}
	for n := range crashApprovers {
		o.bosses = append(o.bosses, makeToken(t, config, "approver", fmt.Sprintf("boss-%d", n)))
	}
	if beside {
		o.other = serve(t, o.dir)
	}
	return o
}

// called is the server: each call gets a ticket of its own.
func (o *riot) called(args []byte) (result string) {
	o.mu.Lock()
	ticket := fmt.Sprintf("ticket-%d", len(o.tickets)+1)
	o.tickets[ticket] = string(args)
	o.asked[string(args)]++
	o.mu.Unlock()
	if c := o.kill.Load(); c != nil && c.left.Add(-1) == 0 {
		if !c.answered {
			c.process.Kill()
		} else {
			time.AfterFunc(time.Duration(len(ticket))*time.Millisecond, func() { c.process.Kill() }) // any moment is a good one
		}
	}
	return fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, ticket)
}

func (o *riot) fault(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = append(o.faults, fmt.Sprintf(format, args...))
}

// running is a gateway, or nil when all is over.
func (o *riot) running(r *rand.Rand) *served {
	for {
		s := o.now.Load()
		if o.other != nil && (s == nil || r.IntN(2) == 0) {
			s = o.other
		}
		if s != nil {
			select {
			case <-o.over:
				return nil
			default:
				return s
			}
		}
		select {
		case <-o.over:
			return nil
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// repeats is an agent: it makes one of a few calls again and again, and receives what becomes of it.
func (o *riot) repeats(r *rand.Rand, token string, stateful bool) {
	for {
		s := o.running(r)
		if s == nil {
			return
		}
		n := int(o.base.Load()) + r.IntN(crashCalls)
		var body []byte
		if stateful {
			body = o.inSession(s, token, n)
		} else {
			c := &stateless{s: s, url: s.mcp, token: token, can: `{}`}
			resp, err := c.ask(o.Context(), "tools/call", "echo__look", fmt.Sprintf(`"name":"echo__look","arguments":{"n":%d}`, n))
			if err == nil {
				body, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if err != nil {
				body = nil
			}
		}
		o.receives(body)
		time.Sleep(time.Duration(r.Int64N(int64(10 * time.Millisecond)))) // so that not all of them come in step
	}
}

// inSession makes the call in a session of its own; nil if the gateway died.
func (o *riot) inSession(s *served, token string, n int) []byte {
	a := &agent{s: s, url: s.mcp, token: token}
	resp, _, err := a.try(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"test","version":"1"}}}`)
	if err != nil {
		return nil
	}
	a.session = resp.Header.Get("Mcp-Session-Id")
	_, body, err := a.try(callMessage("echo__look", fmt.Sprintf(`{"n":%d}`, n)))
	if err != nil {
		return nil
	}
	return body
}

// receives notes what an agent was told. What is not whole was not told.
func (o *riot) receives(body []byte) {
	body = bytes.TrimSpace(body)
	if _, data, ok := bytes.Cut(body, []byte("data: {")); ok { // a stream
		body = append([]byte("{"), data...)
	}
	var got answered
	if len(body) == 0 || json.Unmarshal(body, &got) != nil || got.Result == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch code := got.code(); {
	case strings.HasPrefix(code, "ticket-"):
		o.received[code]++
		o.base.Add(1)
	case got.Result.Meta.Decision.RunID != "" && code != "approval_required" && code != "record_failed":
		o.received[got.Result.Meta.Decision.RunID]++
	}
}

// decides is an approver: they approve or deny what waits.
func (o *riot) decides(r *rand.Rand, token string) {
	for {
		s := o.running(r)
		if s == nil {
			return
		}
		var page struct {
			Requests []struct {
				Run     string `json:"run"`
				Binding string `json:"binding"`
			} `json:"requests"`
		}
		if o.asks(s, http.MethodGet, "/pending", "", token, &page) != http.StatusOK || len(page.Requests) == 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		q := page.Requests[r.IntN(len(page.Requests))]
		verb, to := "approve", o.agreed
		if r.IntN(3) == 0 {
			verb, to = "deny", o.denied
		}
		if o.asks(s, http.MethodPost, "/"+verb+"/"+q.Run, fmt.Sprintf(`{"expected_digest":%q,"reason":"as agreed"}`, q.Binding), token, nil) == http.StatusOK {
			o.mu.Lock()
			to[q.Run] = true
			o.mu.Unlock()
		}
	}
}

// asks makes a request of the admin address; 0 if the gateway died.
func (o *riot) asks(s *served, method, path, body, token string, into any) int {
	headers := http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	resp, err := send(o.Context(), method, s.admin+path, headers, body)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	if err != nil || into != nil && resp.StatusCode == http.StatusOK && json.Unmarshal(said, into) != nil {
		return 0
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusConflict && resp.StatusCode != http.StatusGone {
		o.fault("%s %s: %s %s", method, path, resp.Status, said)
	}
	return resp.StatusCode
}

// holds looks whether the ledger says what was received and what arrived. In the end nothing is left to be done.
func (o *riot) holds(when string, end bool) (t totals) {
	o.Helper()
	o.mu.Lock()
	before, denied, agreed := maps.Clone(o.asked), maps.Clone(o.denied), maps.Clone(o.agreed)
	o.mu.Unlock()
	all := recorded(o.T, o.dir) // the other gateway goes on meanwhile
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.faults {
		o.Errorf("%s: %s", when, f)
	}
	done, maybe := make(map[string]int), make(map[string]int)
	for i := range all {
		q := &all[i]
		switch {
		case q.Status == ledger.Executed:
			done[q.Args]++
			t.executed++
		case q.Status == ledger.Indeterminate:
			maybe[q.Args]++
			t.indeterminate++
		case q.Sent != "" && q.Ended == "":
			maybe[q.Args]++
		case q.Sent != "":
			o.Errorf("%s: run %s was sent, and is %s %s", when, q.RunID, q.Status, q.Code)
		}
		if denied[q.RunID] && (agreed[q.RunID] || q.Sent != "" || q.Status != ledger.Denied) {
			o.Errorf("%s: run %s was denied, and that was acknowledged; it is %s", when, q.RunID, q.Status)
		}
		if q.Delivered != "" {
			t.told++
		}
		if end && (q.Ended == "" && q.Status != ledger.Pending || agreed[q.RunID] && q.Status != ledger.Executed && q.Status != ledger.Indeterminate) {
			o.Errorf("%s: run %s is left %s", when, q.RunID, q.Status)
		}
	}
	for args, n := range before { // in any order: each stands alone
		if n > done[args]+maybe[args] {
			o.Errorf("%s: %d calls %s arrived; %d runs are executed, of %d nobody knows", when, n, args, done[args], maybe[args])
		}
	}
	for args, n := range done { // in any order
		if o.asked[args] < n {
			o.Errorf("%s: %d calls %s arrived; %d runs are executed", when, o.asked[args], args, n)
		}
	}
	for what, n := range o.received { // in any order
		if n > 1 {
			o.Errorf("%s: the outcome %s was told %d times", when, what, n)
		}
	}
	return t
}

// totals are what a ledger holds.
type totals struct{ executed, indeterminate, told int }

// ends starts the gateway a last time, and has it make what people agreed to. Agents and approvers go on until each has been
// told something: then stop ends them.
func (o *riot) ends(kills int, stop func()) {
	o.Helper()
	s := serve(o.T, o.dir)
	o.now.Store(s)
	soon(o.T, "a call was answered, and one denied", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.base.Load() > 0 && len(o.denied) > 0 || o.Failed()
	})
	stop()
	soon(o.T, "all is made that people agreed to", func() bool {
		for _, q := range recorded(o.T, o.dir) {
			if q.Ended == "" && q.Status != ledger.Pending {
				return false
			}
		}
		return true
	})
	for _, s := range []*served{s, o.other} {
		if s == nil {
			continue
		}
		s.stop(o.T, exitYes)
	}
	verifies(o.T, o.dir)
	t := o.holds("at the end", true)
	o.Logf("%d kills: %+v; %d denials and %d approvals acknowledged, %d outcomes received", kills, t, len(o.denied), len(o.agreed), len(o.received))
}
