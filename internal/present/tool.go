package present

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
)

// A Tool is a tool that a server lists or that the allowlist names.
type Tool struct {
	Server      string      `json:"server"`
	Name        string      `json:"name"`
	Title       string      `json:"title,omitzero"`
	Description string      `json:"description,omitzero"`
	Allowed     bool        `json:"allowed"`
	Code        policy.Code `json:"code,omitzero"` // the reason that the tool cannot be called
	Reason      string      `json:"reason,omitzero"`
	Dialect     string      `json:"dialect,omitzero"` // dialect of the schema
	// The operator's schema in place of its inputSchema.
	OwnSchema canonical.Digest `json:"schema,omitzero"`
	// Places that accept members which the schema does not name.
	Open        []string           `json:"open,omitzero"`
	Definition  canonical.Digest   `json:"definition"`
	Pin         canonical.Digest   `json:"pin,omitzero"` // an allowlisted tool's pin; should equal Definition
	Annotations policy.Annotations `json:"annotations"`
	Warning     string             `json:"warning,omitzero"`
	Note        string             `json:"note,omitzero"` // limitations at the endpoint of all servers

	onAllowlist bool
}

// Tools returns the tools of a catalog by server. Each server's tools end with those that only the
// allowlist names.
func Tools(content *policy.Content, c *policy.Catalog) (tools []Tool) {
	for _, s := range c.Servers {
		for _, t := range s.Tools {
			tools = append(tools, newTool(t))
		}
		for _, e := range s.LeftOut {
			tools = append(tools, malformedTool(content, &s, e))
		}
		if s.Status == policy.ServerUp {
			tools = append(tools, unlistedTools(content, &s)...)
		}
	}
	return tools
}

func newTool(t *policy.Tool) Tool {
	tool := Tool{
		Server:      t.Server,
		Name:        t.Name,
		Title:       t.Title,
		Description: t.Description,
		Allowed:     t.Effective(),
		Code:        t.Code,
		Reason:      t.Reason,
		Dialect:     t.Dialect(),
		Open:        t.Open(),
		Definition:  t.Digest,
		Pin:         t.Pin,
		OwnSchema:   t.OwnSchema,
		Annotations: t.Annotations,
		Note:        t.Joined(),
		onAllowlist: t.Allowed,
	}

	switch {
	case !t.Allowed:
		tool.Code, tool.Reason = policy.CodeToolNotAllowed, "not on the allowlist"
		if code, why := t.Refused(); code != "" {
			tool.Code, tool.Reason = code, strings.TrimSuffix(why, ".")+"; it is not on the allowlist"
		}
	case t.Annotations.ReadOnly == nil || !*t.Annotations.ReadOnly:
		tool.Warning = "on the allowlist, but not annotated as read-only"
	}
	return tool
}

// malformedTool returns an entry of a server's list that is not a valid tool.
func malformedTool(content *policy.Content, s *policy.CatalogServer, e policy.LeftOut) Tool {
	return Tool{
		Server: s.Server,
		Name:   e.Name,
		Code:   policy.CodeToolUnknown,
		Reason: fmt.Sprintf("entry %d of the list is no tool of MCP: %s", e.Index, e.Reason),
		Pin:    policy.PinOf(content.Pins, s.Server, e.Name),
	}
}

// unlistedTools returns the tools of a server that the allowlist names and the server does not
// list: often a typing error.
func unlistedTools(content *policy.Content, s *policy.CatalogServer) (tools []Tool) {
	for _, a := range content.Allowlist {
		if a.Server != s.Server {
			continue
		}
		for _, name := range a.Tools {
			if s.Malformed(name) != nil ||
				slices.ContainsFunc(s.Tools, func(t *policy.Tool) bool { return t.Name == name }) {
				continue
			}
			tools = append(tools, Tool{
				Server: s.Server,
				Name:   name,
				Code:   policy.CodeToolUnknown,
				Reason: "on the allowlist, but the server does not list it",
				Pin:    policy.PinOf(content.Pins, s.Server, name),
			})
		}
	}
	return tools
}

// Detail describes a tool for people, without its name.
func (t *Tool) Detail() string { return t.describe(hintWords(&t.Annotations)) }

// DetailWithoutHints is [Tool.Detail] without what the server says about the tool.
func (t *Tool) DetailWithoutHints() string { return t.describe(nil) }

func (t *Tool) describe(hints []string) string {
	refusal := ""
	if t.Code != "" {
		refusal = fmt.Sprintf("[%s] %s; ", t.Code, strings.TrimSuffix(t.Reason, "."))
	}

	var parts []string
	if t.Dialect != "" {
		parts = append(parts, t.Dialect)
	}

	if t.OwnSchema != "" {
		parts = append(parts, "operator's schema "+t.OwnSchema.Short())
	}

	parts = append(parts, hints...)
	switch {
	case !t.onAllowlist:
	case t.Pin == "":
		parts = append(parts, "not pinned")
	case t.Pin == t.Definition:
		parts = append(parts, "pinned")
	}

	if len(t.Open) > 0 {
		parts = append(parts, "open at "+strings.Join(t.Open, " "))
	}

	return strings.TrimSuffix(refusal+strings.Join(parts, ", "), "; ")
}

// Hints describes the annotations of a tool in words.
func Hints(a *policy.Annotations) string {
	if words := hintWords(a); len(words) > 0 {
		return strings.Join(words, ", ")
	}
	return "nothing about whether it only reads"
}

func hintWords(a *policy.Annotations) (words []string) {
	for _, hint := range []struct {
		name  string
		value *bool
	}{
		{"read-only", a.ReadOnly}, {"destructive", a.Destructive},
		{"idempotent", a.Idempotent}, {"open-world", a.OpenWorld},
	} {
		switch {
		case hint.value == nil:
		case *hint.value:
			words = append(words, hint.name)
		default:
			words = append(words, "not "+hint.name)
		}
	}
	return words
}

// NotAllowed returns the tools that servers list and the allowlist does not name. reads has the
// tools that claim to only read.
func NotAllowed(tools []Tool) (reads, others []Tool) {
	for _, t := range tools {
		switch readOnly := t.Annotations.ReadOnly; {
		case t.onAllowlist || t.Definition == "":
		case readOnly != nil && *readOnly:
			reads = append(reads, t)
		default:
			others = append(others, t)
		}
	}
	return reads, others
}
