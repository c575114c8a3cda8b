package gateway

import (
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/wire"
)

// Bounds of subscriptions.
const (
	maxSubscribed        = 1000             // resources of one subscription, or of one session with one server
	maxNotificationBytes = 4 << 10          // of a notification that waits; a longer one keeps only the method and the resource
	retryFirst           = time.Second      // before a subscription that ended is tried again; doubled each time
	retryMax             = 30 * time.Second // the longest such time
)

const (
	methodListen   = "subscriptions/listen"
	noteTools      = "notifications/tools/list_changed"
	notePrompts    = "notifications/prompts/list_changed"
	noteResources  = "notifications/resources/list_changed"
	noteUpdated    = "notifications/resources/updated"
	noteSubscribed = "notifications/subscriptions/acknowledged"
)

// A filter selects notifications.
type filter struct {
	tools, prompts, resources bool
	uris                      []string
}

func (f filter) empty() bool { return !f.tools && !f.prompts && !f.resources && len(f.uris) == 0 }

// includes reports whether the filter selects a notification.
func (f filter) includes(m wire.Message) bool {
	switch m.Method {
	case noteTools:
		return f.tools
	case notePrompts:
		return f.prompts
	case noteResources:
		return f.resources
	case noteUpdated:
		uri, err := wire.Text(wire.Member(m.Params, "uri"))
		return err == nil && slices.Contains(f.uris, uri)
	}
	return false
}

// object is the filter as JSON.
func (f filter) object() jsontext.Value {
	var b wire.Object
	b.AddIf(f.tools, "toolsListChanged", "true")
	b.AddIf(f.prompts, "promptsListChanged", "true")
	b.AddIf(f.resources, "resourcesListChanged", "true")
	if len(f.uris) > 0 {
		b.Add("resourceSubscriptions", wire.Texts(f.uris))
	}
	return b.Done()
}

func (f filter) params() jsontext.Value {
	return wire.Single("notifications", f.object())
}

// readFilter reads the filter of a client. The error object says what is wrong with it.
func readFilter(params jsontext.Value) (f filter, failed jsontext.Value) {
	want := wire.Member(params, "notifications")
	if want.Kind() != '{' {
		return f, invalid(wire.InvalidParams, `"notifications" is not an object`)
	}
	wire.Each(want, func(p wire.Piece) {
		yes := p.Value.Kind() == 't'
		switch p.Name {
		case "toolsListChanged":
			f.tools = yes
		case "promptsListChanged":
			f.prompts = yes
		case "resourcesListChanged":
			f.resources = yes
		case "resourceSubscriptions":
			isArray := wire.Items(p.Value, func(item jsontext.Value, _ int) {
				uri, err := wire.Text(item)
				if err != nil {
					failed = invalid(wire.InvalidParams, `"resourceSubscriptions" is not an array of strings`)
				} else if !slices.Contains(f.uris, uri) && len(f.uris) <= maxSubscribed {
					f.uris = append(f.uris, uri)
				}
			})
			if !isArray && p.Value.Kind() != 'n' {
				failed = invalid(wire.InvalidParams, `"resourceSubscriptions" is not an array of strings`)
			}
		}
	})
	if len(f.uris) > maxSubscribed {
		failed = invalid(wire.InvalidParams, "more than "+strconv.Itoa(maxSubscribed)+" resources are subscribed to at once")
	}
	return f, failed
}

// A subscription holds the notifications that wait for a stateless client, one of each kind.
type subscription struct {
	id     jsontext.Value // of the client's request
	filter filter
	mask   func([]byte) []byte

	mu      sync.Mutex
	waiting []string // methods and resources, in order
	params  map[string]jsontext.Value
	wake    chan struct{}
}

