package pins

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/internal/docdiff"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// digestKind is the kind of document under which package policy computes a definition's digest.
const digestKind = "tool definition"

// Definitions holds the approved definitions that are stored beside an allowlist file.
type Definitions struct {
	Path    string // allowlist.pins.json beside allowlist.json
	Warning string // the file's fault; empty if there is none

	was      []byte                              // nil: there is no file
	byDigest map[canonical.Digest]jsontext.Value // in canonical form
}

// ReadDefinitions reads the definitions beside an allowlist file. It omits definitions that do not
// match their digest: nobody approved them.
func ReadDefinitions(allowlist string) (*Definitions, error) {
	allowlist, err := filepath.EvalSymlinks(allowlist)
	if err != nil {
		return nil, err
	}

	d := &Definitions{Path: strings.TrimSuffix(allowlist, ".json") + ".pins.json",
		byDigest: make(map[canonical.Digest]jsontext.Value)}
	if d.was, err = safefile.ReadTrusted(d.Path); errors.Is(err, fs.ErrNotExist) {
		return d, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Path, err)
	}

	var members map[string]jsontext.Value
	if err := canonical.Check(d.was, 0); err != nil {
		d.Warning = fmt.Sprintf("%s is %s", d.Path, err)
	} else if err := json.Unmarshal(d.was, &members); err != nil {
		d.Warning = d.Path + " is not an object of definitions"
	}

	for name, v := range members {
		if definition, err := canonical.JSON(v); err == nil && string(canonical.Sum(digestKind, definition)) == name {
			d.byDigest[canonical.Digest(name)] = definition
		}
	}

	if wrong := len(members) - len(d.byDigest); wrong > 0 {
		d.Warning = fmt.Sprintf("%s: %d of %d definitions do not have the digests that they stand under", d.Path,
			wrong, len(members))
	}

	return d, nil
}

// encode returns the file with the definitions of pins; nil if it already has exactly those.
func (d *Definitions) encode(pins []policy.Pin) ([]byte, error) {
	named := make(map[canonical.Digest]jsontext.Value)
	for _, p := range pins {
		if v := d.byDigest[p.Definition]; v != nil {
			named[p.Definition] = v
		}
	}
	if len(named) == 0 && d.was == nil {
		return nil, nil
	}
	doc, err := json.Marshal(named, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return nil, err
	}
	text := []byte(visible.JSON(doc) + "\n")
	if bytes.Equal(text, d.was) {
		text = nil
	}
	return text, nil
}

// Diff returns the changes from a tool's pinned definition to its live one; false if the pinned one
// is not stored.
func (d *Definitions) Diff(t *Entry) ([]docdiff.Change, bool) {
	pinned := d.byDigest[t.Pin]
	if pinned == nil {
		return nil, false
	}
	return docdiff.JSON("", pinned, t.live.Definition), true
}

// Definition returns the stored definition with a digest; nil if there is none.
func (d *Definitions) Definition(digest canonical.Digest) jsontext.Value { return d.byDigest[digest] }

// ReadAll reads the definitions beside several allowlist files. The first is the default allowlist.
func ReadAll(allowlists []string) (*Definitions, error) {
	definitions, err := ReadDefinitions(allowlists[0])
	if err != nil {
		return nil, err
	}
	for _, path := range allowlists[1:] {
		more, err := ReadDefinitions(path)
		if err != nil {
			return nil, err
		}
		maps.Copy(definitions.byDigest, more.byDigest)
		definitions.Warning = cmp.Or(definitions.Warning, more.Warning)
	}
	return definitions, nil
}

// Stored returns the catalog of the definitions that are stored beside allowlist files; nil if
// there are none. warning describes a file's fault.
func Stored(b *policy.Bundle, allowlists []string) (c *policy.Catalog, warning string, err error) {
	if len(b.Content().Pins) == 0 {
		return nil, "", nil
	}
	d, err := ReadAll(allowlists)
	if err != nil {
		return nil, "", err
	}
	c, err = d.Catalog(b)
	return c, d.Warning, err
}

// Catalog returns a catalog of the pinned tools whose definitions are stored, as if their servers
// listed them; nil if there are none.
func (d *Definitions) Catalog(b *policy.Bundle) (*policy.Catalog, error) {
	if len(d.byDigest) == 0 {
		return nil, nil
	}
	var listings []policy.Listing
	for _, s := range b.Content().Servers {
		var tools []jsontext.Value
		for _, pin := range b.Content().Pins {
			if definition := d.byDigest[pin.Definition]; pin.Server == s.Name && definition != nil {
				tools = append(tools, definition)
			}
		}
		page, err := json.Marshal(map[string]any{"tools": tools})
		if err != nil {
			return nil, err
		}
		listings = append(listings, policy.Listing{Server: s.Name, Status: policy.ServerUp,
			Pages: []canonical.Text{page}})
	}
	return b.Catalog(canonical.Sum("pinned catalog", b.Canonical()), listings), nil
}
