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

	// Pages are the results of tools/list, byte for byte as received. Each is a JSON object with an array "tools", whose elements are not
	// checked: even names may repeat. Nil if the server is down.
	Pages [][]byte

	Number uint64 // identifies the listing in [Call] and [Client.Changed]; 0 if the server is down
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
