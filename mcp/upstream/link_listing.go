package upstream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pgfsm/mcp/wire"
)

// noteAcknowledged is the first message of a server on subscriptions/listen.
const noteAcknowledged = "notifications/subscriptions/acknowledged"

// getStream is the first revision in which a client may GET a stream.
const getStream = "2025-03-26"

// Listing returns the server's tools. It returns the last listing if that is younger than maxAge
// and the server has announced no change since, else a new one, within the server's ConnectTimeout.
// Concurrent callers get the same listing. If the tools change during the listing, it starts again,
// at most three times. A failure ends the link only if the server refuses a request of its session
// with an HTTP status. The error is a [*LinkError].
func (l *Link) Listing(ctx context.Context, maxAge time.Duration) (*CachedListing, error) {
	if k := l.usableListing(maxAge, noMoment); k != nil {
		return k, nil
	}

	requested := l.u.moments.Load()
	ctx, cancel := l.up.server.connectContext(ctx)
	defer cancel()

	// One caller lists at a time. The others wait, and then take its listing.
	select {
	case l.listing <- struct{}{}:
		defer func() { <-l.listing }()
	case <-ctx.Done():
	case <-l.ctx.Done():
	}

	if f := l.fault(); f != nil {
		return nil, f.linkError()
	}
	if ctx.Err() != nil { // also if the select chose another case
		return nil, &LinkError{Code: contextCode(ctx), Reason: "there was no time to ask it"}
	}
	if k := l.usableListing(maxAge, requested); k != nil {
		return k, nil
	}

	l.openStream()
	for n := 1; ; n++ {
		begun := l.u.moments.Add(1)
		pages, f := l.listPages(ctx)
		if f != nil {
			return nil, f.linkError()
		}
		if !l.listingCurrent(begun) && n < maxListings {
			continue
		}
		k := &CachedListing{At: time.Now(), Listing: Listing{
			Server:        l.up.server.Name,
			Status:        StatusUp,
			Protocol:      l.serverInfo.Protocol,
			Pages:         pages,
			Number:        begun,
			ServerName:    l.serverInfo.Server.Name,
			ServerVersion: l.serverInfo.Server.Version,
		}}
		l.cached.Store(k)
		return k, nil
	}
}

// noMoment lies after every moment.
const noMoment = 1<<64 - 1

// usableListing returns the last listing if it is good and either younger than maxAge or begun
// after a moment; else nil.
func (l *Link) usableListing(maxAge time.Duration, after uint64) *CachedListing {
	k := l.cached.Load()
	if k == nil || !l.listingCurrent(k.Number) || k.Number <= l.up.stale.Load() || l.ctx.Err() != nil ||
		k.Number <= after && k.Age(time.Now()) >= maxAge {
		return nil
	}
	return k
}

// Changed reports whether the server has announced changed tools since this listing began. A
// listing of an older link counts as changed.
func (l *Link) Changed(number uint64) bool { return !l.listingCurrent(number) }

// listPages requests all pages. A failure does not end the link.
func (l *Link) listPages(ctx context.Context) (pages [][]byte, f *fault) {
	fail := func(code, format string, args ...any) ([][]byte, *fault) {
		return nil, &fault{code: code, reason: presentableText(fmt.Sprintf(format, args...), l.secrets)}
	}
	limits, size, tools := l.u.limits, 0, 0
	var params []byte
	var cursors []string

	for {
		q, err := l.newQuery(methodList, params, nil)
		if err != nil {
			return fail(CodeProtocol, "%v", err)
		}

		o := l.sendRequest(ctx, q)
		switch {
		case o.fault != nil && o.fault.code == codeFrame:
			return nil, &fault{code: CodeCatalog, reason: o.fault.reason}
		case o.fault != nil && o.fault.code == CodeTimeout && ctx.Err() != nil:
			return nil, l.timeoutFault(ctx, "answer tools/list")
		case o.fault != nil:
			return nil, o.fault
		case o.failed != nil:
			return fail(CodeProtocol, "it answered tools/list with error %d %q", o.failed.Code, o.failed.Message)
		}

		next, n, err := readPage(o.Result)
		if err != nil {
			return fail(CodeProtocol, "its tools/list result is not usable: %v", err)
		}

		// Every limit is checked before the next page is requested.
		pages, size, tools = append(pages, o.Result), size+len(o.Result), tools+n
		switch {
		case size > limits.CatalogBytes:
			return fail(CodeCatalog, "its tools take more than %d bytes", limits.CatalogBytes)
		case tools > limits.Tools:
			return fail(CodeCatalog, "it lists more than %d tools", limits.Tools)
		case next == nil || *next == "" && !l.modern: // from 2026-07-28 on, the empty text is a cursor
			return pages, nil
		case len(pages) >= limits.Pages:
			return fail(CodeCatalog, "it lists its tools on more than %d pages", limits.Pages)
		case slices.Contains(cursors, *next):
			return fail(CodeProtocol, "its list of tools runs in a circle")
		}

		cursors = append(cursors, *next)
		var b wire.Object
		b.Add("cursor", wire.Quote(*next))
		params = b.Value()
	}
}

// readAnnouncements reads from the capabilities which messages the server may send between
// requests.
func (l *Link) readAnnouncements() {
	declares := func(capability, member string) bool {
		return string(wire.Member(wire.Member(l.serverInfo.Capabilities, capability), member)) == "true"
	}
	l.announcesTools = declares("tools", "listChanged")
	l.asksPeer = l.peer.OnMessage != nil && len(l.declaredCapabilities(l.serverInfo.Protocol)) > len("{}")
	l.usesStream = l.announcesTools || l.asksPeer || l.peer.OnMessage != nil && (declares("prompts", "listChanged") ||
		declares("resources", "listChanged") || declares("resources", "subscribe") ||
		wire.Member(l.serverInfo.Capabilities, "logging") != nil)
}

// openStream opens the stream for the server's messages between requests, unless it is open or the
// server has none. Over stdio and SSE up to 2025-11-25 a server can send at any time. Over
// streamable HTTP the client keeps a GET open; from 2026-07-28 on it sends subscriptions/listen,
// over every transport. Nothing waits for the stream, and without it only notifications are lost.
func (l *Link) openStream() {
	overHTTP := l.up.server.Type == TypeHTTP
	switch {
	case l.modern && !l.announcesTools, !l.modern && (!l.usesStream || !overHTTP || l.serverInfo.Protocol < getStream):
	case !l.streamOpen.CompareAndSwap(false, true):
	case l.modern:
		l.tasks.run(func() { l.streamOpen.Store(!l.openSubscription()) })
	default:
		l.tasks.run(l.conn.(*httpConn).runStandaloneStream)
	}
}

// openSubscription opens the stream with subscriptions/listen and reads it to its end.
// mayReopen reports whether to try again later: not if the server has refused.
func (l *Link) openSubscription() (mayReopen bool) {
	var on func(wire.Message)
	if l.peer.OnMessage != nil {
		on = func(m wire.Message) {
			if m.Method != noteAcknowledged {
				l.peer.OnMessage(m)
			}
		}
	}
	q, err := l.newQuery(methodListen, []byte(`{"notifications":{"toolsListChanged":true}}`), on)
	if err != nil {
		return false
	}
	o := l.sendRequest(l.ctx, q)
	return o.status == 0 && o.failed == nil
}
