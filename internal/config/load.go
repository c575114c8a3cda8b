package config

import (
	"bytes"
	"crypto"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/internal/canonical"
	"pgfsm/policy"
	"pgfsm/policy/schema"
	"pgfsm/policy/screen"
)

// Open returns the content of the file at path. This package reads files only through an Open, so the caller decides what a path means and which files are
// trusted; see [Insecure].
type Open func(path string) ([]byte, error)

// Overrides replace values of the file, if they are not empty. Their paths are not relative to the file.
type Overrides struct {
	Allowlist string // the path of the allowlist
	TracesDir string
	Summary   string   // a summary mode
	Planner   string   // a planner mode
	LLM       *LLM     // a model, used only where the file names none
	Grants    []string // files of grants for one run, besides the file's
	Closed    bool     // an allowlist that cannot be read allows nothing; [Loaded.Closed] says why
}

// Loaded is a configuration with every file it names, ready to be compiled.
type Loaded struct {
	Content       policy.Content
	Servers       []Upstream  // in the order of Content.Servers
	AllowlistPath string      // what was read as the allowlist
	GroupLists    []GroupList // the allowlists of groups, in the order of the file
	ClientFile    string      // of mcp_servers; empty if the configuration names none
	TracesDir     string
	Ledger        string // the ledger's URL without a password, with a path as found from the working directory; empty if the configuration names none
	Checkpoints   Checkpoints
	Hooks         []Hook   // secrets as written, until [Loaded.ResolveHooks] gives them
	Closed        error    // why the allowlist counts as empty; nil if it was read
	Serve         Serve    // settings of the gateway; only Content judges calls
	OTLP          *OTLP    // as written, until [Loaded.Resolve] resolves it; nil: no spans are exported
	Identity      Identity // secrets as written, until [Loaded.ResolveIdentity] gives them
	Warnings      []string // file:line:col: accepted, but probably a mistake
	Literals      []string // file:line:col: secrets that are no references
	RiskPlaces    *Places  // of Content.Risk; nil if there is none
	PolicyPlaces  *Places  // of Content.Policy; nil if there is none

	file    *File
	origins []origin // of Servers
	key     *node    // of the model, as the file has it; nil if there is none
	ledger  *node    // as the file has it; nil if there is none
	ambient string   // the model's key, as the environment has it
}

// Upstream is the connection to a server. Values are as written, with references, until [Loaded.Resolve] resolves them.
type Upstream struct {
	Name, Type, URL string
	Command         string // a path if it holds a separator, else a name for PATH
	Args            []string
	Headers, Env    []Pair
	Auth            *ClientCredentials // nil: none

	// In milliseconds, see [policy.Server].
	ConnectTimeout, Timeout, TimeoutTotal int64

	IdleTimeout int64  // in milliseconds
	Sessions    string // [SessionsIdentity], [SessionsSession], [SessionsOne]
}

// ClientCredentials are those of a server.
type ClientCredentials struct {
	policy.ClientCredentials
	ClientSecret string
	Signer       crypto.Signer `json:"-"` // has the private key in place of a secret; from [Loaded.Resolve] on
}

// Pair is a header or an environment variable.
type Pair struct{ Name, Value string }

// Load reads the configuration at path name, and every file it names. The error is of type
// [Errors]; if the configuration itself has faults, Load does not read the files that it names.
func Load(name string, open Open, over Overrides) (*Loaded, error) {
	text, err := open(name)
	if err != nil {
		fault := &Error{File: name, Problem: "cannot be read: " + reason(err)}
		if errors.Is(err, fs.ErrNotExist) {
			fault.Remedy = initRemedy
		}
		return nil, Errors{fault}
	}
	f, err := Parse(name, text)
	if err != nil {
		return nil, err
	}
	l := &loader{file: f, open: open, out: &Loaded{file: f}}
	l.settings(over)
	l.servers()
	l.allowlists(over.Allowlist, over.Closed)
	l.rate(over.Allowlist)
	l.grants(over.Grants)
	l.schemas()
	l.out.Content.Risk, l.out.RiskPlaces = namedEntries(l, "risk", ReadRisk)
	l.out.Content.Policy, l.out.PolicyPlaces = namedEntries(l, "policy", ReadPolicy)
	l.roles()
	l.history()
	if err := f.src.err(); err != nil {
		l.faults = append(err.(Errors), l.faults...)
	}
	if len(l.faults) > 0 {
		return nil, l.faults
	}
	l.unlikely(over.Allowlist)
	return l.out, nil
}

