package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/schema"
	"pgfsm/policy/screen"
)

// Open returns the content of the file at path. This package reads files only through an Open, so
// the caller decides what a path means and which files are trusted.
type Open func(path string) ([]byte, error)

// Overrides replace values of the file, if they are not empty. Their paths are not relative to the
// file.
type Overrides struct {
	Allowlist string // the path of the allowlist
	TracesDir string
	Summary   string   // a summary mode
	Planner   string   // a planner mode
	LLM       *LLM     // a model, used only where the file names none
	Grants    []string // files of grants for one run, besides the file's
	Closed    bool     // an unreadable allowlist allows nothing; [Loaded.Closed] has the reason
}

// Loaded is a configuration with every file it names, ready to be compiled.
type Loaded struct {
	Content       policy.Content
	Servers       []Upstream  // in the order of Content.Servers
	AllowlistPath string      // path of the allowlist that was read
	GroupLists    []GroupList // the allowlists of groups, in the order of the file
	TracesDir     string
	// The ledger's URL without a password, its path relative to the working directory.
	Ledger        string
	DefaultLedger bool // no key names the ledger, so it is in TracesDir
	Retention     int  // for how many days the ledger keeps the record; 0: no key says so
	Checkpoints   Checkpoints
	// For how many days nobody has used a connection that ends; 0: people have no connections.
	ConnectionIdle int
	Hooks          []Hook // with references, until [Loaded.ResolveHooks] resolves them
	Closed         error  // the reason that the allowlist counts as empty; nil if it was read
	Serve          Serve  // settings of the gateway; only Content judges calls
	// With references, until [Loaded.Resolve] resolves them; nil: no spans are exported.
	OTLP         *OTLP
	Identity     Identity // with references, until [Loaded.ResolveIdentity] resolves them
	Warnings     []string // file:line:col: a valid setting that is probably a mistake
	Literals     []string // file:line:col: a secret that is a literal, not a reference
	RiskPlaces   *Places  // places in the file of Content.Risk; nil if there is none
	PolicyPlaces *Places  // places in the file of Content.Policy; nil if there is none
	LabelPlaces  *Places  // places in the file of Content.Labels; nil if there is none
	// Claims about the policies, which are no part of Content: they judge no call.
	Claims     []PolicyClaim
	ClaimsPath string // the file of Claims; empty if there is none

	file    *file
	key     path   // path of the model's key; nil if the file's key is unused or absent
	ambient string // the model's key from the environment
}

// Upstream is the connection to a server. Values are as written, with references, until
// [Loaded.Resolve] resolves them.
type Upstream struct {
	Name, Type, URL string
	Command         string // a path if it holds a separator, else a name for PATH
	Args            []string
	Headers, Env    Table[string]
	Auth            *ClientCredentials // nil: none
	Person          *PersonCredentials // nil: people have no connections to the server

	// In milliseconds, see [policy.Server].
	ConnectTimeout, Timeout, TimeoutTotal int64

	ToolList jsontext.Value `json:"-"` // of a client: its tools, a result of tools/list

	IdleTimeout int64  // in milliseconds
	Sessions    string // [SessionsIdentity], [SessionsSession], [SessionsOne]
}

// Load reads the configuration at path name, and every file it names. The error is of type
// [Errors]; if the configuration itself has faults, Load does not read the files that it names.
func Load(name string, open Open, over Overrides) (*Loaded, error) {
	text, err := open(name)
	if err != nil {
		fault := &Error{File: name, Problem: "cannot be read: " + reasonOf(err)}
		if errors.Is(err, fs.ErrNotExist) {
			fault.Remedy = initRemedy
		}
		return nil, Errors{fault}
	}
	c, err := parseConfig(name, text)
	if err != nil {
		return nil, err
	}

	// The configuration itself is valid. All faults of the files that it names are reported
	// together.
	l := &loader{configFile: c, open: open, out: &Loaded{file: c.file}}
	l.copySettings(over)

	for _, s := range l.Servers {
		l.copyServer(s.Name, s.Value)
	}

	l.readAllowlists(over.Allowlist, over.Closed)
	l.checkLimitedTools(over.Allowlist)
	l.checkRedactedTools(over.Allowlist)
	l.addGrants(over.Grants)
	l.readSchemas()
	l.out.Content.Risk, l.out.RiskPlaces = namedEntries(l, "risk", ReadRisk)
	l.out.Content.Policy, l.out.PolicyPlaces = namedEntries(l, "policy", ReadPolicy)
	l.out.Content.Labels, l.out.LabelPlaces = namedEntries(l, "labels", ReadLabels)
	if err := c.err(); err != nil {
		l.others = append(err.(Errors), l.others...)
	}

	if len(l.others) == 0 {
		l.readClaims()
	}

	if len(l.others) > 0 {
		return nil, l.others
	}

	l.warnUnlikely(over.Allowlist)
	l.warnUnknownLabels()
	return l.out, nil
}

