package gateway

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// maxSubscribed bounds the resources of one subscription of a stateless client.
const maxSubscribed = 1000

// Waits before an ended subscription is tried again.
const (
	retryFirst = time.Second // doubled each time
	retryMax   = 30 * time.Second
)

// subscribeResource answers resources/subscribe and resources/unsubscribe of a client with a
// session.
func (g *Gateway) subscribeResource(ctx context.Context, q *request, m *method) []byte {
	server, params, failed := g.routeRequest(ctx, q, m)
	if failed != nil {
		return q.answerError(failed)
	}
	if !server.separatesSessions() {
		return q.answerErrorf(wire.MethodNotFound, "server %s notifies of resources only if each client has its own session with it (servers.%s.sessions: session)",
			server.Name, server.Name)
	}
	uri, err := wire.Text(wire.Member(params, "uri"))
	if err != nil || uri == "" {
		return q.answerErrorf(wire.InvalidParams, `"uri" is not a string`)
	}

	ctx = upstreamContext(ctx, server)
	l, err := g.linkTo(ctx, q, server)
	if err != nil {
		return q.answerError(serverFailure(server.Name, err))
	}
	defer l.release()
	if l.Modern() {
		return q.answerErrorf(wire.MethodNotFound,
			"server %s speaks revision %s, in which clients with sessions cannot subscribe to resources",
			server.Name, session.Stateless)
	}

	subscribing := q.Method == methodSubscribe
	if !q.session.setWatch(server.Name, uri, subscribing) {
		return q.answerErrorf(wire.InvalidParams,
			"too many resources are subscribed to, or their names are too long together")
	}

	reply, failed := g.askServer(ctx, q, server, params)
	if subscribing && (failed != nil || reply.Error != nil) {
		q.session.setWatch(server.Name, uri, false)
	}

	l.keepWatched() // the next link subscribes again
	return g.answerReply(q, server, reply, failed)
}

// keepWatched keeps a process open while its client is subscribed to resources. The caller has the
// link in use.
func (l *link) keepWatched() {
	s := l.session
	s.mu.Lock()
	watched := l.Process() && slices.ContainsFunc(s.watches, func(w watch) bool { return w.server == l.server.Name })
	changed := watched != l.watched
	l.watched = watched
	s.mu.Unlock()
	switch {
	case changed && watched:
		l.keepOpen()
	case changed:
		l.stopKeepingOpen()
	}
}

// serveListen answers subscriptions/listen. It sends the agreed filter and then notifications,
// until the client cancels. When the configuration is replaced, it follows the servers of the next
// one.
func (g *Gateway) serveListen(ctx context.Context, q *request) []byte {
	want, failed := readFilter(q.Params)
	if failed != nil {
		return q.answerError(failed)
	}

	agreed, parts := g.splitFilter(ctx, q, want)
	for _, part := range parts {
		if g.recordFilter(ctx, q, part) != nil {
			return q.answerError(notRecorded)
		}
	}

	n := &subscription{id: q.ID, filter: agreed, wake: make(chan struct{}, 1)}
	stop := g.followServers(ctx, q, n, parts)
	open := q.Out.Send(n.encodeNotification(noteSubscribed, "notifications", agreed.asObject())) == nil &&
		!agreed.isEmpty()

	for open && n.deliverChanges(ctx, q.Out, q.using.Value.replaced) {
		stop()
		q.release()
		q.useGeneration(g.active.Acquire())
		if open = q.endpoint != nil; !open {
			break
		}
		_, parts = g.splitFilter(ctx, q, want)
		parts = slices.DeleteFunc(parts, func(part serverFilter) bool { return g.recordFilter(ctx, q, part) != nil })
		stop = g.followServers(ctx, q, n, parts)
		n.noteMissed()
	}

	stop()
	return q.answerRawResult(slices.Concat([]byte(`{"resultType":"complete","_meta":{"`+metaSubscription+`":`), q.ID, []byte(","), g.self, []byte(`}}`)))
}

// followServers sends the notifications of servers to a subscription until stop is
// called. It returns when each server listens or has failed to listen.
func (g *Gateway) followServers(ctx context.Context, q *request, n *subscription, parts []serverFilter) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var starting, running sync.WaitGroup
	for _, part := range parts {
		starting.Add(1)
		opened := sync.OnceFunc(starting.Done)
		limit := time.AfterFunc(connectWait, opened)
		running.Go(func() {
			defer limit.Stop()
			defer opened()
			g.followServer(ctx, q, n, part, opened)
		})
	}
	starting.Wait()
	return func() {
		cancel()
		running.Wait()
	}
}

