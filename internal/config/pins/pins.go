// Package pins compares, approves and removes the pins of an allowlist file. A pin is the digest of
// a tool's definition that the operator approved. A file beside the allowlist stores the
// definitions themselves, so pgfsm can show changes.
package pins

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gofrs/flock"

	"pgfsm/internal/canonical"
	"pgfsm/internal/config"
	"pgfsm/internal/safefile"
	"pgfsm/internal/visible"
	"pgfsm/policy"
)

// A Status compares a pin with the definition that the tool's server sends.
type Status string

const (
	Same          Status = "same"           // the server sends the pinned definition
	Changed       Status = "changed"        // the server sends a different definition
	Unpinned      Status = "unpinned"       // the tool has no pin
	NotListed     Status = "not_listed"     // the server is up and does not list the tool
	ServerDown    Status = "server_down"    // the server did not answer
	NotConfigured Status = "not_configured" // the configuration does not have the tool's server
	Ambiguous     Status = "ambiguous"      // the server lists the name more than once
	Pinned        Status = "pinned"         // [File.Approve] pinned the tool
	// Not pinned: the tool's schema is refused, so no run could call it.
	Refused    Status = "refused"
	Unexpected Status = "unexpected" // not pinned: the live definition is not the expected one
	// Not pinned: another allowlist file pins the tool to a different definition.
	Conflict Status = "conflict"
)

// An Entry is a tool of the allowlist with the status of its pin.
type Entry struct {
	Server     string           `json:"server"`
	Tool       string           `json:"tool"`
	Status     Status           `json:"status,omitzero"`
	Pin        canonical.Digest `json:"pin,omitzero"`
	Was        canonical.Digest `json:"was,omitzero"`        // the pin before it was changed or removed
	Definition canonical.Digest `json:"definition,omitzero"` // digest of the live definition
	Reason     string           `json:"reason,omitzero"`

	live     *policy.Tool
	conflict string // the reason not to pin the live definition; empty if there is none
}

// LiveDefinition returns the definition that the tool's server sends; nil if it is unknown.
func (t *Entry) LiveDefinition() jsontext.Value {
	if t.Definition == "" {
		return nil
	}
	return t.live.Definition
}

// Describe returns the pin's status in a few words. They may contain text of servers.
func (t *Entry) Describe() string {
	pin, was, live := t.Pin.Short(), t.Was.Short(), t.Definition.Short()
	switch {
	case t.Status == NotListed && t.Reason != "":
		return "its server lists it malformed: " + t.Reason
	case t.Status == Pinned && t.Was != "":
		return fmt.Sprintf("pinned: %s, in the place of %s", pin, was)
	case t.Status == "" && t.Pin != "":
		return string(t.Pin)
	case t.Status == "" && t.Was != "":
		return "no longer pinned; it was " + was
	case t.Status == "":
		return "not pinned"
	}
	return map[Status]string{
		Same:          "as pinned, " + pin,
		Changed:       fmt.Sprintf("changed: %s is pinned, its server sends %s", pin, live),
		Unpinned:      "not pinned; its server sends " + live,
		NotListed:     "its server does not list it",
		ServerDown:    "its server is down: " + t.Reason,
		NotConfigured: "no such server is configured",
		Ambiguous:     "its server lists this name more than once",
		Pinned:        "pinned: " + pin,
		Refused:       "its schema is refused: " + t.Reason,
		Conflict:      t.Reason + ": reset that pin first (pgfsm pins reset)",
		Unexpected:    "not what was expected: its server sends " + string(t.Definition),
	}[t.Status]
}

// A File holds an allowlist file as it was read.
type File struct {
	Path string // with symbolic links resolved

	text      []byte // the content that was read
	added     bool   // the allowlist has tools of Add
	mode      fs.FileMode
	allowlist []policy.Allowance
	pins      []policy.Pin
	// Pins of the configuration's other allowlist files: a tool has one pin in all of them.
	others []policy.Pin
}

// Read reads an allowlist file. It refuses a file that other users can write.
func Read(path string) (*File, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	f := &File{Path: path}
	if f.text, err = safefile.ReadTrusted(path); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f.mode = info.Mode().Perm()
	f.allowlist, f.pins, err = config.ReadPins(path, f.text)
	return f, err
}

