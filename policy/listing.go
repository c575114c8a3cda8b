package policy

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
)

// Server statuses of a [Listing].
const (
	ServerUp   = "up"
	ServerDown = "down"
)

// A Listing is one server's answer to tools/list: the exact bytes of each result page, or why there are none.
type Listing struct {
	Code     Code             `json:"code"`
	Name     string           `json:"name"`     // the server's name for itself
	Pages    []canonical.Text `json:"pages"`    // raw results, in order
	Protocol string           `json:"protocol"` // the negotiated MCP revision
	Reason   string           `json:"reason"`
	Server   string           `json:"server"` // the operator's name for it
	Status   string           `json:"status"`
	Version  string           `json:"version"`
}

// A Sent tool is one tool object of a listing, with the server's bytes.
type Sent struct {
	Name string
	Raw  jsontext.Value
}

// Sent returns the tool objects of a listing, in order, also several of one name. It fails if the listing is not strict
// JSON.
func (l *Listing) Sent() ([]Sent, error) {
	var all []Sent
	for i, page := range l.Pages {
		tools, err := readPage(i, page)
		if err != nil {
			return nil, err
		}
		for _, raw := range tools {
			var named struct {
				Name string `json:"name"`
			}
			if err := json.Unmarshal(raw, &named); err != nil {
				return nil, errors.New("a tool of the listing has no name")
			}
			all = append(all, Sent{named.Name, raw})
		}
	}
	return all, nil
}

// Pick returns the listing with only the tools of one name; sent are its tools.
func (l *Listing) Pick(sent []Sent, tool string) Listing {
	picked := *l
	page := []byte(`{"tools":[`)
	for _, t := range sent {
		if t.Name != tool {
			continue
		}
		if page[len(page)-1] == '}' {
			page = append(page, ',')
		}
		page = append(page, t.Raw...)
	}
	picked.Pages = []canonical.Text{append(page, "]}"...)}
	return picked
}

// readPage returns the tool objects of one page, which must be strict JSON.
func readPage(i int, page []byte) ([]jsontext.Value, error) {
	if err := canonical.Check(page, maxCatalogDepth); err != nil {
		return nil, fmt.Errorf("tools/list page %d is %w", i+1, err)
	}
	var result struct {
		Tools []jsontext.Value `json:"tools"`
	}
	if err := json.Unmarshal(page, &result); err != nil {
		return nil, fmt.Errorf("tools/list page %d has no list of tools", i+1)
	}
	return result.Tools, nil
}
