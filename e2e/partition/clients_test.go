//go:build linux

package partition_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	callers   = 16
	agents    = 4 // names of the callers: calls are counted by name
	approvers = 6
	// pause is how long a client waits between two requests, at most.
	pause = 40 * time.Millisecond
	// revokeEvery is how often a token is revoked.
	revokeEvery = 3 * time.Second
	// openCalls is how many held calls a caller follows at most.
	openCalls = 6
)

// A person has one token at a time.
type person struct {
	name, role string
	token      atomic.Pointer[token]
	limit      atomic.Int64 // of an agent's counted calls
	revoked    atomic.Pointer[token]
}

type token struct{ id, text string }

// A crowd is all clients of the gateways.
type crowd struct {
	*bed
	*history
	agents    []*person
	approvers []*person
	over      chan struct{} // closed: no new requests
	all       sync.WaitGroup
	next      atomic.Int64 // number of the next call
}

// starts lets the clients make requests until over is closed.
func (c *crowd) starts(seed uint64) {
	for i := range callers {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		c.all.Go(func() { c.calls(r, c.agents[i%agents]) })
	}
	for i, p := range c.approvers {
		r := rand.New(rand.NewPCG(seed, uint64(1000+i)))
		c.all.Go(func() { c.decides(r, p) })
	}
	c.all.Go(func() { c.revokes(rand.New(rand.NewPCG(seed, 2000))) })
}

// waits reports false when all is over.
func (c *crowd) waits(d time.Duration) bool {
	select {
	case <-c.over:
		return false
	case <-time.After(d):
		return true
	}
}

// any is a gateway that listens; nil: none does now.
func (c *crowd) any(r *rand.Rand) *listening {
	return c.gateways[r.IntN(len(c.gateways))].on.Load()
}

// calls is a caller. It asks for new calls, and repeats those that wait or whose outcome it does not know.
func (c *crowd) calls(r *rand.Rand, by *person) {
	var open []*request
	for c.waits(time.Duration(r.Int64N(int64(pause)))) {
		on := c.any(r)
		if on == nil {
			continue
		}
		if n := len(open); n > 0 && r.IntN(4) == 0 {
			i := r.IntN(n)
			if c.asks(on, by.token.Load(), open[i]); open[i].done {
				open[i] = open[n-1]
				open = open[:n-1]
			}
			continue
		}
		q, with := c.fresh(r, by, len(open) < openCalls)
		c.add(q)
		if c.asks(on, with, q); !q.done && q.tool != toolFree && q.tool != toolCounted { // others are not repeated: the client does not know whether they were made
			open = append(open, q)
		}
	}
}

// fresh is a new call. Now and then it comes with a token that was revoked before.
func (c *crowd) fresh(r *rand.Rand, by *person, hold bool) (*request, *token) {
	q := &request{op: fmt.Sprintf("op-%d", c.next.Add(1)), actor: by.name}
	switch n := r.IntN(100); {
	case n < 25 || !hold && n >= 50:
		q.tool = toolFree
	case n < 50:
		q.tool, q.limit = toolCounted, int(by.limit.Load())+r.IntN(2)
	case n < 70:
		q.tool = toolHeld
	case n < 95:
		q.tool = toolTwo
	default:
		q.tool = toolBrief
	}
	with := by.token.Load()
	if old := by.revoked.Load(); old != nil && r.IntN(10) == 0 {
		with = old
	}
	q.token = with.id
	return q, with
}

// asks makes a request once and notes its answer.
func (c *crowd) asks(on *listening, with *token, q *request) {
	if q.asked == 0 {
		q.asked = c.now()
	}
	q.attempts++
	args, err := json.Marshal(arguments{q.op, q.limit})
	if err != nil {
		panic(err)
	}
	status, got := call(context.Background(), on, with.text, "up__"+q.tool, string(args))
	what := fmt.Sprint("call ", status)
	if got.Result != nil {
		what += " " + got.Result.Meta.Decision.Code
	}
	if c.tells(what); status != http.StatusServiceUnavailable && (q.held == 0 || got.Result != nil && got.Result.Meta.Decision.Code != "approval_required") {
		c.operations.Add(1)
	}
	switch {
	case status == http.StatusUnauthorized:
		q.result, q.done = "token_refused", q.held == 0
	case got.Result == nil:
	case got.Result.Meta.Decision.Code == "":
		q.done = true
		if len(got.Result.Content) > 0 {
			q.result = got.Result.Content[0].Text
		}
		if q.tool == toolCounted {
			c.raises(q)
		}
	case got.Result.Meta.Decision.Code == "approval_required":
		if q.held == 0 {
			q.held, q.run = c.now(), got.Result.Meta.Decision.RunID
		}
		q.result = got.Result.Meta.Decision.Code
	default:
		q.result, q.effect = got.Result.Meta.Decision.Code, got.Result.Meta.Decision.Effect
		q.done = true
		if q.result == "policy_denied" && q.tool == toolCounted {
			c.raises(q)
		}
	}
}

