package config

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pgfsm/policy"
)

// Bounds of limits.rate.
const (
	MaxPerMinute = 1_000_000
	MaxAtOnce    = 10_000
)

// NoLimit is in a [RateLimit] for what the file does not limit.
const NoLimit = math.MaxInt

// A RateLimit bounds how often something may be used. The zero RateLimit allows nothing.
type RateLimit struct {
	PerMinute int // on average
	Burst     int // may come together before PerMinute bounds them
	AtOnce    int // may be under way together
}

// Rate is limits.rate: how often agents may call.
type Rate struct {
	Identity RateLimit // of each caller
	Groups   []GroupRate
	Servers  []ServerRate // a server's calls, of all callers together
	Tools    []ToolRate   // a tool's calls, of all callers together
}

// A GroupRate is the limit of each caller in a group, in place of [Rate].Identity. The first group that a caller is in counts.
type GroupRate struct {
	Group string
	RateLimit
}

// A ServerRate is the limit of a server.
type ServerRate struct {
	Server string
	RateLimit
}

// A ToolRate is the limit of a tool.
type ToolRate struct {
	Server, Tool string
	RateLimit
}

var rateLimitShape = &shape{form: object, cross: crossRateLimit, keys: []key{
	{name: "per_minute", shape: &shape{form: integer, min: 1, max: MaxPerMinute}, example: "60",
		doc: "The average number in a minute. Without this key, it is not limited."},
	{name: "burst", shape: &shape{form: integer, min: 1, max: MaxPerMinute}, example: "10",
		doc: "How many may come together before `per_minute` bounds them. Default: `per_minute`."},
	{name: "at_once", shape: &shape{form: integer, min: 1, max: MaxAtOnce}, example: "4",
		doc: "The maximum number of calls under way at the same time. Without this key, it is not limited."},
}}

var rateShape = &shape{form: object, keys: []key{
	{name: "identity", shape: rateLimitShape, absent: true, example: "{per_minute: 120, burst: 30, at_once: 4}",
		doc: "The limit of each caller. `per_minute` counts its HTTP requests, before the gateway reads them."},
	{name: "groups", shape: &shape{form: table, max: MaxRoles, name: groupName, each: rateLimitShape, what: "group"},
		example: "{oncall: {per_minute: 600}}",
		doc:     "The limit of each caller in a group of their identity provider, in place of the whole of `identity`. The first group in this list counts."},
	{name: "servers", shape: &shape{form: table, max: policy.MaxServers, name: plainName, each: rateLimitShape, what: "server"},
		example: "{crm: {per_minute: 300, at_once: 8}}",
		doc:     "The limit of a server's calls, of all callers together."},
	{name: "tools", shape: &shape{form: table, max: policy.MaxServers, name: plainName, what: "server",
		each: &shape{form: table, max: MaxTools, name: toolName, each: rateLimitShape, what: "tool"}},
		example: "{crm: {delete_customer: {per_minute: 5}}}",
		doc:     "The limit of a tool's calls, of all callers together. The limit of its server holds as well."},
}}

// crossRateLimit refuses a limit that limits nothing.
func crossRateLimit(j *judge, n *node, path string) {
	switch burst := n.member("burst"); {
	case n.get("per_minute") != nil:
	case burst != nil:
		j.src.fault(burst.at, join(path, "burst"), "write per_minute as well", "%s does not go without per_minute", join(path, "burst"))
	case n.get("at_once") == nil:
		j.src.fault(n.at, path, "write per_minute, at_once or both", "%s has neither per_minute nor at_once", path)
	}
}

// rate reads limits.rate. The allowlist files were read before.
func (l *loader) rate(allowlist string) {
	n := l.file.root.get("limits").get("rate")
	if n == nil {
		return
	}
	r := &Rate{Identity: rateLimit(n.get("identity"))}
	for _, m := range n.fields("groups") {
		r.Groups = append(r.Groups, GroupRate{m.key, rateLimit(m.value)})
	}
	for _, m := range n.fields("servers") {
		r.Servers = append(r.Servers, ServerRate{m.key, rateLimit(m.value)})
	}
	for _, server := range n.fields("tools") {
		for _, m := range server.value.members {
			r.Tools = append(r.Tools, ToolRate{server.key, m.key, rateLimit(m.value)})
			if allowlist == "" && l.out.Closed == nil {
				l.knownTool(server.key, m)
			}
		}
	}
	l.out.Serve.Rate = r
}

// rateLimit is the limit at n; nil has none.
func rateLimit(n *node) RateLimit {
	number := func(key string, otherwise int) int {
		if n.get(key) == nil {
			return otherwise
		}
		return n.integer(key)
	}
	perMinute := number("per_minute", NoLimit)
	return RateLimit{PerMinute: perMinute, Burst: number("burst", perMinute), AtOnce: number("at_once", NoLimit)}
}

// knownTool refuses the limit of a tool that no allowlist file names: a name that is written wrongly would limit nothing.
func (l *loader) knownTool(server string, m member) {
	var names []string
	for _, a := range l.out.Content.Allowlist {
		if a.Server == server {
			names = append(names, a.Tools...)
		}
	}
	if slices.Contains(names, m.key) {
		return
	}
	l.file.src.fault(m.at, "limits.rate.tools."+server+"."+m.key, cmp.Or(Nearest(m.key, names), "allow the tool, or remove the limit"),
		"no allowlist file allows the tool %s of %s", quote(m.key), quote(server))
}

// unlikelyRate warns of a tool's limit that its server's limit never lets it reach.
func (l *loader) unlikelyRate() {
	r := l.out.Serve.Rate
	if r == nil {
		return
	}
	for _, t := range r.Tools {
		i := slices.IndexFunc(r.Servers, func(s ServerRate) bool { return s.Server == t.Server })
		if i < 0 {
			continue
		}
		at, above := l.file.root.get("limits").get("rate").get("tools").get(t.Server).get(t.Tool), []string{}
		for _, k := range []struct {
			name         string
			tool, server int
		}{{"per_minute", t.PerMinute, r.Servers[i].PerMinute}, {"at_once", t.AtOnce, r.Servers[i].AtOnce}} {
			if k.tool != NoLimit && k.tool > k.server {
				above = append(above, k.name)
			}
		}
		if len(above) > 0 {
			l.warn(l.file.src, at.at, "the limit of the tool %s of %s is above that of its server: %s", quote(t.Tool), quote(t.Server), strings.Join(above, ", "))
		}
	}
}
