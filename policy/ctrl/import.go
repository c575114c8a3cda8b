package ctrl

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/visible"
)

// The files of a bundle.
const (
	PolicyFile  = "policy.yaml"
	RiskFile    = "risk.yaml"
	ServersFile = "servers.yaml"
)

// A Result is a bundle as it is read here.
type Result struct {
	Policy   *rules.Content
	Risk     *risk.Content // nil if the bundle has none
	Servers  []Server
	Env      string    // the environment that servers.yaml names as the default; may be empty
	Findings []Finding // by file and place
}

// A Server is an upstream, reached by streamable HTTP.
type Server struct{ Name, URL string }

// Import reads the bundle in a folder. The error is of type [Faults]. What it returns compiles.
func Import(fsys fs.FS) (*Result, error) {
	i := &importer{result: &Result{}}
	if root, f := i.open(fsys, RiskFile, false); root != nil {
		i.file = f
		i.risk(root)
	}
	if root, f := i.open(fsys, PolicyFile, true); root != nil {
		i.file = f
		i.policies(root)
	}
	if root, f := i.open(fsys, ServersFile, false); root != nil {
		i.file = f
		i.servers(root)
	}
	if len(i.faults) > 0 {
		return nil, i.faults
	}
	sortFindings(i.result.Findings)
	return i.result, nil
}

type importer struct {
	result *Result
	faults Faults
	file   *file
}

// open reads one file; it returns nil if there is nothing to read.
func (i *importer) open(fsys fs.FS, name string, must bool) (*node, *file) {
	f := &file{name: name, faults: &i.faults}
	text, err := fs.ReadFile(fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !must:
		return nil, nil
	case err != nil:
		var inner *fs.PathError
		if errors.As(err, &inner) {
			err = inner.Err
		}
		f.fault(&node{}, "it cannot be read: %s", err)
		return nil, nil
	}
	return f.parse(text), f
}

func (i *importer) fault(n *node, format string, args ...any) { i.file.fault(n, format, args...) }

// note adds a finding about what stands at n.
func (i *importer) note(n *node, id, key, code, problem, done string) {
	i.result.Findings = append(i.result.Findings, Finding{
		Code: code, File: i.file.name, Line: n.line, Column: n.col, ID: visible.Text(id), Key: visible.Text(key),
		Problem: visible.Text(problem), Done: visible.Text(done),
	})
}

// only notes a fault for each key of n that ctrl does not know, which passes over it in silence.
func (i *importer) only(n *node, keys ...string) {
	if n == nil || !i.is(n, isMap) {
		return
	}
	for _, m := range n.members {
		if !strings.Contains(" "+strings.Join(keys, " ")+" ", " "+m.key+" ") {
			i.fault(m.value, "ctrl passes over the key %q here; take it out, or say it with %s",
				visible.Clip(m.key, maxShown), strings.Join(keys, ", "))
		}
	}
}

// ignored notes keys that are left out without harm.
func (i *importer) ignored(n *node, keys ...string) {
	for _, m := range n.members {
		if !strings.Contains(" "+strings.Join(keys, " ")+" ", " "+m.key+" ") {
			i.note(m.value, "", m.key, IgnoredKey, fmt.Sprintf("the key %q says nothing about risk or policy", m.key),
				"left out")
		}
	}
}

func (i *importer) is(n *node, kind nodeKind) bool {
	if n.kind != kind {
		i.fault(n, "it must be %s, not %s", kindNames[kind], kindNames[n.kind])
	}
	return n.kind == kind
}

// text returns the text of a key; otherwise if there is none.
func (i *importer) text(n *node, key, otherwise string) string {
	v := n.get(key)
	if v == nil || v.kind == isNull || !i.is(v, isText) {
		return otherwise
	}
	if key == "reason" { // a sentence, however it is broken into lines
		return i.shown(v, strings.Join(strings.Fields(v.text), " "))
	}
	return i.shown(v, v.text)
}

