package origin

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits of labels.
const (
	MaxPattern = 256 // bytes of a place or of a path of arguments
	MaxDepth   = 32  // levels of nesting at which values are found
)

// Labels are the operator's words about tools and prompts. A tool without an entry is untrusted and has no roles.
type Labels struct {
	Tools   []ToolLabel `json:"tools,omitempty"`
	Roles   []RoleLabel `json:"roles,omitempty"`
	Prompts PromptLabel `json:"prompts,omitzero"`
}

// A ToolLabel says what of a tool's results is trusted. Places are JSON pointers in which * stands for any index or
// member.
type ToolLabel struct {
	Server    string   `json:"server"`
	Tool      string   `json:"tool"`
	Results   string   `json:"results,omitzero"`    // "trusted": each scalar; empty or "untrusted": only the places below
	Trusted   []string `json:"trusted,omitempty"`   // places of trusted scalars
	Creates   []string `json:"creates,omitempty"`   // places of ids that the call created; "" is the whole result
	Items     string   `json:"items,omitzero"`      // place of items that TrustedIf judges
	TrustedIf string   `json:"trusted_if,omitzero"` // condition on an item, all of whose scalars are then trusted
	Text      string   `json:"text,omitzero"`       // "json": a text result is a JSON document; else it is one scalar
	Prefix    bool     `json:"prefix,omitzero"`     // a trusted URL that ends in / covers the URLs below it
	Private   bool     `json:"private,omitzero"`    // results are private data
}

// A RoleLabel gives roles to arguments: dotted paths, in which * stands for any index or member. A role covers all that
// is below its path.
type RoleLabel struct {
	Server  string   `json:"server"`
	Tool    string   `json:"tool"`
	Target  []string `json:"target,omitempty"`
	Amount  []string `json:"amount,omitempty"`
	Content []string `json:"content,omitempty"`
}

// A PromptLabel says which prompts are requests beside those that a user typed.
type PromptLabel struct {
	SDK    bool `json:"sdk,omitzero"`    // prompts of a program
	Pasted bool `json:"pasted,omitzero"` // long prompts, fenced text and block quotes
}

// Rules are compiled labels. They are immutable and safe for concurrent use. Nil Rules know no tool.
type Rules struct {
	tools   map[toolName]*toolRules
	roles   map[toolName][]rolePath
	prompts PromptLabel
}

type toolName struct{ server, tool string }

// A toolRules is a ToolLabel with its places compiled.
type toolRules struct {
	ToolLabel
	trusted, creates []pattern
	items            pattern
}

type rolePath struct {
	role string
	path pattern
}

// A pattern is the segments of a path; * matches any.
type pattern []string

// matches reports whether the pattern is the start of path.
func (p pattern) matches(path []string) bool {
	if len(p) > len(path) {
		return false
	}
	for i, segment := range p {
		if segment != "*" && segment != path[i] {
			return false
		}
	}
	return true
}

func (p pattern) equals(path []string) bool { return len(p) == len(path) && p.matches(path) }

// Compile checks and compiles labels. An error names the entry and what to write instead.
func Compile(labels Labels) (*Rules, error) {
	r := &Rules{
		tools:   map[toolName]*toolRules{},
		roles:   map[toolName][]rolePath{},
		prompts: labels.Prompts,
	}

	for i, label := range labels.Tools {
		name := toolName{label.Server, label.Tool}
		rules, err := compileTool(label)
		if err == nil && r.tools[name] != nil {
			err = errors.New("the tool has an entry already; write one entry for each tool")
		}
		if err != nil {
			return nil, fmt.Errorf("tools[%d]: %w", i, err)
		}
		r.tools[name] = rules
	}

	for i, label := range labels.Roles {
		name := toolName{label.Server, label.Tool}
		paths, err := compileRoles(label)
		if err == nil && r.roles[name] != nil {
			err = errors.New("the tool has an entry already; write one entry for each tool")
		}
		if err != nil {
			return nil, fmt.Errorf("roles[%d]: %w", i, err)
		}
		r.roles[name] = paths
	}

	return r, nil
}