// followServer sends a server's notifications to a subscription until ctx ends, over as many links
// as necessary. It calls opened when the server listens, or fails to listen.
func (g *Gateway) followServer(ctx context.Context, q *request, n *subscription, part serverFilter, opened func()) {
	for wait := retryFirst; ctx.Err() == nil; wait = min(2*wait, retryMax) {
		people := g.links.peopleChanged()
		l, err := g.linkTo(ctx, q, part.server)
		if upstream.NeedsAccount(err) {
			opened()
			select {
			case <-ctx.Done():
			case <-people:
				n.noteMissed()
			}
			continue
		}
		if err == nil {
			if l.followFor(ctx, part.filter, n, opened) {
				wait = retryFirst
			}
			if l.Idle() && l.account == nil { // the next request of a client opens another link
				opened()
				g.links.awaitLink(ctx, l.key)
				continue
			}
		}
		opened()
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			n.noteMissed()
		}
	}
}

// followFor sends the notifications of one link to a subscription until either ends, and releases
// the link. It reports whether the server listened. A subscription does not keep a shared process
// open.
func (l *link) followFor(ctx context.Context, f filter, n *subscription, opened func()) (listened bool) {
	if l.Process() && !l.server.separatesSessions() {
		l.release()
	} else {
		defer l.release()
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.live, cancel)()

	if l.Modern() {
		// The reason for its end does not matter.
		_, _ = l.Request(ctx, methodListen, f.asParams(), func(m wire.Message) {
			if m.Method == noteSubscribed {
				listened = true
				opened()
				return
			}
			l.forgetLists(m.Method)
			n.receive(m)
		})
		if listened || ctx.Err() != nil {
			return listened
		}
	}

	l.addSubscriber(n)
	defer l.removeSubscriber(n)
	if f.lists[noteTools] {
		_, _ = l.Listing(ctx, l.gateway.active.Load().MaxAge) // the listing opens the stream for changes
	}

	opened()
	select {
	case <-ctx.Done():
	case <-l.Done():
	}

	return true
}

// recordFilter records that a client subscribes to prompts or resources of a server. Changes of
// tools are announced by the gateway itself.
func (g *Gateway) recordFilter(ctx context.Context, q *request, part serverFilter) error {
	if !part.filter.lists[notePrompts] && !part.filter.lists[noteResources] && len(part.filter.uris) == 0 {
		return nil
	}
	return g.recordPassed(ctx, q.From, part.server.Name, ToServer, q.Method, part.filter.asParams())
}

// A serverFilter is the part of a filter that one server can serve.
type serverFilter struct {
	server *server
	filter filter
}

// splitFilter returns the part of a filter that the servers can serve, together and for each
// server.
func (g *Gateway) splitFilter(ctx context.Context, q *request, want filter) (agreed filter, parts []serverFilter) {
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	servers := q.endpoint.servers
	offered := g.offersOf(ctx, q, servers, true)
	homes := make(map[string]*server)

	for _, uri := range want.uris {
		if s, failed := g.routeResource(ctx, q, ExposeResources, uri); failed == nil {
			homes[uri] = s
		}
	}

	agreed.lists = make(map[string]bool)
	for i, s := range servers {
		f := filter{lists: make(map[string]bool)}
		for _, list := range listNotifications {
			if want.lists[list.method] && s.Expose.Includes(list.needs) &&
				(list.offers == 0 || offered[i].includes(list.offers)) {
				f.lists[list.method], agreed.lists[list.method] = true, true
			}
		}
		for _, uri := range want.uris {
			if homes[uri] == s && offered[i].includes(offersSubscriptions) {
				f.uris = append(f.uris, uri)
			}
		}
		if !f.isEmpty() {
			parts = append(parts, serverFilter{s, f})
			agreed.uris = append(agreed.uris, f.uris...)
		}
	}

	return agreed, parts
}

// A filter selects notifications: changed lists, by method, and resources.
type filter struct {
	lists map[string]bool
	uris  []string
}

