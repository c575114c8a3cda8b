package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// The states of a [Listing].
const (
	StatusUp   = "up"
	StatusDown = "down"
)

// A Listing has the tools of one server at one moment.
type Listing struct {
	Server string // the configured name
	Status string // StatusUp or StatusDown; the zero value means down
	Code   string // why it is down; empty if it is up
	Reason string // the same for a person: printable, without secrets, bounded

	Protocol      string // the negotiated MCP revision, for example "2025-11-25"
	ServerName    string // what the server calls itself: a claim
	ServerVersion string

	// Pages are the results of tools/list, byte for byte as received. Each is a JSON object with an array "tools", whose elements are not
	// checked: even names may repeat. Nil if the server is down.
	Pages [][]byte

	Number uint64 // names the listing in [Call] and [Upstreams.Changed]; 0 if the server is down
}

// List asks all servers for their tools concurrently, each within its ConnectTimeout, and returns their listings in the order of New. It connects
// where there is no working link and never uses an old listing. A failing server removes only its own tools. A server whose tools change
// during the listing is asked again. If that does not end, the server is up and Changed reports the change.
func (u *Upstreams) List(ctx context.Context) []Listing {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(u.ctx, func() { cancel(errClosed) })()
	out := make([]Listing, len(u.all))
	var wg sync.WaitGroup
	for i, up := range u.all {
		wg.Go(func() { out[i] = up.list(ctx, u) })
	}
	wg.Wait()
	return out
}

func (up *upstream) list(ctx context.Context, u *Upstreams) Listing {
	ctx, cancel := context.WithTimeout(ctx, up.server.ConnectTimeout)
	defer cancel()
	down := func(err error) Listing {
		why := &LinkError{Code: CodeUnreachable, Reason: err.Error()}
		errors.As(err, &why)
		return Listing{Server: up.server.Name, Status: StatusDown, Code: why.Code, Reason: why.Reason}
	}
	select {
	case up.gate <- struct{}{}:
		defer func() { <-up.gate }()
	case <-ctx.Done():
	}
	if u.ctx.Err() != nil { // Close is over, or waits for the gate
		return down(&LinkError{CodeClosed, errClosed.Error()})
	}
	if ctx.Err() != nil {
		return down(&LinkError{overCode(ctx), "there was no time to ask it"})
	}
	l, old := up.current(), true
	for {
		if l == nil {
			up.drop()
			var err error
			if l, err = u.link(ctx, up, Peer{}); err != nil {
				return down(err)
			}
			old = false
			up.set(l)
		}
		kept, err := l.Listing(ctx, 0)
		if err == nil {
			return kept.Listing
		}
		up.drop()
		// The session of an earlier listing may be stale, because the server was restarted.
		if !old || ctx.Err() != nil {
			return down(err)
		}
		l = nil
	}
}

// readPage returns the cursor of the next page, nil if this was the last, and the number of tools.
func readPage(page []byte) (next *string, tools int, err error) {
	found := false
	err = members(page, func(name string, value jsontext.Value) (err error) {
		switch {
		case name == "tools":
			found = true
			tools, err = elements(value)
		case name == "nextCursor" && value.Kind() != 'n':
			var cursor string
			cursor, err = wire.Text(value)
			next = &cursor
		}
		if err != nil {
			err = fmt.Errorf("%q: %w", name, err)
		}
		return err
	})
	if err == nil && !found {
		err = errors.New(`there is no "tools"`)
	}
	return next, tools, err
}