type loader struct {
	file   *File
	open   Open
	out    *Loaded
	faults Errors // of the files that the configuration names
}

// outside notes a fault of a flag or an environment variable.
func (l *loader) outside(where, remedy, problem string, args ...any) {
	l.faults = append(l.faults, &Error{File: where, Problem: fmt.Sprintf(problem, args...), Remedy: remedy})
}

func (l *loader) warn(src *source, at place, format string, args ...any) {
	where := fmt.Sprintf("%s:%d:%d: ", src.name, at.line, at.col)
	l.out.Warnings = append(l.out.Warnings, where+fmt.Sprintf(format, args...))
}

// literal notes a secret that is no reference. reference is an example of one.
func (l *loader) literal(src *source, secret *node, what, reference string) {
	if secret != nil && isLiteral(secret.text) {
		l.out.Literals = append(l.out.Literals, fmt.Sprintf("%s:%d:%d: %s is a literal in the file; a secret should be a reference, like %s",
			src.name, secret.at.line, secret.at.col, what, reference))
	}
}

// settings copies the configuration's own settings.
func (l *loader) settings(over Overrides) {
	root, c := l.file.root, &l.out.Content
	c.Format, c.Env = policy.ContentFormat, root.str("env")
	l.planner(over)
	l.input(root.get("input"))
	c.Summary = root.get("summary").str("mode")
	if over.Summary != "" {
		c.Summary = over.Summary
	}
	limits := root.get("limits")
	c.Limits = policy.Limits{
		PlanBytes: limits.integer("plan_bytes"), ArgumentsBytes: limits.integer("arguments_bytes"), JSONDepth: limits.integer("json_depth"),
		ResultBytes: limits.integer("result_bytes"), RunTimeout: limits.millis("run_timeout"),
	}
	l.out.TracesDir = l.file.resolve(root.get("traces").str("dir"))
	if over.TracesDir != "" {
		l.out.TracesDir = over.TracesDir
	}
	if l.out.ledger = root.get("ledger"); l.out.ledger != nil {
		l.out.Ledger = LedgerName(ledgerIn(l.out.ledger.text, filepath.Dir(l.file.src.name)))
	}
	for _, hook := range root.get("approvals").list("hooks") {
		h := Hook{URL: hook.str("url"), Secret: hook.str("secret"), Events: hook.texts("events")}
		if h.Events == nil {
			h.Events = hookEvents()
		}
		l.literal(l.file.src, hook.get("secret"), "the secret of a web hook", "${env:NAME}")
		l.out.Hooks = append(l.out.Hooks, h)
	}
	l.checkpoints()
	l.serve()
	l.telemetry()
	l.identity()
}

// input writes the default rules out. A rule of the operator's with the id of a default rule widens that rule, so that a rule's name never removes a
// default rule.
func (l *loader) input(n *node) {
	in := &l.out.Content.Input
	in.MaxBytes = n.integer("max_bytes")
	index := make(map[string]int)
	if n.get("defaults").text == "true" {
		in.Rules = policy.DefaultRules()
		for i, r := range in.Rules {
			index[r.ID] = i
		}
	}
	for _, d := range n.list("deny") {
		rule := policy.InputRule{Rule: screen.Rule{ID: d.str("id"), Pattern: d.str("pattern"), Reason: d.str("reason")}, On: kindsOf(nil, d)}
		if i, taken := index[rule.ID]; taken {
			in.Rules[i].Pattern = "(?:" + in.Rules[i].Pattern + ")|(?:" + rule.Pattern + ")"
			in.Rules[i].On = kindsOf(in.Rules[i].On, d)
			if _, err := screen.Compile([]screen.Rule{in.Rules[i].Rule}, in.MaxBytes); err != nil {
				l.file.src.fault(d.get("id").at, "input.deny", "choose another id",
					"the built-in rule %s cannot be widened by this one: %s", quote(rule.ID), err)
			}
			continue
		}
		in.Rules = append(in.Rules, rule)
	}
}