// add queues a notification that the filter selects. It replaces one of the same kind, so no more can wait than was subscribed to.
func (n *subscription) add(m wire.Message) {
	if !n.filter.includes(m) {
		return
	}
	key, params := m.Method, wire.StripMeta(m.Params)
	if m.Method == noteUpdated {
		uri, _ := wire.Text(wire.Member(m.Params, "uri")) // a URI can be spelled in many ways
		if key += " " + uri; len(params) > maxNotificationBytes {
			params = uriParams(uri)
		}
	} else if len(params) > maxNotificationBytes {
		params = nil
	}
	n.mu.Lock()
	if !slices.Contains(n.waiting, key) {
		n.waiting = append(n.waiting, key)
	}
	n.params[key] = slices.Clone(params)
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take removes and returns the waiting notifications as messages.
func (n *subscription) take() (messages [][]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, key := range n.waiting {
		method, _, _ := strings.Cut(key, " ")
		params := n.params[key]
		if params != nil {
			params = n.mask(params)
		}
		messages = append(messages, n.format(method, params))
		delete(n.params, key)
	}
	n.waiting = n.waiting[:0]
	return messages
}

// format is a notification with the id of the subscription.
func (n *subscription) format(method string, params jsontext.Value) []byte {
	meta, err := wire.Set(wire.Member(params, "_meta"), metaSubscription, n.id)
	if err == nil {
		params, err = wire.Set(params, "_meta", meta)
	}
	if err != nil { // the params have no readable _meta
		params = wire.Single("_meta", wire.Single(metaSubscription, n.id))
	}
	return wire.Call(nil, nil, method, params)
}

func newSubscription(id jsontext.Value, f filter, mask func([]byte) []byte) *subscription {
	return &subscription{id: id, filter: f, mask: mask, params: make(map[string]jsontext.Value), wake: make(chan struct{}, 1)}
}

// listen answers subscriptions/listen: it sends the agreed filter and then notifications, until the client cancels.
func (g *Gateway) listen(ctx context.Context, q *request) []byte {
	want, failed := readFilter(q.Params)
	if failed != nil {
		return q.fail(failed)
	}
	agreed, each := g.splitFilter(ctx, q, want)
	for _, part := range each {
		if g.recordFilter(ctx, q, part) != nil {
			return q.fail(ask.NotRecorded)
		}
	}
	ctx, stop := context.WithCancel(ctx)
	first := *q
	l := &listener{
		subscription: newSubscription(q.ID, agreed, g.options.Mask), gateway: g, q: &first, ctx: ctx, want: want,
		following: make(map[*server]context.CancelFunc),
	}
	defer l.running.Wait()
	defer stop()
	l.follow(each)
	if agreed.tools {
		l.listed, _ = g.listNow(ctx, l.request())
		defer g.addListener(l)()
	}
	out := session.NewRequestSender(q.Out)
	defer out.End()
	if out.Send(l.format(noteSubscribed, agreed.params())) != nil || agreed.empty() {
		stop()
	}
	for used := q.using.Value; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-used.replaced:
			next := g.active.Acquire()
			q.release()
			q.use(next)
			if used = next.Value; q.endpoint == nil {
				stop()
				break
			}
			l.followOthers(q)
			if agreed.tools {
				l.running.Go(l.compare) // it may not have been among the listeners yet
			}
		case <-l.wake:
			for _, message := range l.take() {
				if out.Send(message) != nil {
					stop()
				}
			}
		}
	}
	return q.rawResult(slices.Concat([]byte(`{"resultType":"complete","_meta":{"`+metaSubscription+`":`), q.ID, []byte(","), g.self, []byte(`}}`)))
}

// A listener is a subscription of a stateless client.
type listener struct {
	*subscription
	gateway   *Gateway
	q         *request // as it was at first
	ctx       context.Context
	want      filter
	following map[*server]context.CancelFunc
	running   sync.WaitGroup

	mu     sync.Mutex
	listed [sha256.Size]byte // of the client's list of tools
}

// request is the client's request as another one can use it.
func (l *listener) request() *request {
	q := *l.q
	return &q
}

// follow begins to follow servers, and returns when each listens or has failed to.
func (l *listener) follow(each []serverFilter) {
	var starting sync.WaitGroup
	for _, part := range each {
		if l.following[part.server] != nil {
			continue
		}
		ctx, stop := context.WithCancel(l.ctx)
		l.following[part.server] = stop
		starting.Add(1)
		q := l.request()
		l.running.Go(func() {
			l.gateway.followServer(ctx, q, part.server, part.filter, l.subscription, sync.OnceFunc(starting.Done))
		})
	}
	starting.Wait()
}

// followOthers follows the servers that the active configuration has, and no others.
func (l *listener) followOthers(q *request) {
	_, each := l.gateway.splitFilter(l.ctx, q, l.want)
	changed := false
	for s, stop := range l.following { // in any order: each is independent
		if !slices.ContainsFunc(each, func(part serverFilter) bool { return part.server == s }) {
			stop()
			delete(l.following, s)
			changed = true
		}
	}
	each = slices.DeleteFunc(each, func(part serverFilter) bool {
		return l.following[part.server] == nil && l.gateway.recordFilter(l.ctx, q, part) != nil
	})
	before := len(l.following)
	l.follow(each)
	if changed || len(l.following) > before { // other servers may have other lists
		l.add(wire.Message{Method: notePrompts})
		l.add(wire.Message{Method: noteResources})
	}
}

