package policy

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy/schema"
)

// A Catalog holds the tools that the servers listed for one run.
type Catalog struct {
	Servers []CatalogServer
	digest  canonical.Digest
	index   map[toolKey]*Tool

	once sync.Once
	view any
}

// CatalogServer is one server's part of a catalog, in the operator's order of servers.
type CatalogServer struct {
	Server   string
	Status   string
	Code     Code
	Reason   string
	Name     string
	Version  string
	Protocol string
	Tools    []*Tool   // the tools in the server's order
	LeftOut  []LeftOut // likewise
}

// LeftOut is an entry of a listing that is no tool.
type LeftOut struct {
	Index  int    // among all entries of the listing; the first is 1
	Name   string // empty if it has none
	Reason string // a sentence
}

// Tool is one tool as its server declares it. Everything in it is untrusted.
type Tool struct {
	Server      string
	Name        string
	Title       string
	Description string
	Definition  []byte           // the whole tool object as sent, canonical, without _meta
	Digest      canonical.Digest // the digest of Definition
	Annotations Annotations
	InputSchema []byte           // the schema that checks arguments: the operator's, or else the server's
	OwnSchema   canonical.Digest // the digest of the operator's schema; empty if there is none
	Output      []byte           // the declared outputSchema, or nil

	Allowed bool             // the operator's allowlist has it, for everybody or for a group
	Pin     canonical.Digest // the definition that the operator pinned, or empty
	Code    Code             // why the allowed tool cannot be called; empty if it can
	Reason  string

	input   *schema.Schema
	output  *schema.Schema
	refused func() string // why the schema of a tool that is not allowed is refused; see Refused
	sdk     func() string // see SDKFaults

	listed, conform string // the reasons of verdicts that allow
}

// Annotations are the server's hints (MCP tool annotations): claims that nobody has checked. Nil
// means not given.
type Annotations struct {
	ReadOnly    *bool `json:"readOnlyHint"`
	Destructive *bool `json:"destructiveHint"`
	Idempotent  *bool `json:"idempotentHint"`
	OpenWorld   *bool `json:"openWorldHint"`
}

type toolKey struct{ server, tool string }

// Drifted reports whether the operator pinned another definition than the server sends.
func (t *Tool) Drifted() bool { return t.Pin != "" && t.Pin != t.Digest }

// Effective reports whether the tool is on the effective allowlist: discovered, allowed, and
// usable.
func (t *Tool) Effective() bool { return t != nil && t.Allowed && t.Code == "" && t.input != nil }

// Refused returns why the tool could not be called if it were allowed: the code and the reason.
// Both are empty if it could.
func (t *Tool) Refused() (Code, string) {
	if t.Code == "" && t.refused != nil {
		if reason := t.refused(); reason != "" {
			return CodeSchemaRefused, reason
		}
	}
	return t.Code, t.Reason
}

// SDKFaults says why the TypeScript SDK rejects a list with this tool in revisions before
// 2026-07-28, although the tool is one of MCP; empty if it accepts it.
func (t *Tool) SDKFaults() string {
	if t.sdk == nil {
		return ""
	}
	return t.sdk()
}

// Input is the tool's inputSchema, or nil if it was not compiled.
func (t *Tool) Input() *schema.Schema { return t.input }

// Dialect names the JSON Schema dialect of the tool's arguments; empty if its schema was not
// compiled.
func (t *Tool) Dialect() string {
	if t.input == nil {
		return ""
	}
	return t.input.Dialect()
}

// Open lists the places in the tool's arguments where members are allowed that the schema does not
// name.
func (t *Tool) Open() []string {
	if t.input == nil {
		return nil
	}
	return t.input.Open()
}

// Digest identifies the catalog: every definition, in order, and every server's status.
func (c *Catalog) Digest() canonical.Digest { return c.digest }

// View returns the result of make, which runs once for the catalog. All callers must pass the same
// function.
func (c *Catalog) View(make func(*Catalog) any) any {
	c.once.Do(func() { c.view = make(c) })
	return c.view
}

