package fromtraces

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/config"
	"pgfsm/policy"
	"pgfsm/policy/canonical"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
)

// Names of the files of a bundle.
const (
	configName    = "pgfsm.yaml"
	allowlistName = "allowlist.json"
	riskName      = "risk.json"
	policyName    = "policy.json"
)

// unopened is the ledger of a bundle whose conditions ask for calls before: nobody opens it.
const unopened = "sqlite:unopened.db"

// A file is one file of a bundle, by its name in the bundle's folder.
type file struct {
	name string
	text []byte
}

// errSpelling means that a bundle holds what no configuration says.
var errSpelling = errors.New("no configuration says what the bundle holds")

// spell writes a bundle as the files that would be read as it, and reads them to see that this is so.
func spell(c *policy.Content) ([]file, error) {
	var files []file
	for i := range c.Grants {
		files = append(files, file{"grant-" + strconv.Itoa(i+1) + ".json", spellGrant(&c.Grants[i])})
	}
	files = append(files, file{allowlistName, spellAllowlist(c)})
	if c.Risk != nil {
		files = append(files, file{riskName, spellRisk(c.Risk)})
	}
	if c.Policy != nil {
		files = append(files, file{policyName, spellPolicy(c.Policy)})
	}
	var err error
	for _, ledger := range []string{"", unopened} { // what asks for calls before is read with a ledger only
		all := append(slices.Clip(files), file{configName, spellConfig(c, ledger)})
		if err = reads(all, c); err == nil {
			return all, nil
		}
	}
	return nil, err
}

// reads reads the files as a configuration and compares what they mean with what they should.
func reads(files []file, want *policy.Content) error {
	loaded, err := config.Load(configName, func(path string) ([]byte, error) {
		i := slices.IndexFunc(files, func(f file) bool { return f.name == path })
		if i < 0 {
			return nil, fmt.Errorf("there is no %s", path)
		}
		return files[i].text, nil
	}, config.Overrides{})
	if err != nil {
		return fmt.Errorf("%w: %w", errSpelling, err)
	}
	got := loaded.Content
	got.Grants = append(slices.Clone(got.Grants), policy.Grant{}) // divide takes the last one away
	said := divide(&got)
	a, err := canonical.Marshal(&said.content)
	if err != nil {
		return err
	}
	b, err := canonical.Marshal(want)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%w: what is read back is another one", errSpelling)
	}
	return nil
}

// object writes an object whose members stand in the order in which they come. Members without a value are left out.
type object []byte

func (o object) raw(name string, value []byte) object {
	if value == nil {
		return o
	}
	if len(o) > 0 {
		o = append(o, ',')
	}
	return append(append(canonical.AppendText(o, name), ':'), value...)
}

func (o object) text(name, value string) object {
	if value == "" {
		return o
	}
	return o.raw(name, canonical.AppendText(nil, value))
}

func (o object) number(name string, n int64) object {
	return o.raw(name, strconv.AppendInt(nil, n, 10))
}

func (o object) millis(name string, n int64) object {
	return o.text(name, strconv.FormatInt(n, 10)+"ms")
}

func (o object) end() []byte { return append(append([]byte{'{'}, o...), '}') }

// list writes a list.
func list[T any](all []T, each func(*T) []byte) []byte {
	b := []byte{'['}
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, each(&all[i])...)
	}
	return append(b, ']')
}

func texts(all []string) []byte {
	return list(all, func(s *string) []byte { return canonical.AppendText(nil, *s) })
}

// page indents a document for people.
func page(doc []byte) []byte {
	v := jsontext.Value(doc)
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		return append(doc, '\n') // what is read back will say why
	}
	return append(v, '\n')
}

func spellConfig(c *policy.Content, ledger string) []byte {
	var servers, roles object
	for _, s := range c.Servers {
		servers = servers.raw(s.Name, object{}.text("type", s.Type).text("url", s.URL).end())
	}
	for _, r := range c.Roles {
		roles = roles.raw(r.Role, texts(r.Actors))
	}
	o := object{}.number("version", 1).text("env", c.Env).raw("servers", servers.end()).text("allowlist", allowlistName)
	if len(c.Grants) > 0 {
		names := make([]string, len(c.Grants))
		for i := range names {
			names[i] = "grant-" + strconv.Itoa(i+1) + ".json"
		}
		o = o.raw("grants", texts(names))
	}
	if c.Risk != nil {
		o = o.text("risk", riskName)
	}
	if c.Policy != nil {
		o = o.text("policy", policyName)
	}
	if len(c.Roles) > 0 {
		o = o.raw("roles", roles.end())
	}
	o = o.text("ledger", ledger)
	o = o.raw("input", spellInput(&c.Input)).raw("planner", object{}.text("mode", c.Planner.Mode).end())
	o = o.raw("summary", object{}.text("mode", c.Summary).end())
	o = o.raw("limits", object{}.number("plan_bytes", int64(c.Limits.PlanBytes)).
		number("arguments_bytes", int64(c.Limits.ArgumentsBytes)).number("json_depth", int64(c.Limits.JSONDepth)).
		number("result_bytes", int64(c.Limits.ResultBytes)).millis("run_timeout", c.Limits.RunTimeout).end())
	return page(o.end())
}