// ReadOthers reads the pins of the configuration's other allowlist files. all has the paths of all
// allowlist files.
func (f *File) ReadOthers(paths []string) error {
	for _, path := range paths {
		other, err := Read(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if other.Path != f.Path {
			f.others = append(f.others, other.pins...)
		}
	}
	return nil
}

// Add puts tools of a server on the allowlist, and returns them in the order of the file.
// [File.Approve] writes them.
func (f *File) Add(server string, tools ...string) (added []Entry, err error) {
	f.allowlist = slices.Clone(f.allowlist) // a copy of f keeps its own
	i := slices.IndexFunc(f.allowlist, func(a policy.Allowance) bool { return a.Server == server })
	if i < 0 {
		i = len(f.allowlist)
		f.allowlist = append(f.allowlist, policy.Allowance{Server: server})
	}
	listed := slices.Clone(f.allowlist[i].Tools)
	for _, tool := range tools {
		if !slices.Contains(listed, tool) {
			listed, f.added = append(listed, tool), true
		}
	}
	f.allowlist[i].Tools = listed
	entries, err := f.Select(server)
	return slices.DeleteFunc(entries, func(t Entry) bool { return !slices.Contains(tools, t.Tool) }), err
}

// Select returns the tools that names choose. No name chooses all tools, one name a server's tools,
// two names a server and one tool.
func (f *File) Select(names ...string) ([]Entry, error) {
	var tools []Entry
	found := len(names) == 0
	for _, a := range f.allowlist {
		if len(names) > 0 && a.Server != names[0] {
			continue
		}
		found = found || len(names) == 1
		for _, name := range a.Tools {
			if len(names) < 2 || name == names[1] {
				found = true
				tools = append(tools, Entry{Server: a.Server, Tool: name, Pin: policy.PinOf(f.pins, a.Server, name)})
			}
		}
	}
	if !found {
		return nil, fmt.Errorf("%s is not on the allowlist, %s: nothing else can be pinned (for the allowlist of a group, use --group)", strings.Join(names, " "), f.Path)
	}
	return tools, nil
}

// Compare sets the status of tools from their servers' listings, and returns the catalog. Pins and
// grants hide nothing in that catalog.
func (f *File) Compare(tools []Entry, b *policy.Bundle, id canonical.Digest,
	listed []policy.Listing) (*policy.Catalog, error) {
	// Without pins and grants, the catalog has every definition as its server sends it.
	content := *b.Content()
	content.Allowlist, content.Pins, content.Grants = f.allowlist, nil, nil
	bundle, err := policy.Compile(content)
	if err != nil {
		return nil, err
	}
	c := bundle.Catalog(id, listed)
	for i := range tools {
		tools[i].compareTo(c)
		f.checkOthers(&tools[i])
	}
	return c, nil
}

// checkOthers notes a conflict if another file pins the tool to a different definition. Then the
// live definition cannot be pinned here, because pgfsm refuses a configuration with both pins.
func (f *File) checkOthers(t *Entry) {
	if other := policy.PinOf(f.others, t.Server, t.Tool); t.Definition != "" && t.Status != Same && other != "" &&
		other != t.Definition {
		t.conflict = fmt.Sprintf("another allowlist file pins it to %s, and its server sends %s", other.Short(),
			t.Definition.Short())
	}
}

func (t *Entry) compareTo(c *policy.Catalog) {
	i := slices.IndexFunc(c.Servers, func(s policy.CatalogServer) bool { return s.Server == t.Server })
	if i < 0 {
		t.Status = NotConfigured
		return
	}
	if s := &c.Servers[i]; s.Status != policy.ServerUp {
		t.Status, t.Reason = ServerDown, fmt.Sprintf("[%s] %s", s.Code, s.Reason)
		return
	}

	live, found := c.Find(t.Server, t.Tool)
	switch {
	case !found.Allows():
		t.Status = NotListed
		if e := c.Servers[i].Malformed(t.Tool); e != nil {
			t.Reason = e.Reason
		}
		return
	case live.Code == policy.CodeToolAmbiguous:
		t.Status = Ambiguous
		return
	}

	t.live, t.Definition = live, live.Digest
	switch t.Pin {
	case t.Definition:
		t.Status = Same
	case "":
		t.Status = Unpinned
	default:
		t.Status = Changed
	}
}

// CheckAllowed returns an error if a compared tool cannot be allowed with its live definition.
func (t *Entry) CheckAllowed() error {
	entry := *t
	switch {
	case t.Status == Unpinned && t.unusableReason():
		entry.Status, entry.Reason = Refused, t.live.Reason
	case t.Status == Unpinned && t.conflict != "":
		entry.Status, entry.Reason = Conflict, t.conflict
	}
	if entry.Status == Unpinned || entry.Status == Same {
		return nil
	}
	return fmt.Errorf("%s %s cannot be allowed: %s", visible.Text(t.Server), visible.Text(t.Tool),
		visible.Text(entry.Describe()))
}

// Arguments returns the names of the arguments in the tool's live schema, sorted. Optional ones end
// in a question mark.
func (t *Entry) Arguments() (names []string) {
	var s struct {
		Properties map[string]jsontext.Value `json:"properties"`
		Required   []string                  `json:"required"`
	}
	if err := json.Unmarshal(t.live.InputSchema, &s); err != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(s.Required, name) {
			name += "?"
		}
		names = append(names, name)
	}
	return names
}

