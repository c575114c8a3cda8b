package upstream

import (
	"cmp"
	"time"
)

// Defaults of [Limits] and of the timeouts of a [Server].
const (
	DefaultResultBytes  = 16 << 20 // bytes of one tools/call result
	DefaultCatalogBytes = 4 << 20  // bytes of all tools/list results of one server together
	DefaultPages        = 100      // tools/list pages of one server
	DefaultTools        = 1000     // tools of one server
	DefaultUnasked      = 10_000   // unsolicited messages of a server a minute
	DefaultLinks        = 1024     // links with one server

	DefaultServerSessions = 48 // links with all stdio servers together: each has a child process

	DefaultConnectTimeout = 10 * time.Second
	DefaultTimeout        = time.Minute
	DefaultTimeoutTotal   = 10 * time.Minute
	DefaultIdleTimeout    = 2 * time.Minute
)

// envelopeSlack bounds the part of a message around its payload, in bytes.
const envelopeSlack = 64 << 10

// Limits that nobody needs to set.
const (
	// unaskedWindow is the period of Limits.Unasked. A session may live for months with a few pings
	// a minute.
	unaskedWindow = time.Minute
	// maxJunk bounds, per unaskedWindow, the lines on a child's standard output that do not begin
	// like a message.
	maxJunk = 1000
	// maxOwed bounds the server's requests that wait for our answer, and the answers that the
	// server has not read.
	maxOwed = 1000
	// maxListings bounds the attempts of one List if a server's tools change during the listing.
	maxListings = 3
)

// Limits bound the memory and the time that a server can take. Zero means the default, never
// "unlimited".
type Limits struct {
	ResultBytes  int // bytes of one tools/call result, exactly as received
	CatalogBytes int // bytes of all tools/list results of one server together
	Pages        int // tools/list pages of one server
	Tools        int // tools of one server
	Unasked      int // requests and notifications that a server may send in one minute of a session
	Links        int // links with one server, open at once

	// ServerSessions bounds the links with all stdio servers together, each of which has a child
	// process.
	ServerSessions int
}

// maxFrame returns the size of the largest message that is read: the largest payload and its
// envelope.
func (l Limits) maxFrame() int { return max(l.ResultBytes, l.CatalogBytes) + envelopeSlack }

func (l Limits) withDefaults() Limits {
	return Limits{
		ResultBytes:    cmp.Or(l.ResultBytes, DefaultResultBytes),
		CatalogBytes:   cmp.Or(l.CatalogBytes, DefaultCatalogBytes),
		Pages:          cmp.Or(l.Pages, DefaultPages),
		Tools:          cmp.Or(l.Tools, DefaultTools),
		Unasked:        cmp.Or(l.Unasked, DefaultUnasked),
		Links:          cmp.Or(l.Links, DefaultLinks),
		ServerSessions: cmp.Or(l.ServerSessions, DefaultServerSessions),
	}
}
