package gateway

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
	"pgfsm/policy"
)

// ConnectTool is the tool that a server has, in place of its own, for a client whose person has no account at it. A tool
// of the server with this name is left out.
const ConnectTool = "connect"

// accountOf returns the account with which the client of a request uses a server.
func (g *Gateway) accountOf(ctx context.Context, q *request, server *server) (*upstream.Account, error) {
	if !server.Person {
		return nil, nil
	}
	return q.config().Account(ctx, q.From, server.Name)
}

// recheckAccount ends a new link if its account ended before the link was in the table, where [Gateway.AccountsChanged]
// looks.
func (g *Gateway) recheckAccount(ctx context.Context, q *request, l *link) error {
	if l.account == nil || l.checked.Swap(true) {
		return nil
	}
	now, err := g.accountOf(ctx, q, l.server)
	if err == nil && (now == nil || now.ID != l.account.ID) {
		err = errLinksClosed
	}
	if err != nil {
		l.end()
	}
	return err
}

// connectTool returns the entry of [ConnectTool] in a list of tools.
func connectTool(q *request, server *server) jsontext.Value {
	name := ConnectTool
	if q.endpoint.server == nil {
		name = policy.JoinedName(server.Name, name)
	}
	var schema, tool wire.Object
	schema.Add("type", []byte(`"object"`))
	schema.Add("properties", []byte(`{}`))
	schema.Add("additionalProperties", []byte(`false`))
	tool.Add("name", wire.Quote(name))
	tool.Add("description", wire.Quote("The tools of the server "+server.Name+" need an account of the user at it. This tool returns the address at "+
		"which the user connects one. Show the address to the user; afterwards the server's own tools are listed."))
	tool.Add("inputSchema", schema.Value())
	return tool.Value()
}

// AccountsChanged follows changes of people's accounts. It closes the links with accounts for which live returns false,
// when the calls under way over them have ended, and tells the clients of the people for whom concerns returns true that
// their lists may have changed.
func (g *Gateway) AccountsChanged(live func(id string) bool, concerns func(principal string) bool) {
	t := g.links
	t.mu.Lock()
	for key, l := range t.links { // in any order: each is independent
		if key.account == "" || live(key.account) {
			continue
		}
		if l.end(); l.uses == 0 {
			t.dropLink(l)
		}
	}
	close(t.people)
	t.people = make(chan struct{})
	t.mu.Unlock()

	for _, s := range g.openSessions() {
		if !concerns(s.Client.Principal) {
			continue
		}
		for _, list := range listNotifications {
			s.sendNotification(list.method)
		}
	}
}

// peopleChanged returns a channel that is closed when the accounts of people have changed.
func (t *linkTable) peopleChanged() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.people
}
