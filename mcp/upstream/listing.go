package upstream

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/wire"
)

// The states of a [Listing].
const (
	StatusUp   = "up"
	StatusDown = "down"
)

// A Listing holds the tools of one server at one moment.
type Listing struct {
	Server string // the configured name
	Status string // StatusUp or StatusDown; the zero value means down
	Code   string // why the server is down; empty if it is up
	Reason string // the same for a person: printable, without secrets, bounded

	Protocol      string // the negotiated MCP revision, for example "2025-11-25"
	ServerName    string // the server's own claim
	ServerVersion string

	// Pages are the results of tools/list, byte for byte as received. Each is a JSON object with an
	// array "tools", whose elements are not checked: even names may repeat. Nil if the server is
	// down.
	Pages [][]byte

	Number uint64 // identifies the listing in [Call] and [Client.Changed]; 0 if the server is down
}

// readPage returns the cursor of the next page, nil if this was the last, and the number of tools.
func readPage(page []byte) (next *string, tools int, err error) {
	var list, cursor jsontext.Value
	if err := readMembers(page, map[string]*jsontext.Value{"tools": &list, "nextCursor": &cursor}); err != nil {
		return nil, 0, err
	}
	if list == nil {
		return nil, 0, errors.New(`there is no "tools"`)
	}
	if !wire.Items(list, func(jsontext.Value, int) { tools++ }) {
		return nil, 0, errors.New(`"tools" is not an array`)
	}
	if wire.NonNull(cursor) != nil {
		text, err := wire.Text(cursor)
		if err != nil {
			return nil, 0, fmt.Errorf(`"nextCursor": %w`, err)
		}
		next = &text
	}
	return next, tools, nil
}
