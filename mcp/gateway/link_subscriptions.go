package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/ask"
	"pgfsm/mcp/wire"
)

// linkSubscriptions is what a link does with notifications that belong to no request.
type linkSubscriptions struct {
	lists listCache

	mu          sync.Mutex
	subscribers map[subscriber]struct{}
	watchers    map[string]int // by resource
	level       severity       // of the log of a server with sessions, on a shared link; zero: not set
	watched     bool           // the link is in use because its client is subscribed to resources; guarded by the session

	startSubscription sync.Once     // starts keepSubscription
	filterChanged     chan struct{} // tells keepSubscription to subscribe again
	filterAccepted    chan struct{} // closed and replaced when the server has accepted a filter
}

// A subscriber gets the notifications of a shared link: the [subscription] of a stateless client, or the [clientSession] of another.
type subscriber interface {
	add(wire.Message) // must not block
}

// addSubscriber sends the link's notifications to a subscriber until remove is called.
func (l *link) addSubscriber(n subscriber) (remove func()) {
	l.linkSubscriptions.mu.Lock()
	defer l.linkSubscriptions.mu.Unlock()
	if l.subscribers == nil {
		l.subscribers = make(map[subscriber]struct{})
	}
	l.subscribers[n] = struct{}{}
	return func() {
		l.linkSubscriptions.mu.Lock()
		defer l.linkSubscriptions.mu.Unlock()
		delete(l.subscribers, n)
	}
}

// notifySubscribers gives a notification to all subscribers.
func (l *link) notifySubscribers(m wire.Message) {
	l.linkSubscriptions.mu.Lock()
	defer l.linkSubscriptions.mu.Unlock()
	for n := range l.subscribers { // in any order: each gets it
		n.add(m)
	}
}

// watchResource subscribes to a resource at a server with sessions, once for all subscriptions. The function that it returns ends that.
func (l *link) watchResource(ctx context.Context, uri string) func() {
	l.linkSubscriptions.mu.Lock()
	if l.watchers == nil {
		l.watchers = make(map[string]int)
	}
	l.watchers[uri]++
	first := l.watchers[uri] == 1
	l.linkSubscriptions.mu.Unlock()
	params := uriParams(uri)
	if first {
		_, _ = l.Request(ctx, methodSubscribe, params, nil) // if it fails, there are no notifications
	}
	return func() {
		l.linkSubscriptions.mu.Lock()
		l.watchers[uri]--
		last := l.watchers[uri] == 0
		if last {
			delete(l.watchers, uri)
		}
		l.linkSubscriptions.mu.Unlock()
		if last && !l.ended() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ask.AnswerTimeout)
			defer cancel()
			_, _ = l.Request(ctx, methodUnsubscribe, params, nil) // if it fails, later notifications are dropped
		}
	}
}

func uriParams(uri string) jsontext.Value {
	return wire.Single("uri", wire.Quote(uri))
}

// restoreState gives a session's new link the state of the one before: the log level and the subscribed resources. At a stateless server it
// keeps a subscription instead.
func (l *link) restoreState() {
	s := l.session
	if s == nil {
		return
	}
	s.mu.Lock()
	level := severityOf(s.level)
	uris := slices.Clone(s.watches[l.server.Name])
	s.mu.Unlock()
	if !l.offers().has(offersSubscriptions) { // they may not be exposed any more
		uris = nil
	}
	if l.Modern() {
		l.filterChanged, l.filterAccepted = make(chan struct{}, 1), make(chan struct{})
		if !l.wantedFilter().empty() {
			l.startSubscription.Do(func() { go l.keepSubscription() })
		}
	} else if level > 0 || len(uris) > 0 {
		go l.restoreStateful(level, uris)
	}
}

// restoreStateful sets the log level and the subscriptions at a server with sessions.
func (l *link) restoreStateful(level severity, uris []string) {
	ctx, cancel := context.WithTimeout(l.session.Context, ask.AnswerTimeout)
	defer cancel()
	if level > 0 && l.offers().has(offersLogging) {
		_, _ = l.Request(ctx, methodSetLevel, levelParams(level), nil) // if it fails, the server chooses the level
	}
	for _, uri := range uris {
		_, _ = l.Request(ctx, methodSubscribe, uriParams(uri), nil) // if it fails, there are no notifications
	}
}

