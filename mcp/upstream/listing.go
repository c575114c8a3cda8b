package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The states of a [Listing].
const (
	StatusUp   = "up"
	StatusDown = "down"
)

// A Listing is what one server had to offer when it was asked.
type Listing struct {
	Server string // the configured name
	Status string // StatusUp or StatusDown; the zero value is neither and means down
	Code   string // why it is down; empty if it is up
	Reason string // the same for a person: printable, without secrets, bounded

	Protocol      string // the negotiated MCP revision, for example "2025-11-25"
	ServerName    string // what the server calls itself: a claim
	ServerVersion string

	// Pages are the results of tools/list, one a page, byte for byte as received. Each is a JSON object with an array
	// "tools"; inside, nothing has been judged, not even that names are unique. Nil if the server is down.
	Pages [][]byte

	Number uint64 // names the listing in [Call] and [Upstreams.Changed]; 0 if the server is down
}

// List asks every server for its tools, all at once, each within its own ConnectTimeout, and returns one Listing a server in
// the order of New. It connects where there is no working session and always asks anew. A server that fails takes
// only its own tools away. One whose tools change while they are listed is asked again, and if that does not end, is up
// and has changed, see Changed.
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
	down := func(f *fault) Listing {
		return Listing{Server: up.server.Name, Status: StatusDown, Code: f.code, Reason: f.reason}
	}
	select {
	case up.gate <- struct{}{}:
		defer func() { <-up.gate }()
	case <-ctx.Done():
	}
	if u.ctx.Err() != nil { // seen with the gate held: Close is over or waits for the gate
		return down(&fault{code: CodeClosed, reason: errClosed.Error()})
	}
	if ctx.Err() != nil {
		return down(&fault{code: overCode(ctx), reason: "there was no time to ask it"})
	}
	s, old := up.current(), true
	for {
		if s == nil {
			up.drop()
			var f *fault
			if s, f = u.connect(ctx, up.server); f != nil {
				return down(f)
			}
			old = false
			up.set(s)
		}
		pages, f := s.settled(ctx)
		if f == nil {
			hello := s.client.InitializeResult()
			l := Listing{
				Server: up.server.Name, Status: StatusUp, Protocol: hello.ProtocolVersion, Pages: pages, Number: s.begun.Load(),
			}
			if hello.ServerInfo != nil {
				l.ServerName, l.ServerVersion = hello.ServerInfo.Name, hello.ServerInfo.Version
			}
			return l
		}
		up.drop()
		// A session from an earlier listing may be stale: a restarted server has forgotten it.
		if !old || ctx.Err() != nil {
			return down(f)
		}
		s = nil
	}
}

// settled lists the tools, and lists them again while the server says during the listing that they change, at most
// maxListings times within the one deadline.
//
// Servers say so without need: many register tools, each with a notification, right after the handshake, while our
// first request is on its way; taken at their word they could never be called. Nothing has been judged by the listing
// yet, so asking again is as safe as asking later, in a new session and in an old one. A server that changes even then
// keeps its mark: it is listed and not called.
func (s *session) settled(ctx context.Context) ([][]byte, *fault) {
	s.listen(ctx)
	for n := 1; ; n++ {
		pages, f := s.list(ctx)
		if f != nil || s.good(s.begun.Load()) || n == maxListings {
			return pages, f
		}
	}
}

// list asks for all pages. A failure ends the session.
func (s *session) list(ctx context.Context) ([][]byte, *fault) {
	turn := pager{life: &s.life, limits: s.limits, fail: s.fail}
	return turn.all(func(cursor string) ([]byte, *fault) { return s.page(ctx, cursor) })
}

// A pager turns the pages of tools/list.
type pager struct {
	*life
	limits Limits
	fail   func(code, format string, args ...any) *fault // makes a failure, and ends what it has to
}

// all asks for one page after the other, the first with the cursor "".
func (p pager) all(ask func(cursor string) ([]byte, *fault)) ([][]byte, *fault) {
	var pages [][]byte
	var cursors []string
	size, tools := 0, 0
	for cursor := ""; ; {
		page, f := ask(cursor)
		if f != nil {
			return nil, f
		}
		next, n, err := readPage(page)
		if err != nil {
			err = p.retold(page, err, func(doc []byte) error { _, _, err := readPage(doc); return err })
			return nil, p.fail(CodeProtocol, "its tools/list result is not usable: %v", err)
		}
		pages, size, tools = append(pages, page), size+len(page), tools+n
		switch {
		case size > p.limits.CatalogBytes:
			return nil, p.fail(CodeCatalog, "its tools take more than %d bytes", p.limits.CatalogBytes)
		case tools > p.limits.Tools:
			return nil, p.fail(CodeCatalog, "it lists more than %d tools", p.limits.Tools)
		case next == "":
			return pages, nil
		case len(pages) >= p.limits.Pages:
			return nil, p.fail(CodeCatalog, "it lists its tools on more than %d pages", p.limits.Pages)
		case slices.Contains(cursors, next):
			return nil, p.fail(CodeProtocol, "its list of tools runs in a circle")
		}
		cursors = append(cursors, next)
		cursor = next
	}
}

// page makes one tools/list request and returns the raw result.
func (s *session) page(ctx context.Context, cursor string) ([]byte, *fault) {
	x := &exchange{method: methodList, first: cursor == ""}
	_, err := s.client.ListTools(withExchange(ctx, x), &sdk.ListToolsParams{Cursor: cursor})
	s.guard.forget(x)
	result, failed, status := x.outcome()
	switch f := s.fault(); {
	case f != nil && f.code == codeFrame:
		return nil, &fault{code: CodeCatalog, reason: f.reason}
	case f != nil && !f.lost:
		return nil, f
	case result != nil:
		return result, nil
	case failed != nil:
		return nil, s.fail(CodeProtocol, "it answered tools/list with error %d %q", failed.Code, failed.Message)
	case status != 0:
		return nil, s.fail(CodeUnreachable, "%s", httpReason(status))
	case ctx.Err() != nil:
		return nil, s.fail(overCode(ctx), "it did not list its tools within the time allowed")
	case f != nil:
		return nil, f
	case err == nil:
		err = errors.New("no answer came")
	}
	code, reason := s.broken(err)
	return nil, s.fail(code, "%s", reason)
}

// readPage reads from a tools/list result what listing needs: the cursor of the next page, empty if this was the last,
// and the number of tools. Their content is for others to judge.
func readPage(page []byte) (next string, tools int, err error) {
	found := false
	err = members(page, func(name string, value jsontext.Value) (err error) {
		switch {
		case name == "tools":
			found = true
			tools, err = elements(value)
		case name == "nextCursor" && value.Kind() != 'n':
			next, err = text(value)
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
