package policy

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/policy/canonical"
)

// A Sent tool is one tool object of a listing, byte for byte as it came.
type Sent struct {
	Name string
	Raw  jsontext.Value
}

// Sent returns the tool objects of a listing, in order, also those of one name. The error is that of a listing that cannot
// be read strictly.
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

// Pick returns the listing with those tools that have one name and no others. Sent are the listing's own.
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

// readPage reads the tool objects of a page of a listing strictly.
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

// Bounds of the catalogs that a bundle remembers as compiled. The gateway has one for each tool that is called.
const (
	maxCatalogs     = 1024
	maxCatalogBytes = 64 << 20 // of what the servers sent
)

// catalogs remembers compiled catalogs, and forgets the oldest first. The zero value is empty.
type catalogs struct {
	known map[canonical.Digest]*Catalog
	order []canonical.Digest
	sizes []int
	bytes int
}

func (c *catalogs) put(digest canonical.Digest, made *Catalog, listings []Listing) {
	size := 0
	for i := range listings {
		for _, page := range listings[i].Pages {
			size += len(page)
		}
	}
	for len(c.order) > 0 && (len(c.order) >= maxCatalogs || c.bytes+size > maxCatalogBytes) {
		delete(c.known, c.order[0])
		c.bytes -= c.sizes[0]
		c.order, c.sizes = c.order[1:], c.sizes[1:]
	}
	if c.known == nil {
		c.known = make(map[canonical.Digest]*Catalog)
	}
	c.known[digest] = made
	c.order, c.sizes, c.bytes = append(c.order, digest), append(c.sizes, size), c.bytes+size
}