func (f filter) isEmpty() bool { return len(f.lists) == 0 && len(f.uris) == 0 }

// includes reports whether the filter selects a change.
func (f filter) includes(c change) bool {
	if c.method == noteUpdated {
		return slices.Contains(f.uris, c.uri)
	}
	return f.lists[c.method]
}

// asParams encodes the filter as params of subscriptions/listen.
func (f filter) asParams() jsontext.Value { return wire.Single("notifications", f.asObject()) }

func (f filter) asObject() jsontext.Value {
	var b wire.Object
	for _, list := range listNotifications {
		b.AddIf(f.lists[list.method], list.member, "true")
	}
	if len(f.uris) > 0 {
		b.Add("resourceSubscriptions", wire.Texts(f.uris))
	}
	return b.Value()
}

// readFilter reads the filter of a client. The error object says why the filter is invalid.
func readFilter(params jsontext.Value) (f filter, failed jsontext.Value) {
	want := wire.Member(params, "notifications")
	if want.Kind() != '{' {
		return f, rpcError(wire.InvalidParams, `"notifications" is not an object`)
	}

	f.lists = make(map[string]bool)
	for _, list := range listNotifications {
		if wire.Member(want, list.member).Kind() == 't' {
			f.lists[list.method] = true
		}
	}

	uris := wire.NonNull(wire.Member(want, "resourceSubscriptions"))
	isArray := wire.Items(uris, func(item jsontext.Value, _ int) {
		uri, err := wire.Text(item)
		if err != nil {
			failed = noURIs
		} else if !slices.Contains(f.uris, uri) && len(f.uris) <= maxSubscribed {
			f.uris = append(f.uris, uri)
		}
	})

	switch {
	case uris != nil && !isArray:
		failed = noURIs
	case len(f.uris) > maxSubscribed:
		failed = rpcError(wire.InvalidParams,
			"more than "+strconv.Itoa(maxSubscribed)+" resources are subscribed to at once")
	}

	return f, failed
}

var noURIs = rpcError(wire.InvalidParams, `"resourceSubscriptions" is not an array of strings`)

// A change is one about which servers notify: of a list, or of a resource with a URI.
type change struct{ method, uri string }

// A subscription queues the changes that a stateless client waits for, each once. So the filter
// bounds the queue.
type subscription struct {
	id     jsontext.Value // id of the client's request
	filter filter

	mu      sync.Mutex
	waiting []change // in order
	wake    chan struct{}
}

// receive queues a notification that the filter selects.
func (n *subscription) receive(m wire.Message) {
	c := change{method: m.Method}
	if m.Method == noteUpdated {
		c.uri, _ = wire.Text(wire.Member(m.Params, "uri")) // no client subscribes to the empty URI
	}
	if !n.filter.includes(c) {
		return
	}
	n.mu.Lock()
	if !slices.Contains(n.waiting, c) {
		n.waiting = append(n.waiting, c)
	}
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// takeWaiting removes and returns the waiting changes as messages.
func (n *subscription) takeWaiting() (messages [][]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.waiting {
		if c.method == noteUpdated {
			messages = append(messages, n.encodeNotification(c.method, "uri", wire.Quote(c.uri)))
		} else {
			messages = append(messages, n.encodeNotification(c.method, "", nil))
		}
	}
	n.waiting = n.waiting[:0]
	return messages
}

// encodeNotification encodes a notification with the id of the subscription, and with another
// member of the params if that has a name.
func (n *subscription) encodeNotification(method, member string, value jsontext.Value) []byte {
	var params wire.Object
	params.Add("_meta", wire.Single(metaSubscription, n.id))
	if member != "" {
		params.Add(member, value)
	}
	return wire.Call(nil, nil, method, params.Value())
}

// noteMissed queues notifications of all lists, because some may have been missed.
func (n *subscription) noteMissed() {
	for _, list := range listNotifications {
		n.receive(wire.Message{Method: list.method})
	}
}

// deliverChanges sends the waiting notifications until the client is gone or the configuration is
// replaced. again reports that it was replaced.
func (n *subscription) deliverChanges(ctx context.Context, out session.Sender, replaced <-chan struct{}) (again bool) {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-replaced:
			return true
		case <-n.wake:
			for _, message := range n.takeWaiting() {
				if out.Send(message) != nil {
					return false
				}
			}
		}
	}
}