// Find returns the tool, or nil and the reason why there is none.
func (c *Catalog) Find(server, tool string) (*Tool, Verdict) {
	if t := c.index[toolKey{server, tool}]; t != nil {
		return t, allowedBy(GateSchema, "The tool is in the live catalog.")
	}
	for _, s := range c.Servers {
		if s.Server != server {
			continue
		}
		if s.Status != ServerUp {
			if code := s.DownCode(CodeServerDown); code != CodeServerDown {
				return nil, blockedBy(GateRun, code, fmt.Sprintf("Server %q: %s", clip(server), s.Reason))
			}
			return nil, blockedBy(GateSchema, CodeServerDown,
				fmt.Sprintf("Server %q is down: %s", clip(server), s.Reason))
		}
		if entry := s.Malformed(tool); entry != nil {
			return nil, blockedBy(GateSchema, CodeToolUnknown,
				fmt.Sprintf("Server %q lists a malformed tool %q: %s", clip(server), clip(tool), entry.Reason))
		}
		return nil, blockedBy(GateSchema, CodeToolUnknown,
			fmt.Sprintf("Server %q lists no tool %q.", clip(server), clip(tool)))
	}
	return nil, blockedBy(GateSchema, CodeServerUnknown, fmt.Sprintf("No server %q is configured.", clip(server)))
}

// DownCode returns why the server did not list its tools, if that does not mean that it is down; otherwise down.
func (s *CatalogServer) DownCode(down Code) Code {
	switch s.Code {
	case CodeTooManySessions, CodeCredentialsNeeded, CodeCredentialsRefused:
		return s.Code
	}
	return down
}

// Malformed returns the entry of a name that was left out; nil if there is none.
func (s *CatalogServer) Malformed(tool string) *LeftOut {
	if i := slices.IndexFunc(s.LeftOut, func(e LeftOut) bool { return e.Name == tool }); i >= 0 && tool != "" {
		return &s.LeftOut[i]
	}
	return nil
}

// Effective returns the effective allowlist of all callers together, in catalog order.
func (c *Catalog) Effective() []*Tool {
	var tools []*Tool
	for _, s := range c.Servers {
		for _, t := range s.Tools {
			if t.Effective() {
				tools = append(tools, t)
			}
		}
	}
	return tools
}

// Up reports whether any server answered.
func (c *Catalog) Up() bool {
	for _, s := range c.Servers {
		if s.Status == ServerUp {
			return true
		}
	}
	return false
}

// readCatalog builds a catalog from listings. A malformed entry removes only itself. A server that
// sends a page without a list of tools is down; it does not affect the others.
func (b *Bundle) readCatalog(listings []Listing) *Catalog {
	c := &Catalog{index: make(map[toolKey]*Tool)}
	for _, l := range listings {
		s := CatalogServer{
			Server:   l.Server,
			Status:   l.Status,
			Code:     l.Code,
			Reason:   l.Reason,
			Name:     l.Name,
			Version:  l.Version,
			Protocol: l.Protocol,
		}
		if s.Status == ServerUp {
			if err := s.readPages(l); err != nil {
				s.Status, s.Code, s.Reason = ServerDown, "server_protocol", asSentence(err)
			}
		}
		b.indexTools(c, &s)
		c.Servers = append(c.Servers, s)
	}
	return c
}

// indexTools indexes a server's tools and compiles the schemas of the allowlisted ones. A name that
// the server lists twice cannot be called: it is unknown which of the two tools would run.
func (b *Bundle) indexTools(c *Catalog, s *CatalogServer) {
	for _, t := range s.Tools {
		key := toolKey{t.Server, t.Name}
		t.Allowed, t.Pin = len(b.allow[key]) > 0, b.pins[key]
		if first := c.index[key]; first != nil {
			first.rejectName()
			t.rejectName()
			continue
		}
		c.index[key] = t
		if replacement := b.inputs[key]; replacement != nil {
			t.InputSchema, t.OwnSchema = replacement.text, replacement.digest
		}
		t.sdk = sync.OnceValue(func() string { return t.sdkFaults(b.schemaLimits) })
		if t.Allowed {
			b.admitTool(t, key)
		} else { // only people ask, so most catalogs do not compile it
			t.refused = sync.OnceValue(func() string {
				_, reason := b.compileInput(t, key)
				return reason
			})
		}
	}
	// A malformed entry with the name of a tool makes that name ambiguous, too.
	for _, entry := range s.LeftOut {
		if t := c.index[toolKey{s.Server, entry.Name}]; t != nil {
			t.rejectName()
		}
	}
}

// rejectName says that the server lists the tool's name more than once.
func (t *Tool) rejectName() {
	t.Code, t.Reason = CodeToolAmbiguous, "The server lists this name more than once."
}