type loader struct {
	*configFile
	open   Open
	out    *Loaded
	others Errors // faults of the files that the configuration names
}

// addOutsideFault notes a fault in a flag or an environment variable.
func (l *loader) addOutsideFault(where, remedy, problem string, args ...any) {
	l.others = append(l.others, &Error{File: where, Problem: fmt.Sprintf(problem, args...), Remedy: remedy})
}

// addFaults adds the faults of another file, and reports whether there are any.
func (l *loader) addFaults(err error) bool {
	if err != nil {
		l.others = append(l.others, err.(Errors)...)
	}
	return err != nil
}

// addWarning adds a warning about the value at a place.
func (l *loader) addWarning(f *file, at place, format string, args ...any) {
	l.out.Warnings = append(l.out.Warnings,
		fmt.Sprintf("%s:%d:%d: ", f.name, at.line, at.col)+fmt.Sprintf(format, args...))
}

// warnUnlikely warns about settings that are probably mistakes.
func (l *loader) warnUnlikely(allowlist string) {
	names := func(a policy.Allowance) bool { return len(a.Tools) > 0 }
	if l.out.Closed == nil && !slices.ContainsFunc(l.out.Content.Allowlist, names) {
		f, at := l.file, l.findNearest(path{"allowlist"}).value.at
		if allowlist != "" { // it overrides the file that the configuration names
			f, at = &file{name: allowlist}, place{1, 1}
		}
		l.addWarning(f, at, "the allowlist names no tool, so every call is refused: pgfsm allow SERVER TOOL adds one")
	}
	for _, s := range l.out.Content.Schemas {
		if l.out.Closed == nil && policy.PinOf(l.out.Content.Pins, s.Server, s.Tool) == "" {
			l.addWarningAt(path{"servers", s.Server, "schemas", s.Tool},
				"this schema is for %s, which is not pinned, so every call is refused: "+
					"pgfsm allow allows and pins a tool, pgfsm pins approve pins one that is allowed", quote(s.Tool))
		}
	}
}

// addWarningAt adds a warning about a value of the configuration.
func (l *loader) addWarningAt(p path, format string, args ...any) {
	l.addWarning(l.file, l.findNearest(p).value.at, format, args...)
}

// copySettings copies the configuration's own settings.
func (l *loader) copySettings(over Overrides) {
	c := &l.out.Content
	c.Format, c.Env, c.Summary = policy.ContentFormat, l.Env, l.Summary.Mode
	l.copyPlanner(over)
	l.copyInput()
	c.Redact = l.Redact
	if over.Summary != "" {
		c.Summary = over.Summary
	}

	c.Limits = policy.Limits{
		PlanBytes:      l.Limits.PlanBytes,
		ArgumentsBytes: l.Limits.ArgumentsBytes,
		JSONDepth:      l.Limits.JSONDepth,
		ResultBytes:    l.Limits.ResultBytes,
		RunTimeout:     l.Limits.RunTimeout,
	}

	for _, r := range l.Roles {
		c.Roles = append(c.Roles, policy.Role{Role: r.Name, Actors: r.Value})
	}

	if l.out.TracesDir = l.resolvePath(l.Traces.Dir); over.TracesDir != "" {
		l.out.TracesDir = over.TracesDir
	}

	if l.Ledger != "" {
		l.out.Ledger = LedgerName(ledgerIn(l.Ledger, filepath.Dir(l.name)))
	} else {
		l.out.Ledger, l.out.DefaultLedger = sqliteScheme+filepath.Join(l.out.TracesDir, ledgerFile), true
	}

	l.out.Retention = l.LedgerRetention
	if c := l.Checkpoints; c != nil {
		l.out.Checkpoints = *c
		for i, key := range c.Keys {
			l.out.Checkpoints.Keys[i] = l.resolvePath(key)
		}
		if c.Dir != "" {
			l.out.Checkpoints.Dir = l.resolvePath(c.Dir)
		}
	}

	if c := l.Connections; c != nil {
		l.out.ConnectionIdle, _ = strconv.Atoi(strings.TrimSuffix(c.Idle, "d"))
	}

	// The gateway's own settings, which judge no call.
	l.out.Hooks, l.out.OTLP, l.out.Literals = l.Approvals.Hooks, l.Telemetry.OTLP, l.literals
	l.copyServe()
	l.copyIdentity()
}

