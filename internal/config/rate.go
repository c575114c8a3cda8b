package config

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// NoLimit is the value in a [RateLimit] for a missing limit.
const NoLimit = math.MaxInt

// A RateLimit bounds how often something may be used. The zero RateLimit allows nothing.
type RateLimit struct {
	PerMinute int // average rate
	Burst     int // uses at once before PerMinute limits them
	AtOnce    int // calls under way at once
}

// withDefaults fills in values that the file does not have: PerMinute for Burst, NoLimit for the others.
func (r RateLimit) withDefaults() RateLimit {
	r.PerMinute, r.AtOnce = cmp.Or(r.PerMinute, NoLimit), cmp.Or(r.AtOnce, NoLimit)
	r.Burst = cmp.Or(r.Burst, r.PerMinute)
	return r
}

// Rate holds limits.rate, which limits how often agents may call.
type Rate struct {
	Identity RateLimit // limit of each caller
	Groups   []GroupRate
	Servers  []ServerRate // limits of servers' calls, for all callers together
	Tools    []ToolRate   // limits of tools' calls, for all callers together
}

// A GroupRate is the limit of each caller in a group. It replaces [Rate].Identity. A caller in several groups has the limit of the first.
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

type rateSettings struct {
	Identity        RateLimit
	Groups, Servers Table[RateLimit]
	Tools           Table[Table[RateLimit]]
}

// rate reads limits.rate. Call it after the allowlist files are read.
func (l *loader) rate(allowlist string) {
	from := l.Limits.Rate
	if from == nil {
		return
	}
	r := &Rate{Identity: from.Identity.withDefaults()}
	for _, g := range from.Groups {
		r.Groups = append(r.Groups, GroupRate{g.Name, g.Value.withDefaults()})
	}
	for _, s := range from.Servers {
		r.Servers = append(r.Servers, ServerRate{s.Name, s.Value.withDefaults()})
	}
	for _, server := range from.Tools {
		for _, tool := range server.Value {
			r.Tools = append(r.Tools, ToolRate{server.Name, tool.Name, tool.Value.withDefaults()})
			if allowlist == "" && l.out.Closed == nil {
				l.checkLimitedTool(server.Name, tool.Name)
			}
		}
	}
	l.out.Serve.Rate = r
}

// checkLimitedTool refuses the limit of a tool that no allowlist file names: with a misspelled name, the limit would have no effect.
func (l *loader) checkLimitedTool(server, tool string) {
	var names []string
	for _, a := range l.out.Content.Allowlist {
		if a.Server == server {
			names = append(names, a.Tools...)
		}
	}
	if !slices.Contains(names, tool) {
		l.faultKey(path{"limits", "rate", "tools", server, tool}, nearestOr(tool, names, "allow the tool, or remove the limit"),
			"no allowlist file allows the tool %s of %s", quote(tool), quote(server))
	}
}

// unlikelyRate warns about a tool's limit that calls never reach, because the server's limit is lower.
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
		var above []string
		if s := r.Servers[i]; t.PerMinute != NoLimit && t.PerMinute > s.PerMinute {
			above = append(above, "per_minute")
		}
		if s := r.Servers[i]; t.AtOnce != NoLimit && t.AtOnce > s.AtOnce {
			above = append(above, "at_once")
		}
		if len(above) > 0 {
			l.warn(l.file, l.find(path{"limits", "rate", "tools", t.Server, t.Tool}).value.at,
				"the limit of the tool %s of %s is above that of its server: %s", quote(t.Tool), quote(t.Server), strings.Join(above, ", "))
		}
	}
}