// Description returns the description in the tool's live definition.
func (t *Entry) Description() string { return t.live.Description }

// unusableReason reports whether no run could call the tool even if it were pinned.
func (t *Entry) unusableReason() bool {
	return t.live.Code != "" && t.live.Code != policy.CodeSchemaUnpinned
}

// Annotations returns the hints in the tool's live definition.
func (t *Entry) Annotations() policy.Annotations { return t.live.Annotations }

// Answered reports whether at least one server of the tools answered, so there was something to
// compare.
func Answered(c *policy.Catalog, tools []Entry) bool {
	if !c.Up() {
		return false
	}
	unknown := func(t Entry) bool { return t.Status != ServerDown && t.Status != NotConfigured }
	return len(tools) == 0 || slices.ContainsFunc(tools, unknown)
}

// Approve pins compared tools to their live definitions, and writes the file if that changes it. It
// replaces a different pin only if the live definition is the expected one, or if changes are
// approved. Without an expected digest, it pins every unpinned tool.
func (f *File) Approve(tools []Entry, expected canonical.Digest, changes bool, d *Definitions) error {
	pins := slices.Clone(f.pins)
	for i := range tools {
		t := &tools[i]
		switch {
		case t.Definition == "":
			continue
		case expected != "" && expected != t.Definition:
			t.Status = Unexpected
		case t.unusableReason():
			t.Status, t.Reason = Refused, t.live.Reason
		case t.conflict != "":
			t.Status, t.Reason = Conflict, t.conflict
		case t.Status == Unpinned, t.Status == Changed && (expected != "" || changes):
			t.Status, t.Was, t.Pin = Pinned, t.Pin, t.Definition
			pins = append(withoutTool(pins, *t), policy.Pin{Definition: t.Pin, Server: t.Server, Tool: t.Tool})
			d.byDigest[t.Pin] = t.live.Definition
		case t.Status == Same:
			d.byDigest[t.Pin] = t.live.Definition
		}
	}
	return f.save(pins, d)
}

// Reset removes the pins of tools, writes the file, and returns the tools that had a pin.
func (f *File) Reset(tools []Entry) (removed []Entry, err error) {
	for _, t := range tools {
		if t.Pin != "" {
			removed = append(removed, Entry{Server: t.Server, Tool: t.Tool, Was: t.Pin})
		}
	}
	return removed, f.save(withoutTool(f.pins, removed...), nil)
}

// withoutTool returns pins without the pins of the given tools.
func withoutTool(pins []policy.Pin, tools ...Entry) []policy.Pin {
	return slices.DeleteFunc(slices.Clone(pins), func(p policy.Pin) bool {
		return slices.ContainsFunc(tools, func(t Entry) bool { return t.Server == p.Server && t.Tool == p.Tool })
	})
}

// save writes the pins. Before, it writes the definitions of the former and the new pins; a nil d
// leaves the definitions unchanged. The lock is on the file that was read, which a write replaces:
// another process that gets the lock later finds a changed file.
func (f *File) save(pins []policy.Pin, d *Definitions) (err error) {
	text, err := config.WritePins(f.allowlist, pins)
	if err != nil {
		return err
	}

	var definitions []byte
	if d != nil {
		if definitions, err = d.encode(slices.Concat(f.pins, pins)); err != nil {
			return err
		}
	}

	unchanged := slices.Equal(pins, f.pins) && !f.added
	if definitions == nil && unchanged {
		return nil
	}

	// Nobody else may write between the comparison with what was read and the replacement.
	lock := flock.New(f.Path, flock.SetFlag(os.O_RDWR))
	if locked, err := lock.TryLock(); err != nil {
		return err
	} else if !locked {
		return fmt.Errorf("%s is being written by another pgfsm; nothing was written: run the command again", f.Path)
	}

	defer func() { err = errors.Join(err, lock.Unlock()) }()

	if err := safefile.Unchanged(f.Path, f.text); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	// Definitions go first: a pin without its definition could not be compared.
	if definitions != nil {
		if err := safefile.Replace(d.Path, d.was, definitions, f.mode); err != nil {
			return err
		}
	}
	if unchanged {
		return nil
	}
	return safefile.Replace(f.Path, f.text, text, f.mode)
}
