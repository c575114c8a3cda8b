package upstream

import (
	"context"

	"pgfsm/deadline"
)

// pauses reports whether the time of a request stands still while the server waits for people: where servers of the stateless revisions
// could ask in the result. A list that waited would have everything else wait that is put together with it, page by page. In the
// stateless revisions no request waits: what a server asks in another way gains it nothing.
func (l *Link) pauses(method string) bool {
	return !l.modern && (method == methodCall || method == "prompts/get" || method == "resources/read")
}

// start gives a request its time, and returns the context that ends with it and the clock for its query.
func (l *Link) start(ctx context.Context, method string) (context.Context, *deadline.Clock) {
	ctx, c := deadline.New(ctx, l.up.server.limits())
	if l.pauses(method) {
		l.requests.watch(c)
	}
	return ctx, c
}

// stop must be called when the request is over.
func (l *Link) stop(c *deadline.Clock) {
	l.requests.unwatch(c)
	c.Stop()
}
