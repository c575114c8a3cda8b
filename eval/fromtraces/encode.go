package fromtraces

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
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

// unopened is the ledger of every bundle: settings needs one for conditions that count earlier calls. Nobody opens it.
const unopened = "sqlite:unopened.db"

// A file is one file of a bundle, by its name in the bundle's folder.
type file struct {
	name string
	text []byte
}

// errNoConfig means that no configuration has the bundle's content.
var errNoConfig = errors.New("no configuration has the bundle's content")

// encode writes the configuration of a bundle, and reads it back to compare.
func encode(c *policy.Content) (files []file, err error) {
	parts := object{{allowlistName, encodeAllowlist(c)}, {configName, encodeConfig(c)}}
	for i := range c.Grants {
		parts = parts.put(grantName(i), encodeGrant(&c.Grants[i]))
	}
	if c.Risk != nil {
		parts = parts.put(riskName, encodeRisk(c.Risk))
	}
	if c.Policy != nil {
		parts = parts.put(policyName, encodePolicy(c.Policy))
	}
	for _, p := range parts {
		text, err := textOf(p.value)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNoConfig, err)
		}
		files = append(files, file{p.name, text})
	}
	return files, compare(files, c)
}

func grantName(i int) string { return "grant-" + strconv.Itoa(i+1) + ".json" }

// compare reads the files as a configuration and compares its content with the bundle's.
func compare(files []file, want *policy.Content) error {
	loaded, err := config.Load(configName, func(path string) ([]byte, error) {
		i := slices.IndexFunc(files, func(f file) bool { return f.name == path })
		if i < 0 {
			return nil, fmt.Errorf("there is no %s", path)
		}
		return files[i].text, nil
	}, config.Overrides{})
	if err != nil {
		return fmt.Errorf("%w: %w", errNoConfig, err)
	}
	got := loaded.Content
	got.Grants = append(slices.Clone(got.Grants), policy.Grant{}) // divide takes the last one away
	read := divide(&got)
	a, err := canonical.Marshal(&read.content)
	if err != nil {
		return err
	}
	b, err := canonical.Marshal(want)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return fmt.Errorf("%w: the content that is read back differs", errNoConfig)
	}
	return nil
}

// An object is a JSON object whose members keep their order. Members that are "" or an empty list are left out.
type object []member

type member struct {
	name  string
	value any
}

func (o object) put(name string, value any) object { return append(o, member{name, value}) }