// spellInput says the built-in rules by their name, where they are those of this version and come first.
func spellInput(in *policy.Input) []byte {
	rules, defaults := in.Rules, "false"
	if own := policy.DefaultRules(); len(rules) >= len(own) && slices.EqualFunc(rules[:len(own)], own, policy.InputRule.Equal) {
		rules, defaults = rules[len(own):], "true"
	}
	return object{}.raw("defaults", []byte(defaults)).number("max_bytes", int64(in.MaxBytes)).
		raw("deny", list(rules, func(r *policy.InputRule) []byte {
			return object{}.text("id", r.ID).text("pattern", r.Pattern).text("reason", r.Reason).raw("on", texts(r.On)).end()
		})).end()
}

func spellAllowlist(c *policy.Content) []byte {
	var o object
	for _, a := range c.Allowlist {
		var pinned object
		pins := 0
		for _, tool := range a.Tools {
			var entry object
			i := slices.IndexFunc(c.Pins, func(p policy.Pin) bool { return p.Server == a.Server && p.Tool == tool })
			if i >= 0 {
				entry = entry.text("pin", string(c.Pins[i].Definition))
				pins++
			}
			pinned = pinned.raw(tool, entry.end())
		}
		if pins == 0 {
			o = o.raw(a.Server, texts(a.Tools))
		} else {
			o = o.raw(a.Server, pinned.end())
		}
	}
	return page(o.end())
}

// spellGrant writes each constraint as the schema that it is. Several of one place are told apart by the keys that a
// place has.
func spellGrant(g *policy.Grant) []byte {
	var servers object
	for i := 0; i < len(g.Tools); {
		server := g.Tools[i].Server
		var tools object
		for ; i < len(g.Tools) && g.Tools[i].Server == server; i++ {
			tools = tools.raw(g.Tools[i].Tool, spellGranted(&g.Tools[i]))
		}
		servers = servers.raw(server, tools.end())
	}
	return page(object{}.number("version", config.GrantVersion).raw("tools", servers.end()).end())
}

func spellGranted(t *policy.Granted) []byte {
	var o, args object
	if t.Calls != nil {
		o = o.number("calls", int64(*t.Calls))
	}
	for i := 0; i < len(t.Args); {
		at := t.Args[i].At
		var place object
		for ; i < len(t.Args) && t.Args[i].At == at; i++ {
			place = place.raw(constraint(t.Args[i].Schema))
		}
		args = args.raw(at, place.end())
	}
	if len(t.Args) > 0 {
		o = o.raw("args", args.end())
	}
	return o.end()
}

// constraint is the key of a grant that means a schema, and its value.
func constraint(schema jsontext.Value) (key string, value []byte) {
	members := 0
	for name, v := range canonical.Members(schema) {
		members++
		switch name {
		case "const":
			key, value = "eq", v
		case "enum":
			key, value = "in", v
		}
	}
	if members != 1 || key == "" {
		return "schema", schema
	}
	return key, value
}

func spellRisk(c *risk.Content) []byte {
	var modes, vars, by object
	for _, m := range c.Modes {
		modes = modes.number(m.Name, int64(m.Baseline))
	}
	for _, v := range c.Vars {
		vars = vars.text(v.Name, v.Expr)
	}
	for _, t := range c.ModeByScore {
		by = by.text(t.Mode, t.When)
	}
	return page(object{}.number("version", config.RiskVersion).raw("modes", modes.end()).text("initial", c.Initial).raw("vars", vars.end()).
		raw("rules", list(c.Rules, spellRule)).raw("set_mode_by_score", by.end()).end())
}

func spellRule(r *risk.Rule) []byte {
	when := object{}.text("server", r.Match.Server).text("tool", r.Match.Tool).text("env", r.Match.Env)
	var args object
	for i := 0; i < len(r.Args); {
		path := r.Args[i].Path
		var ops object
		for ; i < len(r.Args) && r.Args[i].Path == path; i++ {
			ops = ops.raw(r.Args[i].Op, r.Args[i].Value)
		}
		args = args.raw(path, ops.end())
	}
	if len(r.Args) > 0 {
		when = when.raw("args", args.end())
	}
	o := object{}.text("id", r.ID).raw("when", when.end()).text("set_mode", r.SetMode)
	if r.Escalate {
		o = o.text("escalate", "one_level")
	}
	return o.text("score_expr", r.ScoreExpr).text("reason", r.Reason).end()
}

func spellPolicy(c *rules.Content) []byte {
	return page(object{}.number("version", config.PolicyVersion).raw("policies", list(c.Policies, func(p *rules.Policy) []byte {
		o := object{}.text("id", p.ID).
			raw("match", object{}.text("server", p.Match.Server).text("tool", p.Match.Tool).text("env", p.Match.Env).end()).
			text("when", p.When).text("effect", p.Effect).text("deny", p.Deny).text("require_approval_if", p.RequireApprovalIf).
			text("reason", p.Reason).text("mode", p.Mode)
		if len(p.Approvers) > 0 {
			o = o.raw("approvers", texts(p.Approvers))
		}
		if p.Quorum > 0 {
			o = o.number("quorum", int64(p.Quorum))
		}
		if p.Expires > 0 {
			o = o.millis("expires", p.Expires)
		}
		return o.end()
	})).end())
}