// wantedFilter is what the session's client is notified of by this server.
func (l *link) wantedFilter() filter {
	o := l.offers()
	f := filter{prompts: o.has(offersPromptChanges), resources: o.has(offersResourceChanges)}
	if o.has(offersSubscriptions) {
		l.session.mu.Lock()
		f.uris = slices.Clone(l.session.watches[l.server.Name])
		l.session.mu.Unlock()
	}
	return f
}

// keepSubscription keeps a subscription at a stateless server for a client with a session.
func (l *link) keepSubscription() {
	for wait := retryFirst; ; {
		ctx, cancel := context.WithCancel(l.session.Context)
		changed, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			select {
			case <-l.filterChanged:
				close(changed)
				cancel()
			case <-l.Done():
				cancel()
			case <-ctx.Done():
			}
		}()
		if f := l.wantedFilter(); f.empty() {
			l.acceptFilter()
			<-ctx.Done()
		} else {
			_, _ = l.Request(ctx, methodListen, f.params(), func(m wire.Message) { // the reason why it ended does not matter
				if m.Method == noteSubscribed {
					wait = retryFirst
					l.acceptFilter()
					return
				}
				l.relayNotification(m)
			})
		}
		select {
		case <-changed:
		case <-l.Done():
		default:
			sleep(ctx, wait) // or until the filter changes
			wait = min(2*wait, retryMax)
		}
		cancel()
		<-done
		if l.ended() || l.session.Context.Err() != nil {
			return
		}
	}
}

// acceptFilter notes that the server has accepted the filter.
func (l *link) acceptFilter() {
	l.linkSubscriptions.mu.Lock()
	defer l.linkSubscriptions.mu.Unlock()
	close(l.filterAccepted)
	l.filterAccepted = make(chan struct{})
}

// subscribe answers resources/subscribe and resources/unsubscribe of a session at a stateless server.
func (g *Gateway) subscribe(ctx context.Context, q *request, l *link) Answer {
	uri, err := wire.Text(wire.Member(q.Params, "uri"))
	if err != nil || uri == "" {
		return Answer{Error: invalid(wire.InvalidParams, `"uri" is not a string`)}
	}
	if !q.session.setWatch(l.server.Name, uri, q.Method == methodSubscribe) {
		return Answer{Error: invalid(wire.InvalidParams,
			fmt.Sprintf("more than %d resources are subscribed to, or their names are too long together", maxSubscribed))}
	}
	l.keepWatched()
	l.linkSubscriptions.mu.Lock()
	fed := l.filterAccepted
	l.linkSubscriptions.mu.Unlock()
	l.startSubscription.Do(func() { go l.keepSubscription() })
	select {
	case l.filterChanged <- struct{}{}:
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	select {
	case <-fed:
	case <-ctx.Done(): // the server accepts it later
	case <-l.Done():
	}
	return Answer{Result: jsontext.Value(`{}`)}
}

// keepWatched keeps a process open while its client is subscribed to resources. The caller uses the link.
func (l *link) keepWatched() {
	s := l.session
	s.mu.Lock()
	watched := l.Process() && len(s.watches[l.server.Name]) > 0
	changed := watched != l.watched
	l.watched = watched
	s.mu.Unlock()
	switch {
	case changed && watched:
		l.slot.table.keep(l.slot)
	case changed:
		l.slot.table.unkeep(l.slot)
	}
}

// maxWatchedBytes bounds the URIs that one session subscribes to. One URI may be as long as a message.
const maxWatchedBytes = 256 << 10

// setWatch notes that the client subscribes to a resource, or not any more. It reports false if there are too many.
func (s *clientSession) setWatch(server, uri string, on bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := slices.DeleteFunc(slices.Clone(s.watches[server]), func(u string) bool { return u == uri })
	if on {
		size := len(uri)
		for name, uris := range s.watches { // in any order: they are counted
			if name == server {
				uris = now
			}
			for _, u := range uris {
				size += len(u)
			}
		}
		if len(now) >= maxSubscribed || size > maxWatchedBytes {
			return false
		}
		now = append(now, uri)
	}
	s.watches[server] = now
	return true
}