func compileTool(label ToolLabel) (*toolRules, error) {
	if err := checkName(label.Server, label.Tool); err != nil {
		return nil, err
	}
	places := len(label.Trusted) + len(label.Creates)
	switch {
	case label.Results != "" && label.Results != "trusted" && label.Results != "untrusted":
		return nil, fmt.Errorf("results: %q is neither trusted nor untrusted", label.Results)
	case label.Text != "" && label.Text != "json" && label.Text != "text":
		return nil, fmt.Errorf("text: %q is neither json nor text", label.Text)
	case (label.Items == "") != (label.TrustedIf == ""):
		return nil, errors.New("items and trusted_if need each other; write both or neither")
	case label.Results == "trusted" && (len(label.Trusted) > 0 || label.Items != ""):
		return nil, errors.New("results: trusted covers all places; leave it out, or trusted, items and trusted_if")
	case label.Prefix && label.Results != "trusted" && places == 0 && label.Items == "":
		return nil, errors.New("prefix: no place of this tool is trusted; write trusted or leave out prefix")
	}

	rules := &toolRules{ToolLabel: label}
	var err error
	if rules.trusted, err = compilePlaces("trusted", label.Trusted); err != nil {
		return nil, err
	}
	if rules.creates, err = compilePlaces("creates", label.Creates); err != nil {
		return nil, err
	}
	if rules.items, err = compilePlace(label.Items); err != nil {
		return nil, fmt.Errorf("items: %w", err)
	}

	return rules, nil
}

// checkName refuses names that name no tool.
func checkName(server, tool string) error {
	switch {
	case server == "":
		return errors.New("server is missing")
	case tool == "":
		return errors.New("tool is missing")
	case strings.Contains(server+tool, "*"):
		return errors.New("server and tool name one tool; write an entry for each instead of *")
	}
	return nil
}

func compilePlaces(key string, places []string) ([]pattern, error) {
	var patterns []pattern
	for i, place := range places {
		p, err := compilePlace(place)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", key, i, err)
		}
		patterns = append(patterns, p)
	}
	return patterns, nil
}

// compilePlace compiles a JSON pointer (RFC 6901) with *. The empty pointer is the whole document.
func compilePlace(place string) (pattern, error) {
	if place == "" {
		return pattern{}, nil
	}
	if place[0] != '/' {
		return nil, fmt.Errorf("%q is no JSON pointer; begin with /", place)
	}
	return compileSegments(place, strings.Split(place[1:], "/"))
}

// compileSegments decodes the segments of the path.
func compileSegments(path string, segments []string) (pattern, error) {
	switch {
	case len(path) > MaxPattern:
		return nil, fmt.Errorf("the path has %d bytes, more than %d", len(path), MaxPattern)
	case len(segments) > MaxDepth:
		return nil, fmt.Errorf("the path has %d segments, more than %d", len(segments), MaxDepth)
	}

	p := make(pattern, len(segments))
	for i, segment := range segments {
		p[i] = unescapePointer(segment)
		if escapePointer(p[i]) != segment {
			return nil, fmt.Errorf("%q has ~ without 0 or 1; write ~0 for ~", path)
		}
	}
	return p, nil
}

func unescapePointer(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
}
func escapePointer(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "~", "~0"), "/", "~1")
}

// pointerOf returns the JSON pointer of a path.
func pointerOf(path []string) string {
	var b strings.Builder
	for _, segment := range path {
		b.WriteByte('/')
		b.WriteString(escapePointer(segment))
	}
	return b.String()
}

func compileRoles(label RoleLabel) ([]rolePath, error) {
	if err := checkName(label.Server, label.Tool); err != nil {
		return nil, err
	}

	var paths []rolePath
	roles := map[string]string{} // by path
	for _, list := range []struct {
		role  string
		paths []string
	}{{Target, label.Target}, {Amount, label.Amount}, {Content, label.Content}} {
		for i, path := range list.paths {
			key := list.role + "[" + strconv.Itoa(i) + "]"
			if roles[path] != "" {
				return nil, fmt.Errorf("%s: %q has the role %s already", key, path, roles[path])
			}
			segments := strings.Split(path, ".")
			for k := range segments {
				if segments[k] == "" {
					return nil, fmt.Errorf("%s: %q has an empty name; write names with dots between, such as items.*.id", key, path)
				}
				segments[k] = escapePointer(segments[k])
			}
			p, err := compileSegments(path, segments)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			roles[path] = list.role
			paths = append(paths, rolePath{list.role, p})
		}
	}

	if paths == nil {
		return nil, errors.New("no argument has a role; write target, amount or content")
	}
	return paths, nil
}
