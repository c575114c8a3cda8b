package config

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// NoLimit is in a [RateLimit] for what the file does not limit.
const NoLimit = math.MaxInt

// A RateLimit bounds how often something may be used. The zero RateLimit allows nothing.
type RateLimit struct {
	PerMinute int // on average
	Burst     int // may come together before PerMinute bounds them
	AtOnce    int // may be under way together
}

// withDefaults returns a limit in which what the file does not have is not limited.
func (r RateLimit) withDefaults() RateLimit {
	r.PerMinute, r.AtOnce = cmp.Or(r.PerMinute, NoLimit), cmp.Or(r.AtOnce, NoLimit)
	r.Burst = cmp.Or(r.Burst, r.PerMinute)
	return r
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

type rateSettings struct {
	Identity        RateLimit
	Groups, Servers Table[RateLimit]
	Tools           Table[Table[RateLimit]]
}

// rate reads limits.rate. The allowlist files were read before.
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

// checkLimitedTool refuses the limit of a tool that no allowlist file names: a name that is written wrongly would limit nothing.
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