// copyInput adds the default input rules. An operator's rule with the id of a default rule widens
// that rule, so a rule's name never removes a default rule.
func (l *loader) copyInput() {
	input := &l.out.Content.Input
	input.MaxBytes = l.Input.MaxBytes
	if l.Input.Defaults {
		input.Rules = policy.DefaultRules()
	}
	defaults := len(input.Rules)
	for i, rule := range l.Input.Deny {
		rule.On = kindsOf(rule.On)
		builtin := slices.IndexFunc(input.Rules[:defaults], func(r policy.InputRule) bool { return r.ID == rule.ID })
		if builtin < 0 {
			input.Rules = append(input.Rules, rule)
			continue
		}
		if len(rule.Find) > 0 {
			l.addFaultAt(l.findNearest(path{"input", "deny"}.item(i).child("id")).value.at, "input.deny", "choose another id",
				"the built-in rule %s has a pattern, which find cannot extend", quote(rule.ID))
			continue
		}
		wide := &input.Rules[builtin]
		wide.Pattern = "(?:" + wide.Pattern + ")|(?:" + rule.Pattern + ")"
		wide.On = kindsOf(append(rule.On, wide.On...))
		if _, err := screen.Compile([]screen.Rule{wide.Rule}, input.MaxBytes); err != nil {
			l.addFaultAt(l.findNearest(path{"input", "deny"}.item(i).child("id")).value.at, "input.deny",
				"choose another id",
				"the built-in rule %s cannot be widened by this one: %s", quote(rule.ID), err)
		}
	}
}

// kindsOf returns kinds of request in the order of a bundle, each once.
func kindsOf(on []string) []string {
	kinds := []string{policy.KindAsk, policy.KindCall, policy.KindAgent}
	return slices.DeleteFunc(kinds, func(kind string) bool { return !slices.Contains(on, kind) })
}

// resolvePath returns the path that a path in the file means.
func (f *file) resolvePath(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.name), path)
}

// reasonOf returns the text of an error without the path, which the message already has.
func reasonOf(err error) string {
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		return inner.Err.Error()
	}
	return err.Error()
}

// readNamed returns the content of the file with this name. The configuration names the file at the
// path at.
func (l *loader) readNamed(at path, name, remedy string) (text []byte, ok bool) {
	text, err := l.open(name)
	if err != nil {
		l.addFault(at, cmp.Or(remedy, "correct the path, which is relative to the folder of "+filepath.Base(l.name)+
			", or create the file"),
			"%s cannot be read: %s", name, reasonOf(err))
	}
	return text, err == nil
}

const allowlistRemedy = `the file is JSON, {"server": ["tool", …]}; {} allows nothing`

// A GroupList is the allowlist file of a group.
type GroupList struct{ Group, Path string }

// Dir returns the folder of the configuration file.
func (l *Loaded) Dir() string { return filepath.Dir(l.file.name) }

// Allowlists returns the paths of all allowlist files; the first is the default one.
func (l *Loaded) Allowlists() []string {
	paths := []string{l.AllowlistPath}
	for _, g := range l.GroupLists {
		paths = append(paths, g.Path)
	}
	return paths
}

// readAllowlists reads the default allowlist file, and those for groups. If override is not empty,
// it is the path of the only allowlist.
func (l *loader) readAllowlists(override string, closed bool) {
	keys, lists := []path{{"allowlist"}}, []GroupList{{"", l.resolvePath(l.Allowlist.Default)}}
	if l.findNearest(keys[0]).value.kind == isMap {
		keys[0] = keys[0].child("default")
		for _, g := range l.Allowlist.Groups {
			keys = append(keys, path{"allowlist", "groups", g.Name})
			lists = append(lists, GroupList{g.Name, l.resolvePath(g.Value)})
		}
	}

	if override != "" {
		lists = []GroupList{{"", override}}
	}

	// One unreadable list is enough to allow nothing.
	for _, list := range lists {
		if !closed {
			break
		}
		if l.out.Closed = l.checkAllowlist(list.Path); l.out.Closed != nil {
			return
		}
	}

	for i, list := range lists {
		l.addAllowlist(keys[i], list)
	}

	l.out.AllowlistPath, l.out.GroupLists = lists[0].Path, slices.Clip(lists[1:])
}

// checkAllowlist returns why an allowlist file cannot be used.
func (l *loader) checkAllowlist(name string) error {
	text, err := l.open(name)
	if err != nil {
		return err
	}
	_, _, err = readPins(name, text)
	return err
}