// MarshalJSONTo implements [json.MarshalerTo].
func (o object) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, m := range o {
		if list, ok := m.value.([]string); m.value == any("") || ok && len(list) == 0 {
			continue
		}
		if err := enc.WriteToken(jsontext.String(m.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, m.value); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// textOf is a value as a file.
func textOf(value any) ([]byte, error) {
	text, err := json.Marshal(value, json.Deterministic(true), jsontext.WithIndent("  "))
	return append(text, '\n'), err
}

func millis(n int64) string { return strconv.FormatInt(n, 10) + "ms" }

func encodeConfig(c *policy.Content) object {
	servers, roles := object{}, object{}
	for _, s := range c.Servers {
		servers = servers.put(s.Name, object{{"type", s.Type}, {"url", s.URL}})
	}
	for _, r := range c.Roles {
		roles = roles.put(r.Role, r.Actors)
	}
	var grants []string
	for i := range c.Grants {
		grants = append(grants, grantName(i))
	}
	o := object{{"version", 1}, {"env", c.Env}, {"servers", servers}, {"allowlist", allowlistName}, {"grants", grants}}
	if c.Risk != nil {
		o = o.put("risk", riskName)
	}
	if c.Policy != nil {
		o = o.put("policy", policyName)
	}
	if len(roles) > 0 {
		o = o.put("roles", roles)
	}
	return append(o, object{
		{"ledger", unopened}, {"input", encodeInput(&c.Input)}, {"planner", object{{"mode", c.Planner.Mode}}}, {"summary", object{{"mode", c.Summary}}},
		{"limits", object{
			{"plan_bytes", c.Limits.PlanBytes}, {"arguments_bytes", c.Limits.ArgumentsBytes}, {"json_depth", c.Limits.JSONDepth},
			{"result_bytes", c.Limits.ResultBytes}, {"run_timeout", millis(c.Limits.RunTimeout)},
		}},
	}...)
}

// encodeInput writes the built-in rules as defaults, if they are those of this version and come first.
func encodeInput(in *policy.Input) object {
	own, defaults := in.Rules, false
	if builtin := policy.DefaultRules(); len(own) >= len(builtin) && slices.EqualFunc(own[:len(builtin)], builtin, policy.InputRule.Equal) {
		own, defaults = own[len(builtin):], true
	}
	deny := []object{}
	for _, r := range own {
		deny = append(deny, object{{"id", r.ID}, {"pattern", r.Pattern}, {"reason", r.Reason}, {"on", r.On}})
	}
	return object{{"defaults", defaults}, {"max_bytes", in.MaxBytes}, {"deny", deny}}
}

func encodeAllowlist(c *policy.Content) object {
	o := object{}
	for _, a := range c.Allowlist {
		tools := object{}
		for _, tool := range a.Tools {
			entry := object{}
			if i := slices.IndexFunc(c.Pins, func(p policy.Pin) bool { return p.Server == a.Server && p.Tool == tool }); i >= 0 {
				entry = entry.put("pin", string(c.Pins[i].Definition))
			}
			tools = tools.put(tool, entry)
		}
		o = o.put(a.Server, tools)
	}
	return o
}

// encodeGrant writes tools by server and constraints by place. Several constraints of one place have different keys.
func encodeGrant(g *policy.Grant) object {
	servers := object{}
	for i := 0; i < len(g.Tools); {
		server, tools := g.Tools[i].Server, object{}
		for ; i < len(g.Tools) && g.Tools[i].Server == server; i++ {
			t, entry := &g.Tools[i], object{}
			if t.Calls != nil {
				entry = entry.put("calls", *t.Calls)
			}
			args := object{}
			for j := 0; j < len(t.Args); {
				at, place := t.Args[j].At, object{}
				for ; j < len(t.Args) && t.Args[j].At == at; j++ {
					place = append(place, constraint(t.Args[j].Schema))
				}
				args = args.put(at, place)
			}
			if len(args) > 0 {
				entry = entry.put("args", args)
			}
			tools = tools.put(t.Tool, entry)
		}
		servers = servers.put(server, tools)
	}
	return object{{"version", config.GrantVersion}, {"tools", servers}}
}

// constraint writes a schema with the shortest key of a grant.
func constraint(schema jsontext.Value) member {
	short, members := member{}, 0
	for name, v := range canonical.Members(schema) {
		members++
		switch name {
		case "const":
			short = member{"eq", v}
		case "enum":
			short = member{"in", v}
		}
	}
	if members != 1 || short.name == "" {
		return member{"schema", schema}
	}
	return short
}

func encodeRisk(c *risk.Content) object {
	modes, vars, thresholds, all := object{}, object{}, object{}, []object{}
	for _, m := range c.Modes {
		modes = modes.put(m.Name, m.Baseline)
	}
	for _, v := range c.Vars {
		vars = vars.put(v.Name, v.Expr)
	}
	for _, t := range c.ModeByScore {
		thresholds = thresholds.put(t.Mode, t.When)
	}
	for i := range c.Rules {
		all = append(all, encodeRule(&c.Rules[i]))
	}
	return object{{"version", config.RiskVersion}, {"modes", modes}, {"initial", c.Initial}, {"vars", vars}, {"rules", all}, {"set_mode_by_score", thresholds}}
}

func encodeRule(r *risk.Rule) object {
	when := object{{"server", r.Match.Server}, {"tool", r.Match.Tool}, {"env", r.Match.Env}}
	args := object{}
	for i := 0; i < len(r.Args); {
		path, ops := r.Args[i].Path, object{}
		for ; i < len(r.Args) && r.Args[i].Path == path; i++ {
			ops = ops.put(r.Args[i].Op, r.Args[i].Value)
		}
		args = args.put(path, ops)
	}
	if len(args) > 0 {
		when = when.put("args", args)
	}
	o := object{{"id", r.ID}, {"when", when}, {"set_mode", r.SetMode}}
	if r.Escalate {
		o = o.put("escalate", "one_level")
	}
	return append(o, object{{"score_expr", r.ScoreExpr}, {"reason", r.Reason}}...)
}

func encodePolicy(c *rules.Content) object {
	all := []object{}
	for _, p := range c.Policies {
		o := object{
			{"id", p.ID}, {"match", object{{"server", p.Match.Server}, {"tool", p.Match.Tool}, {"env", p.Match.Env}}},
			{"when", p.When}, {"effect", p.Effect}, {"deny", p.Deny}, {"require_approval_if", p.RequireApprovalIf},
			{"reason", p.Reason}, {"mode", p.Mode}, {"approvers", p.Approvers},
		}
		if p.Quorum > 0 {
			o = o.put("quorum", p.Quorum)
		}
		if p.Expires > 0 {
			o = o.put("expires", millis(p.Expires))
		}
		all = append(all, o)
	}
	return object{{"version", config.PolicyVersion}, {"policies", all}}
}
