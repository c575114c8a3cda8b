package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// hears is what a line does with notifications that belong to no request.
type hears struct {
	lists lists

	mu      sync.Mutex
	notices map[*notice]struct{} // subscriptions of stateless clients at a server with sessions
	watched map[string]int       // the resources that they watch there, and how many do
	level   severity             // of the server's log, for stateless clients; zero: it was not set

	feeding sync.Once     // starts feed
	wake    chan struct{} // feed: another filter is wanted
	fed     chan struct{} // feed: closed and made anew when the server has taken a filter
}

// hear lets a subscription hear what the line hears. What it returns ends that.
func (l *line) hear(n *notice) func() {
	l.hears.mu.Lock()
	defer l.hears.mu.Unlock()
	if l.notices == nil {
		l.notices = make(map[*notice]struct{})
	}
	l.notices[n] = struct{}{}
	return func() {
		l.hears.mu.Lock()
		defer l.hears.mu.Unlock()
		delete(l.notices, n)
	}
}

// tell gives a notification to the subscriptions that hear the line.
func (l *line) tell(m wire.Message) {
	l.hears.mu.Lock()
	defer l.hears.mu.Unlock()
	for n := range l.notices { // in any order: each is told
		n.put(m)
	}
}

// watch subscribes to a resource at a server with sessions, once for all who want it. What it returns ends that.
func (l *line) watch(ctx context.Context, uri string) func() {
	l.hears.mu.Lock()
	if l.watched == nil {
		l.watched = make(map[string]int)
	}
	l.watched[uri]++
	first := l.watched[uri] == 1
	l.hears.mu.Unlock()
	params := uriParams(uri)
	if first {
		_, _ = l.Request(ctx, methodSubscribe, params, nil) // without it nothing is heard
	}
	return func() {
		l.hears.mu.Lock()
		l.watched[uri]--
		last := l.watched[uri] == 0
		if last {
			delete(l.watched, uri)
		}
		l.hears.mu.Unlock()
		if last && !l.over() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWait)
			defer cancel()
			_, _ = l.Request(ctx, "resources/unsubscribe", params, nil) // what is heard in spite of it is dropped
		}
	}
}

func uriParams(uri string) jsontext.Value {
	return slices.Concat(jsontext.Value(`{"uri":`), wire.Quote(uri), jsontext.Value(`}`))
}

// follow makes a session's new link what the one before was: with its log level and the resources that the client watches. For
// a server without sessions it keeps a subscription instead.
func (l *line) follow() {
	s := l.owner
	if s == nil {
		return
	}
	s.mu.Lock()
	again := s.joined[l.server.Name]
	s.joined[l.server.Name] = true
	level := severityOf(s.level)
	uris := slices.Clone(s.watches[l.server.Name])
	s.mu.Unlock()
	if l.Modern() {
		l.wake, l.fed = make(chan struct{}, 1), make(chan struct{})
		if !l.wants().empty() {
			l.feeding.Do(func() { go l.feed() })
		}
	} else if level > 0 || len(uris) > 0 {
		go l.restore(level, uris)
	}
	if again { // nobody knows what was missed
		for _, method := range []string{noteTools, notePrompts, noteResources} {
			l.note(wire.Message{Method: method})
		}
	}
}

// restore tells a server with sessions what it was told before.
func (l *line) restore(level severity, uris []string) {
	ctx, cancel := context.WithTimeout(l.owner.Context, answerWait)
	defer cancel()
	if level > 0 && l.server.Expose.Has(ExposeLogging) && readOffers(l.Hello().Capabilities).logging {
		_, _ = l.Request(ctx, methodSetLevel, levelParams(level), nil) // without it the log is the server's choice
	}
	for _, uri := range uris {
		_, _ = l.Request(ctx, methodSubscribe, uriParams(uri), nil) // without it nothing is heard
	}
}

// wants is what the session's client is told of by this server.
func (l *line) wants() filter {
	o := readOffers(l.Hello().Capabilities).exposed(l.server.Expose)
	f := filter{prompts: o.promptsChanged, resources: o.resourcesMoved}
	if o.subscribe {
		l.owner.mu.Lock()
		f.uris = slices.Clone(l.owner.watches[l.server.Name])
		l.owner.mu.Unlock()
	}
	return f
}

// feed keeps a subscription at a server without sessions, for a client that has one.
func (l *line) feed() {
	for wait := listenAgain; ; {
		ctx, cancel := context.WithCancel(l.owner.Context)
		changed, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			select {
			case <-l.wake:
				close(changed)
				cancel()
			case <-l.Done():
				cancel()
			case <-ctx.Done():
			}
		}()
		if f := l.wants(); f.empty() {
			l.taken()
			<-ctx.Done()
		} else {
			_, _ = l.Request(ctx, methodListen, f.params(), func(m wire.Message) { // how it ends does not matter: it has
				if m.Method == noteSubscribed {
					wait = listenAgain
					l.taken()
					return
				}
				l.note(m)
			})
		}
		select {
		case <-changed:
		case <-l.Done():
		default:
			pause(ctx, wait) // or until another filter is wanted
			wait = min(2*wait, listenAtMost)
		}
		cancel()
		<-done
		if l.over() || l.owner.Context.Err() != nil {
			return
		}
	}
}

// taken says that the server has taken the filter.
func (l *line) taken() {
	l.hears.mu.Lock()
	defer l.hears.mu.Unlock()
	close(l.fed)
	l.fed = make(chan struct{})
}

// subscribe serves resources/subscribe and unsubscribe of a client with a session, at a server without one.
func (g *Gateway) subscribe(ctx context.Context, q *request, l *line) Answer {
	uri, err := wire.Text(wire.Member(q.Params, "uri"))
	if err != nil || uri == "" {
		return Answer{Error: invalid(wire.InvalidParams, `"uri" is not a string`)}
	}
	if !q.session.setWatch(l.server.Name, uri, q.Method == methodSubscribe) {
		return Answer{Error: invalid(wire.InvalidParams,
			fmt.Sprintf("more than %d resources are subscribed to, or their names are too long together", maxSubscribed))}
	}
	l.hears.mu.Lock()
	fed := l.fed
	l.hears.mu.Unlock()
	l.feeding.Do(func() { go l.feed() })
	select {
	case l.wake <- struct{}{}:
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	select {
	case <-fed:
	case <-ctx.Done(): // it is asked for; the server takes its time
	case <-l.Done():
	}
	return Answer{Result: jsontext.Value(`{}`)}
}

// maxWatchedBytes bounds the names of the resources that one session subscribes to. A name may be as long as a message.
const maxWatchedBytes = 256 << 10

// setWatch notes that the client subscribes to a resource of a server, or not any more. It reports false if there are too many.
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
