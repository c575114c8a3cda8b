package origin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits of labels.
const (
	MaxPattern = 256 // bytes of a place or of a path of arguments
	MaxDepth   = 32  // levels of nesting at which values are found
)

// Labels are the operator's words about tools and prompts. A tool without an entry is untrusted and has no roles. The
// schema of labels.yaml has the forms and bounds of values; one that is out of them never trusts more.
type Labels struct {
	Tools   []ToolLabel `json:"tools,omitempty"`
	Roles   []RoleLabel `json:"roles,omitempty"`
	Prompts PromptLabel `json:"prompts,omitzero"`
	// Actors whose clients name the session of a call in _meta.
	Sessions []string `json:"sessions,omitempty"`
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

// JoinPath writes the names of an argument's path as a [RoleLabel] has them: \. is a dot in a name.
func JoinPath(names []string) string {
	escaped := make([]string, len(names))
	for i, name := range names {
		escaped[i] = strings.ReplaceAll(name, ".", `\.`)
	}
	return strings.Join(escaped, ".")
}

// SplitPath returns the names of a path of a [RoleLabel].
func SplitPath(path string) []string {
	names := strings.Split(strings.ReplaceAll(path, `\.`, "\x00"), ".")
	for i, name := range names {
		names[i] = strings.ReplaceAll(name, "\x00", ".")
	}
	return names
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
	// Actors, see [Labels].
	sessions []string
}

// BelievesSessions reports whether the client of an actor may name the session of a call.
func (r *Rules) BelievesSessions(actor string) bool {
	return r != nil && slices.Contains(r.sessions, actor)
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

// A Fault is one thing that is wrong with labels.
type Fault struct {
	List            string // tools or roles
	Index           int    // of the entry
	Key             string // within the entry, such as trusted[0]; empty for the whole entry
	Problem, Remedy string
}

// Error returns the place, the problem and the remedy in one line.
func (f *Fault) Error() string {
	where := f.List + "[" + strconv.Itoa(f.Index) + "]"
	if f.Key != "" {
		where += "." + f.Key
	}
	return where + ": " + f.Problem + "; " + f.Remedy
}

// Compile checks and compiles labels. The error joins a [*Fault] for each thing that is wrong.
func Compile(labels Labels) (*Rules, error) {
	c := &compiler{rules: &Rules{
		tools:    map[toolName]*toolRules{},
		roles:    map[toolName][]rolePath{},
		prompts:  labels.Prompts,
		sessions: labels.Sessions,
	}}

	for i := range labels.Tools {
		label := &labels.Tools[i]
		c.list, c.index = "tools", i
		c.checkName(label.Server, label.Tool, c.rules.tools[toolName{label.Server, label.Tool}] != nil)
		c.compileTool(label)
	}
	for i := range labels.Roles {
		label := &labels.Roles[i]
		c.list, c.index = "roles", i
		c.checkName(label.Server, label.Tool, c.rules.roles[toolName{label.Server, label.Tool}] != nil)
		c.compileRoles(label)
	}

	if len(c.faults) > 0 {
		return nil, errors.Join(c.faults...)
	}
	return c.rules, nil
}

// A compiler compiles one entry after the other and collects what is wrong.
type compiler struct {
	rules  *Rules
	list   string
	index  int
	faults []error
}

func (c *compiler) addFault(key, remedy, problem string, args ...any) {
	c.faults = append(c.faults, &Fault{c.list, c.index, key, fmt.Sprintf(problem, args...), remedy})
}

// checkName refuses a second entry of a tool, and entries for many tools, which would match none.
func (c *compiler) checkName(server, tool string, known bool) {
	if strings.Contains(server+tool, "*") {
		c.addFault("tool", "write one entry for each tool instead of *", "server and tool name one tool")
	}
	if known {
		c.addFault("", "keep one of them", "the tool has an entry already")
	}
}

func (c *compiler) compileTool(label *ToolLabel) {
	places := len(label.Trusted) + len(label.Creates)
	switch {
	case (label.Items == "") != (label.TrustedIf == ""):
		c.addFault("", "write both or neither", "items and trusted_if need each other")
	case label.Results == "trusted" && (len(label.Trusted) > 0 || label.Items != ""):
		c.addFault("results", "leave it out, or trusted, items and trusted_if", "trusted covers all places")
	case label.Prefix && label.Results != "trusted" && places == 0 && label.Items == "":
		c.addFault("prefix", "write trusted, or leave out prefix", "no place of this tool is trusted")
	}

	c.rules.tools[toolName{label.Server, label.Tool}] = &toolRules{
		ToolLabel: *label,
		trusted:   c.compilePlaces("trusted", label.Trusted),
		creates:   c.compilePlaces("creates", label.Creates),
		items:     c.compilePlace("items", label.Items),
	}
}

func (c *compiler) compilePlaces(key string, places []string) []pattern {
	patterns := make([]pattern, len(places))
	for i, place := range places {
		patterns[i] = c.compilePlace(key+"["+strconv.Itoa(i)+"]", place)
	}
	return patterns
}

// compilePlace compiles a JSON pointer (RFC 6901) with *. The empty pointer is the whole document.
func (c *compiler) compilePlace(key, place string) pattern {
	if !jsontext.Pointer(place).IsValid() {
		c.addFault(key, "begin with /, and write ~0 for ~", "%q is no JSON pointer", place)
	}
	p := splitPointer(place)
	c.checkDepth(key, p)
	return p
}

func (c *compiler) checkDepth(key string, p pattern) {
	if problem, remedy := p.checkDepth(); problem != "" {
		c.addFault(key, remedy, "%s", problem)
	}
}

func (p pattern) checkDepth() (problem, remedy string) {
	if len(p) > MaxDepth {
		return fmt.Sprintf("the path has %d names, more than %d", len(p), MaxDepth), "write a shorter one"
	}
	return "", ""
}

func splitPointer(pointer string) pattern { return slices.Collect(jsontext.Pointer(pointer).Tokens()) }

// pointerOf returns the JSON pointer of a path.
func pointerOf(path []string) string {
	var pointer []byte
	for _, name := range path {
		pointer = append(append(pointer, '/'), pointerEscapes.Replace(name)...)
	}
	return string(pointer)
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func (c *compiler) compileRoles(label *RoleLabel) {
	paths := []rolePath{}
	roles := map[string]string{} // by path
	for _, list := range []struct {
		role  string
		paths []string
	}{{Target, label.Target}, {Amount, label.Amount}, {Content, label.Content}} {
		for i, path := range list.paths {
			key := list.role + "[" + strconv.Itoa(i) + "]"
			if roles[path] != "" {
				c.addFault(key, "give it one role", "%q has the role %s already", path, roles[path])
			}
			roles[path] = list.role
			p := pattern(SplitPath(path))
			if slices.Contains(p, "") || strings.HasPrefix(path, "/") || strings.Contains(path, "/*") {
				c.addFault(key, `write names with dots between, such as items.*.id, and \. for a dot in a name`, "%q is no path of an argument", path)
			}
			c.checkDepth(key, p)
			paths = append(paths, rolePath{list.role, p})
		}
	}

	if len(paths) == 0 {
		c.addFault("", "write target, amount or content", "no argument has a role")
	}
	c.rules.roles[toolName{label.Server, label.Tool}] = paths
}
