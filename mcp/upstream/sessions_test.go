package upstream

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAnUnusedSessionEnds(t *testing.T) {
	for _, s := range []Server{childServer(t, "honest"), serveScript(t, honest, false).server()} {
		s.IdleTimeout = time.Millisecond
		l := mustLink(t, upstreams(t, Limits{}, s), s.Name, Peer{Protocol: older})
		if !l.Use() {
			t.Fatal("Use() of an open link = false")
		}
		l.Release()
		if l.Idle() || l.Err() != nil {
			t.Fatalf("Idle() = %t, Err() = %v, while the link has a user", l.Idle(), l.Err())
		}
		l.Release()
		<-l.Done()
		if !l.Idle() || l.Use() {
			t.Error("an unused link has not ended as idle, or can be used again")
		}
	}
}

// TestTheLongestUnusedSessionMakesRoom: the limit counts the processes of all servers.
func TestTheLongestUnusedSessionMakesRoom(t *testing.T) {
	noLeak(t)
	a, b := childServer(t, "honest"), childServer(t, "honest")
	a.Name, b.Name = "a", "b"
	u := upstreams(t, Limits{ServerSessions: 2}, a, b)
	first, second := mustLink(t, u, "a", Peer{Protocol: older}), mustLink(t, u, "b", Peer{Protocol: older})
	second.Release()
	first.Release()
	third := mustLink(t, u, "a", Peer{Protocol: older})
	if !second.Idle() || first.Idle() {
		t.Error("the link that was unused for longer is open, or the other one is not")
	}
	if open, most := u.Processes(); open != 2 || most != 2 {
		t.Errorf("Processes() = %d, %d, want 2, 2", open, most)
	}
	if !first.Use() {
		t.Fatal("Use() of an open link = false")
	}
	var e *LinkError
	if _, err := u.Link(t.Context(), "b", Peer{Protocol: older}); !errors.As(err, &e) || e.Code != CodeLinks {
		t.Errorf("Link() while all are in use = %v, want %s", err, CodeLinks)
	}
	third.Close()
	mustLink(t, u, "b", Peer{Protocol: older})
}

func TestOneOwnerLeavesRoom(t *testing.T) {
	noLeak(t)
	s := childServer(t, "honest")
	u := upstreams(t, Limits{ServerSessions: 4}, s)
	open := func(owner string) (*Link, error) {
		return u.Link(t.Context(), s.Name, Peer{Owner: owner, Protocol: older})
	}
	first, err := open("ann")
	if _, err2 := open("ann"); errors.Join(err, err2) != nil {
		t.Fatal(err, err2)
	}
	var e *LinkError
	if _, err := open("ann"); !errors.As(err, &e) || e.Code != CodeLinks || !strings.Contains(e.Reason, "one client") {
		t.Errorf("Link() one past half = %v, want %s", err, CodeLinks)
	}
	if _, err := open("bob"); err != nil {
		t.Errorf("Link() of another owner = %v", err)
	}
	first.Release()
	if _, err := open("ann"); err != nil || !first.Idle() {
		t.Errorf("Link() with an unused one = %v, want it in place of that one", err)
	}
}

func TestClientsOfOneIdentityShareASession(t *testing.T) {
	for _, tt := range []struct {
		sessions string
		want     []bool // ann and ann, ann and bob
	}{{"", []bool{true, false}}, {SessionsIdentity, []bool{true, false}}, {SessionsSession, []bool{true, false}}, {SessionsOne, []bool{true, true}}} {
		t.Run("sessions-"+tt.sessions, func(t *testing.T) {
			s := serveScript(t, honest, false).server()
			s.Sessions = tt.sessions
			u := upstreams(t, Limits{}, s)
			var links []*Link
			for _, owner := range []string{"ann", "ann", "bob"} {
				c := u.Client(owner)
				defer c.Close()
				if all := c.List(t.Context()); all[0].Status != StatusUp {
					t.Fatal(all[0].Reason)
				}
				links = append(links, c.heldLink(s.Name))
			}
			if got := []bool{links[0] == links[1], links[0] == links[2]}; !slices.Equal(got, tt.want) {
				t.Errorf("shared = %v, want %v", got, tt.want)
			}
		})
	}
}

// TestAClientListsWhatItNeeds: a server that does not answer delays only who asks it.
func TestAClientListsWhatItNeeds(t *testing.T) {
	good, slow := serveScript(t, honest, false).server(), serveScript(t, answering("initialize", silence), false).server()
	good.Name, slow.Name = "good", "slow"
	u := upstreams(t, Limits{}, slow, good)
	c := u.Client("ann")
	defer c.Close()
	all := c.List(t.Context(), "good", "nobody")
	if len(all) != 1 || all[0].Server != "good" || all[0].Status != StatusUp {
		t.Errorf("List(good) = %+v", all)
	}
	if len(u.byName["slow"].links.links) != 0 {
		t.Error("List(good) connected to another server")
	}
}
