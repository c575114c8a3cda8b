package api_test

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgfsm/internal/test/check"
	"pgfsm/traces/ledger"
	"pgfsm/traces/ledger/ledgertest"
)

// A stream is an open event stream.
type stream struct {
	t  *testing.T
	in *bufio.Scanner
}

// streams opens a stream of a session over a real connection.
func (b *browser) streams(t *testing.T, query string, change ...func(*http.Request)) *stream {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute) // for a machine that is busy
	t.Cleanup(stop)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.host+b.base+"events?"+query, nil)
	check.NoError(t, err)
	r.Header.Set("Cookie", b.cookie)
	for _, f := range change {
		f(r)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	check.NoError(t, err)
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("the stream: %s %v", resp.Status, resp.Header)
	}
	return &stream{t, bufio.NewScanner(resp.Body)}
}

// next returns the id of the next message; empty at the end of the stream.
func (s *stream) next() string {
	s.t.Helper()
	for s.in.Scan() {
		if id, ok := strings.CutPrefix(s.in.Text(), "id: "); ok {
			return id
		}
	}
	if err := s.in.Err(); err != nil && !errors.Is(err, context.Canceled) {
		s.t.Fatal(err)
	}
	return ""
}

// TestEventStream: the stream of a page tells what changes, also what changed before it was opened, and nothing else.
func TestEventStream(t *testing.T) {
	d, host := servesConsole(t)
	b := d.signedIn(host, alice, ledger.RoleApprover)
	by := d.Approver(bob)
	q, other := d.Hold(2), d.Hold(2) // entries 4 and 5
	held, run := b.streams(t, "of=held&after=6"), b.streams(t, "of="+q.RunID+"&after=6")
	late := b.streams(t, "of=held&after=4")
	if id := late.next(); id != "6" {
		t.Errorf("what a page missed comes with %q, want 6", id)
	}
	resumed := b.streams(t, "of=held&after=6", header("Last-Event-Id", "4"))
	if id := resumed.next(); id != "6" {
		t.Errorf("after a lost connection comes %q, want 6", id)
	}
	d.Cast(ledgertest.Ballot(other, by))
	if id := held.next(); id != "7" {
		t.Errorf("the inbox gets %q, want 7", id)
	}
	d.Cast(ledgertest.Ballot(q, by))
	if id := run.next(); id != "8" { // and not of the other run
		t.Errorf("the page of the run gets %q, want 8", id)
	}
	d.Inspect(func(r ledger.Reader) error {
		token := b.tokenOf(r, alice)
		if _, err := d.RevokeToken(t.Context(), ledger.LocalUser("local:root"), token); err != nil {
			t.Fatal(err)
		}
		return nil
	})
	d.Hold(1)
	for id := held.next(); id != ""; id = held.next() {
		if id != "8" { // of the vote
			t.Errorf("a page gets %q after its session's end", id)
		}
	}
	if d.notes.String() != "" {
		t.Errorf("the log has %s", &d.notes)
	}
}

// tokenOf returns the id of a token by its name.
func (d *fixture) tokenOf(r ledger.Reader, name string) string {
	d.TB.Helper()
	for token, err := range r.Tokens() {
		check.NoError(d.TB, err)
		if token.Name == name {
			return token.ID
		}
	}
	d.TB.Fatalf("no token has the name %s", name)
	return ""
}