// raises lets an actor make more counted calls than there may be by now.
func (c *crowd) raises(q *request) {
	for _, p := range c.agents {
		if p.name == q.actor {
			p.limit.CompareAndSwap(int64(q.limit), int64(q.limit)+1)
		}
	}
}

// pending is a page of held calls.
type pending struct {
	Requests []struct {
		Run     string `json:"run"`
		Binding string `json:"binding"`
	} `json:"requests"`
}

// decides is an approver, who votes about calls that wait, and about some that were decided meanwhile.
func (c *crowd) decides(r *rand.Rand, by *person) {
	var page pending
	for c.waits(time.Duration(r.Int64N(int64(pause)))) {
		on := c.any(r)
		if on == nil {
			continue
		}
		with := by.token.Load()
		if old := by.revoked.Load(); old != nil && r.IntN(8) == 0 {
			with = old
		}
		if len(page.Requests) == 0 || r.IntN(4) == 0 {
			a := send(context.Background(), http.MethodGet, on.admin+"/requests?status=pending&limit=200", http.Header{"Authorization": {"Bearer " + with.text}}, "")
			var fresh pending
			if a.status == http.StatusOK && json.Unmarshal(a.body, &fresh) == nil && len(fresh.Requests) > 0 {
				page = fresh
			}
			continue
		}
		i := r.IntN(min(len(page.Requests), 8)) // the same few for all, so that they contend
		c.casts(r, by, with, page.Requests[i].Run, page.Requests[i].Binding)
		if r.IntN(3) > 0 {
			page.Requests = append(page.Requests[:i:i], page.Requests[i+1:]...)
		}
	}
}

// casts casts a vote. If its outcome is unknown, it is cast again with the same key, at any gateway.
func (c *crowd) casts(r *rand.Rand, by *person, with *token, run, binding string) {
	v := &vote{run: run, by: by.name, token: with.id, approve: r.IntN(4) > 0, asked: c.now(), answered: never}
	verb := "deny"
	if v.approve {
		verb = "approve"
	}
	headers := http.Header{
		"Authorization": {"Bearer " + with.text}, "Content-Type": {"application/json"}, "Idempotency-Key": {fmt.Sprintf("%s-%d", by.name, v.asked)},
	}
	unknown := false // an attempt has had no answer
	for range 4 {
		if on := c.any(r); on != nil {
			a := send(context.Background(), http.MethodPost, on.admin+"/"+verb+"/"+run, headers, fmt.Sprintf(`{"expected_digest":%q,"reason":"as agreed"}`, binding))
			var body struct {
				Code    string `json:"code"`
				Request struct {
					Status string `json:"status"`
				} `json:"request"`
			}
			if json.Unmarshal(a.body, &body) != nil {
				a.status = 0
			}
			if c.tells(fmt.Sprint("vote ", a.status, " ", body.Code, body.Request.Status)); a.status == http.StatusInternalServerError {
				c.t.Logf("a vote: %s\n%s", a.body, c.logs("could not be answered"))
			}
			switch {
			case a.status == http.StatusOK:
				v.answered, v.result = c.now(), body.Request.Status
			case a.status >= 400 && a.status < 500 && !(unknown && a.status == http.StatusUnauthorized): // the token may have been revoked between two attempts
				v.answered, v.result = c.now(), body.Code
			case a.status >= 400 && a.status < 500:
				c.voted(v)
				return
			default:
				unknown = true
			}
			if v.answered != never {
				break
			}
		}
		if !c.waits(200 * time.Millisecond) {
			break
		}
	}
	c.voted(v)
}

// revokes gives somebody another token, and revokes the one that they had.
func (c *crowd) revokes(r *rand.Rand) {
	everybody := append(append([]*person(nil), c.agents...), c.approvers...)
	for c.waits(0) {
		p := everybody[r.IntN(len(everybody))]
		made, err := c.newToken(p.role, p.name)
		if err != nil {
			continue // the database is away
		}
		select {
		case <-c.over:
			return
		case <-c.revokeNow:
		case <-time.After(revokeEvery):
		}
		old := p.token.Swap(made)
		v := revocation{token: old.id, name: p.name, asked: c.now(), answered: never}
		for v.answered == never && c.waits(0) {
			out, err := c.command("token", "revoke", old.id)
			if err == nil || strings.Contains(out, "was revoked at") { // by an attempt whose outcome was unknown
				v.answered = c.now()
				p.revoked.Store(old)
			}
		}
		c.revoked(v)
	}
}

// newToken makes a token. One that was made and is not known does no harm.
func (b *bed) newToken(role, name string) (*token, error) {
	out, err := b.command("token", "create", "--role", role, "--name", name, "--json")
	if err != nil {
		return nil, err
	}
	var made struct {
		Secret string `json:"secret"`
		Token  struct {
			ID string `json:"id"`
		} `json:"token"`
	}
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		return nil, err
	}
	return &token{made.Token.ID, made.Secret}, nil
}

// command runs pgfsm on the ledger. It returns what it prints: without an error, its results only.
func (b *bed) command(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.binary, append(args, "--ledger", b.url)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out) + stderr.String(), err
	}
	return string(out), nil
}
