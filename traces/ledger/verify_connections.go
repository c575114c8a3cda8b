package ledger

import (
	"unicode/utf8"

	"pgfsm/internal/visible"
	"pgfsm/policy"
	"pgfsm/states"
)

// liveConnections are the connections that have not ended, without what only their rows say.
type liveConnections map[connectionKey]Connection

type connectionKey struct{ person, server string }

// project applies one event. A new connection takes the place of the earlier one, and a block ends all of a person:
// a ledger that was moved has no rows of them, so that no other event could say so.
func (live liveConnections) project(e *Event, p payload) error {
	switch p := p.(type) {
	case *connectionMade:
		live[connectionKey{p.Person, p.Server}] = Connection{
			Account:  p.Account,
			Client:   p.Client,
			Entry:    e.Index,
			ID:       p.ID,
			Issuer:   p.Issuer,
			Kind:     p.Kind,
			Made:     e.At,
			Person:   p.Person,
			Resource: p.Resource,
			Scopes:   p.Scopes,
			Server:   p.Server,
		}
	case *connectionEnded:
		key := connectionKey{p.Person, p.Server}
		if live[key].ID != p.ID {
			return ruleConnections.Broken("the connection %s ends, which was not made or has ended", visible.Clip(p.ID, MaxAccount))
		}
		delete(live, key)
	case *identityBlocked:
		name := policy.SubjectName(p.Issuer, p.Subject)
		for key := range live { // in any order: all of the person end
			if key.person == name {
				delete(live, key)
			}
		}
	}
	return nil
}

// readLiveConnections computes the live connections from their events.
func readLiveConnections(r Reader) (liveConnections, error) {
	events, err := eventsOfTypes(r, ConnectionMade, ConnectionEnded, IdentityBlocked)
	live := make(liveConnections)
	for i := range events {
		if err == nil {
			err = asFault("entries", entryKey(events[i].event.Index), live.project(&events[i].event, events[i].payload))
		}
	}
	return live, err
}

// checkValues validates the form of a connection that an actor makes.
func (p *connectionMade) checkValues(actor string) error {
	fits := func(text string, most int) bool { return text != "" && len(text) <= most && utf8.ValidString(text) }
	switch {
	case p.Person == "" || p.Person != actor || policy.HasSubject(actor) != (p.Token == ""):
		return ruleConnections.Broken("a connection of another person than the one who makes it, or without a token of that person")
	case p.Kind == ConnectionOAuth && (!fits(p.Issuer, maxResource) || !fits(p.Client, maxResource)):
		return ruleConnections.Broken("a connection to an authorization server without an issuer or a client, or with one that is too long")
	case p.Kind != ConnectionSecret && p.Kind != ConnectionOAuth || !fits(p.ID, MaxAccount) || !fits(p.Server, MaxServerName) ||
		!fits(p.Resource, maxResource) || len(p.Account) > MaxAccount:
		return ruleConnections.Broken("a connection of an unknown kind, without an id, a server or a resource, or with one that is too long")
	}
	return nil
}

// addConnection checks an event about a connection.
func (v *verifier) addConnection(e *decodedEvent) error {
	if p, ok := e.payload.(*connectionMade); ok {
		if err := p.checkValues(e.event.By); err != nil {
			return err
		}
		if err := v.checkNotBlocked(e.event.Index, p.Person); err != nil {
			return ruleConnections.Wrap(err)
		}
		if p.Token != "" {
			if err := v.checkToken(p.Token, p.Person, ActConnect, &e.event); err != nil {
				return ruleConnections.Wrap(err)
			}
		}
	}
	return v.projectConnection(e)
}

// projectConnection applies an event to the connections, if every entry is read.
func (v *verifier) projectConnection(e *decodedEvent) error {
	if v.stated == nil {
		return nil
	}
	if v.connections == nil {
		v.connections = make(liveConnections)
	}
	return v.connections.project(&e.event, e.payload)
}

// checkConnections compares the rows of connections with their events.
func (v *verifier) checkConnections() error {
	live := v.connections
	if v.stated == nil {
		var err error
		if live, err = readLiveConnections(v.r); err != nil {
			return err
		}
	}
	return compareConnections(v.r, live, func(c *Connection, what string) error {
		return newFault("connections", c.Person+" "+c.Server, what)
	})
}

// compareConnections calls found for each row of a connection that its events do not account for. A missing row harms
// nobody, and neither does one that says that the credentials are lost: the person connects again.
func compareConnections(r Reader, live liveConnections, found func(c *Connection, what string) error) error {
	for have, err := range r.Connections() {
		if err != nil {
			return unreadFault("connections", "a row", err)
		}
		if !have.Usable() {
			continue
		}
		want, known := live[connectionKey{have.Person, have.Server}]
		want.State, want.Used, want.Key, want.Generation, want.Sealed = have.State, have.Used, have.Key, have.Generation,
			have.Sealed
		want.Asked, want.Holder, want.Until = have.Asked, have.Holder, have.Until
		what := rowOfNothing
		if known {
			if what = differingColumn(want, have); what != "" {
				what = "its " + what + " is not what its events say"
			}
		}
		if what == "" {
			continue
		}
		if err := found(&have, what); err != nil {
			return err
		}
	}
	return nil
}

// checkRequestAccount checks that the request of a call with an account is one of a person's agent.
func (v *verifier) checkRequestAccount(p *requestCreated) error {
	q := &p.Request
	if q.Account == nil {
		return nil
	}
	if q.Kind != states.KindAgent || q.Principal() == "" || p.Token != "" && v.tokens[p.Token].Role != RolePerson {
		return ruleConnections.Broken("a request with an account that is not of a person's agent")
	}
	return nil
}

// checkSentAccount checks that the account of a call was the person's own connection to the server when the call
// was sent.
func (s *runVerifier) checkSentAccount() error {
	q := &s.first.Request
	if q.Account == nil || s.verifier.stated == nil {
		return nil
	}
	if c := s.verifier.connections[connectionKey{q.Principal(), s.row.Server}]; c.ID != q.Account.Connection {
		return ruleConnections.Broken("a call was sent with an account that the person had not connected then")
	}
	return nil
}