// admitTool compiles an allowlisted tool. A tool that differs from its pin, or that the grants
// leave out, is not read and not shown to a planner.
func (b *Bundle) admitTool(t *Tool, key toolKey) {
	if t.Drifted() {
		t.Code = CodeToolDefinitionChanged
		t.Reason = fmt.Sprintf("its definition is %s, and %s is pinned; pgfsm pins diff shows what changed.",
			t.Digest.Short(), t.Pin.Short())
		return
	}
	if t.Code, t.Reason = b.missingGrant(key); t.Code != "" {
		return
	}
	if t.OwnSchema != "" && t.Pin == "" {
		t.Code, t.Reason = CodeSchemaUnpinned, "servers."+t.Server+".schemas has a schema for it, and it is not pinned."
		return
	}
	b.compileTool(t, key)
}

// An inputSchema is the operator's schema in place of a tool's inputSchema.
type inputSchema struct {
	text   []byte
	digest canonical.Digest
	schema *schema.Schema
}

func compileOwn(text []byte, limits schema.Limits) (*inputSchema, error) {
	s, err := schema.Compile(text, limits)
	if err != nil {
		return nil, err
	}
	text, err = canonical.JSON(text)
	return &inputSchema{text, canonical.Sum("input schema", text), s}, err
}

// compileInput returns the schema that judges a tool's arguments, or why there is none.
func (b *Bundle) compileInput(t *Tool, key toolKey) (s *schema.Schema, reason string) {
	if replacement := b.inputs[key]; replacement != nil {
		return replacement.schema, ""
	}
	s, err := schema.Compile(t.InputSchema, b.schemaLimits)
	if err != nil {
		return nil, "inputSchema: " + err.Error()
	}
	return s, ""
}

func (b *Bundle) compileTool(t *Tool, key toolKey) {
	var reason string
	if t.input, reason = b.compileInput(t, key); t.input == nil {
		t.Code, t.Reason = CodeSchemaRefused, reason
		return
	}
	t.listed = fmt.Sprintf("The allowlist names %s of %s.", t.Name, t.Server)
	t.conform = fmt.Sprintf("The arguments conform to the tool's inputSchema (%s, closed world).", t.Dialect())
	if t.OwnSchema != "" {
		t.conform = fmt.Sprintf("The arguments conform to the operator's schema in place of the tool's inputSchema (%s, closed world).", t.Dialect())
	}
	t.output = b.outputs[key]
	if t.output == nil && t.Output != nil {
		// Without a usable output type the tool can be called, and its results stay untyped.
		if output, err := schema.Compile(t.Output, b.schemaLimits); err == nil {
			t.output = output
		}
	}
}

// readPages reads the tools of all pages of a listing.
func (s *CatalogServer) readPages(l Listing) error {
	index := 0
	for i, page := range l.Pages {
		sent, err := readPage(i, page)
		if err != nil {
			s.Tools, s.LeftOut = nil, nil
			return err
		}
		for _, raw := range sent {
			index++
			t, err := readTool(l.Server, raw)
			if err != nil {
				s.LeftOut = append(s.LeftOut, LeftOut{index, entryName(raw), asSentence(err)})
				continue
			}
			s.Tools = append(s.Tools, t)
		}
	}
	return nil
}

// maxToolDepth bounds the nesting of a tool object.
const maxToolDepth = 126

func readTool(server string, raw jsontext.Value) (*Tool, error) {
	if err := canonical.Check(raw, maxToolDepth); err != nil {
		return nil, err
	}
	if what := toolFaults(toolObject(), raw); what != "" {
		return nil, errors.New(what)
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}

	// The schema has checked the types, so that these members decode.
	t := &Tool{Server: server}
	for _, m := range []struct {
		name string
		to   any
	}{{"name", &t.Name}, {"title", &t.Title}, {"description", &t.Description}, {"annotations", &t.Annotations}} {
		if v, ok := members[m.name]; ok {
			if err := json.Unmarshal(v, m.to); err != nil {
				return nil, err
			}
		}
	}

	// The digest covers every other member, also those that pgfsm does not know.
	t.InputSchema, t.Output = members["inputSchema"], members["outputSchema"]
	delete(members, "_meta") // by the specification, it may change from one answer to the next
	definition, err := canonical.Marshal(members)
	if err != nil {
		return nil, err
	}

	t.Definition, t.Digest = definition, canonical.Sum("tool definition", definition)
	return t, nil
}