// shown returns text, of which each character must show: our files hold no other.
func (i *importer) shown(n *node, text string) string {
	if visible.Text(text) != text || strings.TrimSpace(text) != text || text != "" && visible.Blank(text) {
		i.fault(n, "%q holds characters that do not show, or begins or ends with a space", visible.Clip(text, maxShown))
	}
	return text
}

// list returns the mappings that a key holds.
func (i *importer) list(root *node, key string) []*node {
	v := root.get(key)
	if v == nil || v.kind == isNull || !i.is(v, isList) {
		return nil
	}
	var out []*node
	for _, item := range v.items {
		if i.is(item, isMap) {
			out = append(out, item)
		}
	}
	return out
}

// at returns where a key stands, or where n does.
func (n *node) at(key string) *node {
	if v := n.get(key); v != nil {
		return v
	}
	return n
}

func (i *importer) servers(root *node) {
	i.ignored(root, "servers", "defaults")
	seen := make(map[string]bool)
	for _, n := range i.list(root, "servers") {
		i.only(n, "name", "transport", "base_url")
		s := Server{Name: i.text(n, "name", ""), URL: i.text(n, "base_url", "")}
		switch {
		case s.Name == "" || s.URL == "":
			i.fault(n, "a server has a name and a base_url")
		case seen[s.Name]:
			i.fault(n.at("name"), "the server %q stands twice", s.Name)
		case i.text(n, "transport", "http") != "http":
			i.fault(n.at("transport"), "the transport must be http")
		}
		seen[s.Name] = true
		i.result.Servers = append(i.result.Servers, s)
	}
	if d := root.get("defaults"); d != nil && d.kind != isNull && i.is(d, isMap) {
		i.ignored(d, "env")
		i.result.Env = i.text(d, "env", "")
	}
}

// translate translates one expression. It returns what stands in for an expression that cannot be.
func (i *importer) translate(n *node, id, key string, in scope, strictest string, how func(*translator,
	string) (string, error),
	compiles func(string) error) (cel string, ok bool) {
	t := &translator{scope: in}
	cel, err := how(t, n.text)
	if err == nil {
		err = compiles(cel)
	}
	if err != nil {
		i.note(n, id, key, Refused, fmt.Sprintf("%s: %v", clip(n.text), err), strictest)
		return "", false
	}
	if len(t.failed) > 0 {
		i.alwaysFailed(n, id, key, t)
	}
	for _, one := range t.noted {
		i.note(n, id, key, one.code, one.problem, one.done)
	}
	return cel, true
}

// alwaysFailed reports what ctrl's evaluator refuses on every call.
func (i *importer) alwaysFailed(n *node, id, key string, t *translator) {
	what := strings.Join(t.failed, ", ") + " cannot be evaluated in ctrl, on no call"
	switch t.place {
	case inVar:
		i.note(n, id, key, FailingVar, what+", so this variable is always 0 there",
			"translated as it is written; where it fails it is not 0: whatever uses it fails, too")
	case inRule:
		i.note(n, id, key, AlwaysFailed, what+", so this rule never sets a score there, only the mode review",
			"translated as it is written")
	default:
		i.note(n, id, key, AlwaysFailed, what+", so this condition is always true there", "translated as it is written")
	}
}

// glob takes a pattern of fnmatch. A set of characters, which is not there here, becomes any character.
func (i *importer) glob(n *node, key string) (pattern string, widened bool) {
	pattern = i.text(n, key, "*")
	for {
		begin := strings.IndexByte(pattern, '[')
		if begin < 0 {
			return pattern, widened
		}
		rest := pattern[begin+1:]
		skip := 0 // a ] that stands first is one of the set
		if strings.HasPrefix(rest, "!") {
			skip = 1
		}
		if strings.HasPrefix(rest[skip:], "]") {
			skip++
		}
		end := strings.IndexByte(rest[skip:], ']')
		if end < 0 {
			return pattern, widened // [ is itself
		}
		pattern, widened = pattern[:begin]+"?"+rest[skip+end+1:], true
	}
}
