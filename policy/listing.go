package policy

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
)

// Server statuses of a [Listing].
const (
	ServerUp   = "up"
	ServerDown = "down"
)

// A Listing is one server's answer to tools/list: the exact bytes of each result page, or why there
// are none.
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

// Sent returns the entries of a listing that have a name, in order, also several of one name, and
// those that are malformed otherwise. It fails if a page has no list of tools.
func (l *Listing) Sent() ([]Sent, error) {
	var found []Sent
	for i, page := range l.Pages {
		tools, err := readPage(i, page)
		if err != nil {
			return nil, err
		}
		for _, raw := range tools {
			if name := entryName(raw); name != "" {
				found = append(found, Sent{name, raw})
			}
		}
	}
	return found, nil
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

// entryName is the name of an entry of a listing; empty if it has none, or is not strict JSON.
func entryName(raw jsontext.Value) string {
	var named struct {
		Name string `json:"name"`
	}
	if canonical.Check(raw, maxToolDepth) != nil || json.Unmarshal(raw, &named) != nil {
		return ""
	}
	return named.Name
}

// readPage returns the entries of one page. An entry may be anything that is JSON, also with
// duplicate names and broken UTF-8: readTool judges it.
func readPage(i int, page []byte) ([]jsontext.Value, error) {
	var result struct {
		Tools entries `json:"tools"`
	}
	if err := json.Unmarshal(page, &result, jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, fmt.Errorf("tools/list page %d is not a JSON object with one list of tools", i+1)
	}
	return result.Tools, nil
}

// entries are the values of an array, byte for byte.
type entries []jsontext.Value

func (e *entries) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if *e != nil || dec.PeekKind() != '[' {
		return errors.New("the page has two lists of tools, or none")
	}
	*e = entries{}
	return json.UnmarshalDecode(dec, (*[]jsontext.Value)(e))
}