// addAllowlist adds the tools and the pins of one file. A tool has one pin for all groups.
func (l *loader) addAllowlist(at path, list GroupList) {
	text, ok := l.readNamed(at, list.Path, allowlistRemedy)
	if !ok {
		return
	}
	f, servers, err := readPins(list.Path, text)
	if l.addFaults(err) {
		return
	}

	c := &l.out.Content
	tools, pins := splitPins(servers)
	for i := range tools {
		tools[i].Group = list.Group
	}

	c.Allowlist = append(c.Allowlist, tools...)

	for _, p := range pins {
		switch other := policy.PinOf(c.Pins, p.Server, p.Tool); other {
		case "":
			c.Pins = append(c.Pins, p)
		case p.Definition:
		default:
			l.addFault(at, "pin it to the same definition, or in one file only",
				"%s pins %s %s to another definition than a file before it", list.Path, quote(p.Server), quote(p.Tool))
		}
	}

	for _, m := range f.root.members {
		l.warnUnknownServer(f, m.at, m.key)
	}
}

// warnUnknownServer warns about the name of a server that is not configured, which is often a typing
// error.
func (l *loader) warnUnknownServer(f *file, at place, name string) {
	names := l.Servers.names()
	if slices.Contains(names, name) {
		return
	}
	hint := Nearest(name, names)
	if hint != "" {
		hint = "; " + hint
	}
	l.addWarning(f, at, "no server %s is configured%s", quote(name), hint)
}

// readSchemas reads the operator's schemas of tools: the schemas for arguments, and the types of
// structured content.
func (l *loader) readSchemas() {
	c := &l.out.Content
	for _, server := range l.Servers {
		for _, tool := range server.Value.Schemas {
			if s := l.readToolSchema(path{"servers", server.Name, "schemas", tool.Name}, tool.Value, true); s != nil {
				c.Schemas = append(c.Schemas, policy.ToolSchema{Server: server.Name, Tool: tool.Name, Schema: s})
			}
		}
	}
	for _, server := range l.Outputs {
		for _, tool := range server.Value {
			if s := l.readToolSchema(path{"outputs", server.Name, tool.Name}, tool.Value, false); s != nil {
				c.Outputs = append(c.Outputs, policy.ToolSchema{Server: server.Name, Tool: tool.Name, Schema: s})
			}
		}
	}
}

// readToolSchema reads and compiles the schema file that the configuration names for a tool. It returns
// nil if the schema cannot be used. MCP accepts only objects as arguments.
func (l *loader) readToolSchema(at path, name string, arguments bool) jsontext.Value {
	name = l.resolvePath(name)
	text, ok := l.readNamed(at, name, "")
	if !ok {
		return nil
	}
	f, text := openFile(name, text, MaxFileBytes)
	if len(f.faults) == 0 {
		f.root = f.readJSON(text)
	}
	if len(f.faults) == 0 {
		if _, err := schema.Compile(text, schema.DefaultLimits()); err != nil {
			f.addFaultAt(f.root.refusedPlace(err), "", schemaRemedy(err), "%s", err)
		} else if arguments && f.root.textOf("type") != "object" {
			f.addFaultAt(f.root.at, "type", `write "type": "object"`, "the schema of a tool's arguments must have the type object")
		}
	}
	if l.addFaults(f.err()) {
		return nil
	}
	return canonicalJSON(text)
}

// schemaRemedy is the remedy for a schema that does not compile; empty if the error has it.
func schemaRemedy(err error) string {
	refused := (*schema.RefusedError)(nil)
	if !errors.As(err, &refused) {
		return ""
	}
	switch refused.Code {
	case schema.CodePatternRefused:
		return remedyPattern
	case schema.CodeNotASchema:
		return "write JSON Schema, see https://json-schema.org/draft/2020-12/schema"
	}
	return ""
}

// canonicalJSON returns the canonical form of JSON that was already read strictly.
func canonicalJSON(text []byte) jsontext.Value {
	doc, err := canonical.JSON(text)
	if err != nil {
		panic("config: a value that was read is not strict JSON: " + err.Error())
	}
	return doc
}

// refusedPlace returns the place in a schema that its refusal points to, or the schema's start.
func (n *node) refusedPlace(err error) place {
	refused := (*schema.RefusedError)(nil)
	if !errors.As(err, &refused) {
		return n.at
	}
	for name := range jsontext.Pointer(refused.Path).Tokens() {
		next := n.child(name)
		if next == nil {
			break
		}
		n = next.value
	}
	return n.at
}
