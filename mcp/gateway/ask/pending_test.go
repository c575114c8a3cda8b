package ask

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

func newPending(r *Relay, client string) *Pending {
	return r.NewPending(Caller{Request: &session.Request{From: session.Identity{Name: client}}}, "docs", "read", session.NewRequestSender(nil), nil)
}

func TestPendingRequestsAreBounded(t *testing.T) {
	r := &Relay{Table: session.NewTable(session.Limits{})}
	for i := range MaxPending {
		client := fmt.Sprint(i / MaxPendingPerIdentity)
		if !r.addPending(newPending(r, client)) {
			t.Fatalf("number %d was refused", i)
		}
		if i == MaxPendingPerIdentity-1 && r.addPending(newPending(r, client)) {
			t.Error("one past the limit of one client was taken")
		}
	}
	if r.addPending(newPending(r, "another")) {
		t.Error("one past the limit of all clients was taken")
	}
	r.pending.remove(r.All()[0])
	if !r.addPending(newPending(r, "another")) {
		t.Error("the place of a request that is over was not given back")
	}
}

// A cancelled request asks nothing more, so it does not wait for questions again and again.
func TestCancelledRequestAsksNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &Pending{ctx: ctx, questions: make([]question, 1)}
	if !p.hasQuestions() {
		t.Error("hasQuestions() = false before it is cancelled")
	}
	if cancel(); p.hasQuestions() {
		t.Error("hasQuestions() = true after it was cancelled")
	}
}

// A server may cancel as many ids as it likes that no question can have.
func TestInvalidIDsAreNotKept(t *testing.T) {
	var p Pending
	for _, id := range []string{`"` + strings.Repeat("x", wire.MaxID) + `"`, `null`, `{}`, `[1]`, `true`, ``} {
		p.CancelQuestion(jsontext.Value(id))
	}
	if len(p.cancelled) != 0 {
		t.Errorf("%q are kept", p.cancelled)
	}
	for i := range MaxCancelled + 1 {
		p.CancelQuestion(jsontext.Value(fmt.Sprint(i)))
	}
	if len(p.cancelled) != MaxCancelled || p.cancelled[0] != "1" {
		t.Errorf("%d are kept, the first is %s", len(p.cancelled), p.cancelled[0])
	}
}
