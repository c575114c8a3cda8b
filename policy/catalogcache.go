package policy

import "pgfsm/internal/canonical"

// Bounds of the compiled catalogs that a bundle caches. The gateway caches one for each tool that is called.
const (
	maxCatalogs     = 1024
	maxCatalogBytes = 64 << 20 // for the servers' listings together
)

// A catalogCache holds compiled catalogs, and removes the oldest first. The zero value is empty.
type catalogCache struct {
	known map[canonical.Digest]*Catalog
	order []canonical.Digest
	sizes []int
	bytes int
}

func (c *catalogCache) put(digest canonical.Digest, made *Catalog, listings []Listing) {
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