// kindsOf adds the kinds of request that a rule of deny judges, and returns all in the order of inputKinds.
func kindsOf(on []string, rule *node) []string {
	on = slices.Clone(on)
	for _, item := range rule.list("on") {
		on = append(on, item.text)
	}
	if rule.get("on") == nil {
		on = append(on, policy.KindAsk)
	}
	return slices.DeleteFunc(slices.Clone(inputKinds), func(kind string) bool { return !slices.Contains(on, kind) })
}

// json returns n in canonical form.
func (n *node) json() jsontext.Value {
	var b bytes.Buffer
	if err := n.writeJSON(jsontext.NewEncoder(&b)); err != nil {
		panic("settings: a value that was judged does not encode: " + err.Error())
	}
	doc, err := canonical.JSON(b.Bytes())
	if err != nil {
		panic("settings: a value that was judged is not strict JSON: " + err.Error())
	}
	return doc
}

// reason is an error without the path, which the message already has.
func reason(err error) string {
	if inner := (*fs.PathError)(nil); errors.As(err, &inner) {
		return inner.Err.Error()
	}
	return err.Error()
}

// named reads a file that the configuration names at n. It returns nil and notes the fault if it cannot be read.
func (l *loader) named(n *node, key, path, remedy string) (*source, []byte) {
	text, ok := l.opened(n, key, path, remedy)
	if !ok {
		return nil, nil
	}
	src, text := checkText(path, text)
	if err := src.err(); err != nil {
		l.faults = append(l.faults, err.(Errors)...)
		return nil, nil
	}
	return src, text
}

// opened is the content of a file that the configuration names at n.
func (l *loader) opened(n *node, key, path, remedy string) (text []byte, ok bool) {
	text, err := l.open(path)
	if err != nil {
		l.file.src.fault(n.at, key, remedy, "%s cannot be read: %s", path, reason(err))
	}
	return text, err == nil
}

const allowlistRemedy = `the file is JSON, {"server": ["tool", …]}; {} allows nothing`

// allowlists reads the allowlist file for everybody, and those for groups. override is the path of the only one.
func (l *loader) allowlists(override string, closed bool) {
	type file struct {
		at               *node
		key, path, group string
	}
	at := l.file.root.get("allowlist")
	all := []file{{at, "allowlist", override, ""}}
	switch {
	case override != "":
	case at.kind == isMap:
		all[0] = file{at.get("default"), "allowlist.default", l.file.resolve(at.str("default")), ""}
		for _, m := range at.fields("groups") {
			all = append(all, file{m.value, "allowlist.groups." + m.key, l.file.resolve(m.value.text), m.key})
		}
	default:
		all[0].path = l.file.resolve(at.text)
	}
	if closed {
		for _, f := range all {
			if l.out.Closed = l.unreadable(f.path); l.out.Closed != nil {
				return
			}
		}
	}
	for _, f := range all {
		l.allowlist(f.at, f.key, f.path, f.group)
	}
	l.out.AllowlistPath = all[0].path
	for _, f := range all[1:] {
		l.out.GroupLists = append(l.out.GroupLists, GroupList{f.group, f.path})
	}
}

// A GroupList is the allowlist file of a group.
type GroupList struct{ Group, Path string }

