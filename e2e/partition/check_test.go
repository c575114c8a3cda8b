//go:build linux

package partition_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
)

// A checker holds what clients saw, and what arrived at the server, to what the ledger says.
type checker struct {
	*history
	arrivals map[string][]int64
	asked    map[string]*request // by operation
	faults   map[string][]string // by check
	seen     map[string]int      // how many facts each check has looked at: one that saw nothing has checked nothing

	order   []string // the runs, oldest first
	runs    map[string]*ledger.RunRow
	opOf    map[string]string         // by run
	sentOf  map[string]int            // runs that were sent, by operation
	votesOf map[string][]recordedVote // by run
	sentAt  map[string][]int64        // indexes of the entries, by run
	tokens  map[string]*recordedToken // by id
}

type recordedVote struct {
	by, token string
	approve   bool
}

// A recordedToken has the indexes of its entries.
type recordedToken struct {
	name, role       string
	created, revoked int64 // revoked is never if it was not
}

func (c *checker) fault(check, format string, args ...any) {
	c.faults[check] = append(c.faults[check], fmt.Sprintf(format, args...))
}

// reads reads the whole ledger.
func (c *checker) reads(r ledger.Reader) error {
	c.order, c.runs, c.opOf, c.sentOf = nil, make(map[string]*ledger.RunRow), make(map[string]string), make(map[string]int)
	c.votesOf, c.sentAt, c.tokens = make(map[string][]recordedVote), make(map[string][]int64), make(map[string]*recordedToken)
	for q, err := range r.Runs(ledger.Filter{}) {
		if err != nil {
			return err
		}
		if q.Args == "" && q.Sent == "" { // it ended before its call was known
			continue
		}
		var args arguments
		if err := json.Unmarshal([]byte(q.Args), &args); err != nil {
			return fmt.Errorf("the arguments of run %s: %w", q.RunID, err)
		}
		c.order = append(c.order, q.RunID)
		c.runs[q.RunID], c.opOf[q.RunID] = &q, args.Op
		if q.Sent != "" {
			c.sentOf[args.Op]++
		}
	}
	for e, err := range r.Entries(0) {
		if err != nil {
			return err
		}
		events, err := e.ReadEvents()
		if err != nil {
			return err
		}
		for i := range events {
			if err := c.event(&events[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checker) event(e *ledger.Event) error {
	var p struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Role  string `json:"role"`
		Token string `json:"token"`
	}
	switch e.Type {
	case ledger.ProxySent:
		c.sentAt[e.RunID] = append(c.sentAt[e.RunID], e.Index)
		return nil
	case ledger.ApprovalApproved, ledger.ApprovalDenied, ledger.TokenCreated, ledger.TokenRevoked:
	default:
		return nil
	}
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		return err
	}
	switch e.Type {
	case ledger.TokenCreated:
		c.tokens[p.ID] = &recordedToken{p.Name, p.Role, e.Index, never}
	case ledger.TokenRevoked:
		c.tokens[p.ID].revoked = e.Index
	default:
		c.votesOf[e.RunID] = append(c.votesOf[e.RunID], recordedVote{e.By, p.Token, e.Type == ledger.ApprovalApproved})
	}
	return nil
}

// checks runs every check.
func (c *checker) checks(t *testing.T) {
	t.Helper()
	c.seen, c.faults = make(map[string]int), make(map[string][]string)
	c.asked = make(map[string]*request)
	for _, q := range c.requests {
		c.asked[q.op] = q
	}
	for _, run := range c.order {
		if c.asked[c.opOf[run]] == nil {
			t.Fatalf("run %s was asked for by nobody: %s", run, c.runs[run].Args)
		}
	}
	c.calls()
	c.answers()
	c.denials()
	c.revocationsHold()
	c.counts()
	c.votesThere()
	c.nothingLeft()
	c.linear(t)
	for _, check := range slices.Sorted(maps.Keys(c.faults)) {
		found := c.faults[check]
		t.Errorf("%s: %d, of which the first are:\n%s", check, len(found), strings.Join(found[:min(len(found), 5)], "\n"))
	}
}

// calls: each run is sent at most once, and each call that arrived belongs to a run that was sent.
func (c *checker) calls() {
	for run, at := range c.sentAt { // in any order
		c.seen["sent"]++
		if len(at) != 1 || c.runs[run] == nil || c.runs[run].Sent == "" {
			c.fault("one call a permit", "run %s was sent by the entries %v, and is %+v", run, at, c.runs[run])
		}
	}
	for op, at := range c.arrivals { // in any order
		c.seen["arrived"]++
		if len(at) > c.sentOf[op] {
			c.fault("no call without an intent", "%s arrived %d times (%.3f s), and %d runs with it were sent", op, len(at), seconds(at[0]), c.sentOf[op])
		}
	}
	executed := make(map[string]int)
	for _, q := range c.runs { // in any order
		if q.Status == ledger.Executed {
			executed[c.opOf[q.RunID]]++
		}
	}
	for op, n := range executed { // in any order
		c.seen["executed"]++
		if len(c.arrivals[op]) < n {
			c.fault("results", "%s arrived %d times, and %d runs with it are executed", op, len(c.arrivals[op]), n)
		}
	}
}

// answers: what a client was told of its call is so.
func (c *checker) answers() {
	for _, q := range c.requests {
		n := len(c.arrivals[q.op])
		switch {
		case q.done && q.result == q.op:
			c.seen["results"]++
			if n == 0 {
				c.fault("answers", "%s got a result, and never arrived", q.op)
			}
		case q.done && q.effect == "not_sent" && q.attempts == 1:
			c.seen["refused"]++
			if n > 0 || c.sentOf[q.op] > 0 {
				c.fault("answers", "%s was refused (%s) as not sent; it arrived %d times, and %d runs were sent", q.op, q.result, n, c.sentOf[q.op])
			}
		}
	}
}

// denials: a run whose denial was acknowledged is denied, and was not called.
func (c *checker) denials() {
	for _, v := range c.votes {
		if v.result != string(ledger.Denied) || v.approve {
			continue
		}
		c.seen["denied"]++
		if q := c.runs[v.run]; q == nil || q.Status != ledger.Denied || q.Sent != "" || len(c.sentAt[v.run]) > 0 {
			c.fault("no call after a denial", "%s was told at %.3f s that run %s is denied; it is %+v", v.by, seconds(v.answered), v.run, q)
		}
	}
}

// revocationsHold: nothing is done by a token whose revocation was acknowledged, and no call was sent without the tokens that it needs.
func (c *checker) revocationsHold() {
	revoked := make(map[string]int64) // when the revocation was acknowledged, by token
	for _, r := range c.revocations {
		if r.answered == never {
			continue
		}
		revoked[r.token] = r.answered
		c.seen["revoked"]++
		if t := c.tokens[r.token]; t == nil || t.revoked == never {
			c.fault("revocations", "the revocation of %s's token %s was acknowledged at %.3f s and is not there", r.name, r.token, seconds(r.answered))
		}
	}
	runsOf := make(map[string]int)
	for _, op := range c.opOf { // in any order
		runsOf[op]++
	}
	for _, q := range c.requests {
		if at, ok := revoked[q.token]; ok && q.asked > at && q.attempts == 1 {
			c.seen["asked after"]++
			if runsOf[q.op] > 0 {
				c.fault("no call after a revocation",
					"%s was asked for at %.3f s; the revocation of its token was acknowledged at %.3f s", q.op, seconds(q.asked), seconds(at))
			}
		}
	}
	for _, v := range c.votes {
		if at, ok := revoked[v.token]; ok && v.asked > at && v.answered != never {
			c.seen["voted after"]++
			if v.result != "token_refused" {
				c.fault("no vote after a revocation",
					"%s voted at %.3f s (%s); the revocation of their token was acknowledged at %.3f s", v.by, seconds(v.asked), v.result, seconds(at))
			}
		}
	}
	for run, votes := range c.votesOf { // in any order
		for _, sent := range c.sentAt[run] {
			c.sentWith(run, sent, votes)
		}
	}
}

// sentWith checks the tokens of an approved call at the entry that sent it.
func (c *checker) sentWith(run string, sent int64, votes []recordedVote) {
	c.seen["sent with votes"]++
	for _, v := range votes {
		if t := c.tokens[v.token]; t == nil || t.revoked < sent {
			c.fault("no call after a revocation", "run %s was sent by entry %d; %s's token %s is %+v", run, sent, v.by, v.token, t)
		}
	}
	actor := c.runs[run].Actor
	for _, t := range c.tokens { // in any order
		if t.name == actor && t.created < sent && t.revoked > sent {
			return
		}
	}
	c.fault("no call after a revocation", "run %s was sent by entry %d; %s had no token then", run, sent, actor)
}

// counts: of an actor's counted calls whose limit was at most n, at most n were sent.
func (c *checker) counts() {
	limits := make(map[string][]int) // by actor
	for _, q := range c.runs {       // in any order
		if q.Tool == toolCounted && q.Sent != "" {
			limits[q.Actor] = append(limits[q.Actor], c.asked[c.opOf[q.RunID]].limit)
		}
	}
	for actor, all := range limits { // in any order
		slices.Sort(all)
		for i, limit := range all {
			c.seen["counted"]++
			if i+1 > limit && (i+1 == len(all) || all[i+1] > limit) {
				c.fault("counts", "%d of %s's calls were sent with a limit of at most %d", i+1, actor, limit)
			}
		}
	}
}

// votesThere: every vote that was acknowledged is in the ledger.
func (c *checker) votesThere() {
	for _, v := range c.votes {
		switch ledger.Status(v.result) {
		case ledger.Pending, ledger.Approved, ledger.Denied:
		default:
			continue
		}
		c.seen["votes"]++
		if !slices.Contains(c.votesOf[v.run], recordedVote{v.by, v.token, v.approve}) {
			c.fault("votes",
				"%s was told at %.3f s that their vote about run %s counts (%s); the ledger has %+v", v.by, seconds(v.answered), v.run, v.result, c.votesOf[v.run])
		}
	}
}

// nothingLeft: what people agreed to was made or has ended, and no run is left that nobody waits for.
func (c *checker) nothingLeft() {
	for _, run := range c.order {
		if q := c.runs[run]; q.Ended == "" && q.Status != ledger.Pending {
			c.fault("nothing is left", "run %s is left %s (%s)", run, q.Status, q.State)
		}
	}
}

// recorded reads the ledger for the checks.
func (b *bed) recorded(t *testing.T, h *history) *checker {
	t.Helper()
	c := &checker{history: h, arrivals: b.up.arrivals}
	check.NoError(t, b.look(context.Background(), c.reads))
	return c
}