// compare notifies the client if its list of tools has changed.
func (l *listener) compare() {
	ctx, cancel := context.WithTimeout(l.ctx, compareTime)
	defer cancel()
	now, ok := l.gateway.listNow(ctx, l.request())
	if !ok {
		return
	}
	l.mu.Lock()
	changed := now != l.listed
	l.listed = now
	l.mu.Unlock()
	if changed {
		l.add(wire.Message{Method: noteTools})
	}
}

// addListener registers a subscription to changes of the list of tools until remove is called.
func (g *Gateway) addListener(l *listener) (remove func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.subscriptions[l] = struct{}{}
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.subscriptions, l)
	}
}

func (g *Gateway) openListeners() []*listener {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Keys(g.subscriptions)) // in any order: each is independent
}

// recordFilter records that a client subscribes to prompts or resources of a server. Tools are the gateway's own.
func (g *Gateway) recordFilter(ctx context.Context, q *request, part serverFilter) error {
	if !part.filter.prompts && !part.filter.resources && len(part.filter.uris) == 0 {
		return nil
	}
	return g.record(ctx, q.From, part.server.Name, ToServer, q.Method, part.filter.params())
}

// A serverFilter is the part of a filter that one server serves.
type serverFilter struct {
	server *server
	filter filter
}

// splitFilter returns what the servers can serve of a filter, together and each.
func (g *Gateway) splitFilter(ctx context.Context, q *request, want filter) (agreed filter, each []serverFilter) {
	servers := q.endpoint.exposing(0)
	offered := make([]offers, len(servers))
	asked, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			var reached bool
			if offered[i], reached = g.offersNow(asked, q, s); !reached {
				known, _ := g.pool.offersOf(s)
				offered[i] = s.offers(known)
			}
		})
	}
	wg.Wait()
	homes := make(map[string]*server)
	for _, uri := range want.uris {
		if s, failed := g.routeResource(asked, q, uri); failed == nil {
			homes[uri] = s
		}
	}
	for i, s := range servers {
		f := filter{
			tools: want.tools && s.Expose.Has(ExposeTools), prompts: want.prompts && offered[i].has(offersPromptChanges),
			resources: want.resources && offered[i].has(offersResourceChanges),
		}
		for _, uri := range want.uris {
			if homes[uri] == s && offered[i].has(offersSubscriptions) {
				f.uris = append(f.uris, uri)
			}
		}
		if f.empty() {
			continue
		}
		each = append(each, serverFilter{s, f})
		agreed.tools, agreed.prompts, agreed.resources = agreed.tools || f.tools, agreed.prompts || f.prompts, agreed.resources || f.resources
		agreed.uris = append(agreed.uris, f.uris...)
	}
	return agreed, each
}

// followServer sends a server's notifications to a subscription until ctx ends, over as many links as that takes. It calls opened when the
// server listens, or fails to.
func (g *Gateway) followServer(ctx context.Context, q *request, server *server, f filter, n *subscription, opened func()) {
	defer opened()
	for wait := retryFirst; ctx.Err() == nil; wait = min(2*wait, retryMax) {
		limit := time.AfterFunc(connectWait, opened)
		l, err := g.linkTo(ctx, q, server)
		if err == nil {
			if l.followFor(ctx, f, n, opened) {
				wait = retryFirst
			}
		}
		limit.Stop()
		opened()
		if err == nil && l.Idle() { // the next request of a client opens another link
			g.pool.shared.await(ctx, l.slot.key)
			continue
		}
		if !sleep(ctx, wait) {
			return
		}
		for _, method := range []string{noteTools, notePrompts, noteResources} { // notifications may have been missed
			n.add(wire.Message{Method: method})
		}
	}
}

// sleep reports whether the time is over, and not ctx.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// followFor sends the notifications of one link to a subscription until either ends, and releases the link. It reports whether the server
// listened. A process that clients share does not stay open for a subscription.
func (l *link) followFor(ctx context.Context, f filter, n *subscription, opened func()) (listened bool) {
	if l.Process() && !l.server.separate() {
		l.release()
	} else {
		defer l.release()
	}
	if l.Modern() {
		_, _ = l.Request(ctx, methodListen, f.params(), func(m wire.Message) { // the reason why it ended does not matter
			if m.Method == noteSubscribed {
				listened = true
				opened()
				return
			}
			l.lists.forget(m.Method)
			n.add(m)
		})
		if listened || ctx.Err() != nil {
			return listened
		}
	}
	defer l.addSubscriber(n)()
	if f.tools {
		_, _ = l.Listing(ctx, l.gateway.active.Load().MaxAge) // it opens the stream for changes
	}
	for _, uri := range f.uris {
		defer l.watchResource(ctx, uri)()
	}
	opened()
	select {
	case <-ctx.Done():
	case <-l.Done():
	}
	return true
}