// Allowlists returns the paths of all allowlist files; the first is the default one.
func (l *Loaded) Allowlists() []string {
	all := []string{l.AllowlistPath}
	for _, g := range l.GroupLists {
		all = append(all, g.Path)
	}
	return all
}

// allowlist adds the tools and the pins of one file. A tool has one pin, whoever may call it.
func (l *loader) allowlist(at *node, key, path, group string) {
	src, text := l.named(at, key, path, allowlistRemedy)
	if src == nil {
		return
	}
	root := readJSON(src, text)
	src.judge(root, allowlist)
	if err := src.err(); err != nil {
		l.faults = append(l.faults, err.(Errors)...)
		return
	}
	c := &l.out.Content
	tools, pins := root.allowlist()
	for i := range tools {
		tools[i].Group = group
	}
	c.Allowlist = append(c.Allowlist, tools...)
	for _, p := range pins {
		switch other := policy.PinOf(c.Pins, p.Server, p.Tool); other {
		case "":
			c.Pins = append(c.Pins, p)
		case p.Definition:
		default:
			l.file.src.fault(at.at, key, "pin it to the same definition, or in one file only",
				"%s pins %s %s to another definition than a file before it", path, quote(p.Server), quote(p.Tool))
		}
	}
	for _, m := range root.members {
		l.unknownServer(src, m)
	}
}

// unreadable says why the file at path is no allowlist; nil if it is one.
func (l *loader) unreadable(path string) error {
	text, err := l.open(path)
	if err == nil {
		_, err = readPins(path, text)
	}
	return err
}

// schemas reads the operator's schemas of tools: those that judge arguments, and the types of structured content.
func (l *loader) schemas() {
	root, c := l.file.root, &l.out.Content
	for _, server := range root.fields("servers") {
		for _, tool := range server.value.fields("schemas") {
			if s := l.toolSchema(server.key, tool, "servers."+server.key+".schemas."+tool.key, isArguments); s != nil {
				c.Schemas = append(c.Schemas, *s)
			}
		}
	}
	for _, server := range root.fields("outputs") {
		for _, tool := range server.value.members {
			if s := l.toolSchema(server.key, tool, "outputs."+server.key+"."+tool.key, nil); s != nil {
				c.Outputs = append(c.Outputs, *s)
			}
		}
	}
}

// isArguments notes a fault of a schema that MCP does not accept as an inputSchema.
func isArguments(src *source, root *node) {
	if root.str("type") != "object" {
		src.fault(root.at, "type", `write "type": "object"`, "the schema of a tool's arguments must have the type object")
	}
}

// toolSchema reads and compiles the schema in the file that the configuration names for a tool; nil if it cannot be used.
func (l *loader) toolSchema(server string, tool member, key string, check func(*source, *node)) *policy.ToolSchema {
	path := l.file.resolve(tool.value.text)
	src, text := l.named(tool.value, key, path, "")
	if src == nil {
		return nil
	}
	root := readJSON(src, text)
	if len(src.faults) == 0 {
		if _, err := schema.Compile(text, schema.DefaultLimits()); err != nil {
			src.fault(root.pointed(err), "", "", "%s", err)
		} else if check != nil {
			check(src, root)
		}
	}
	if err := src.err(); err != nil {
		l.faults = append(l.faults, err.(Errors)...)
		return nil
	}
	doc, err := canonical.JSON(text)
	if err != nil { // readJSON has refused it already
		panic("settings: " + path + ": " + err.Error())
	}
	return &policy.ToolSchema{Server: server, Tool: tool.key, Schema: doc}
}

// pointed is where in a schema its refusal points, or where the schema begins.
func (n *node) pointed(err error) place {
	refused := (*schema.RefusedError)(nil)
	if !errors.As(err, &refused) {
		return n.at
	}
	for name := range jsontext.Pointer(refused.Path).Tokens() {
		next := n.get(name)
		if i, err := strconv.Atoi(name); err == nil && n.kind == isList && i >= 0 && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil {
			break
		}
		n = next
	}
	return n.at
}
