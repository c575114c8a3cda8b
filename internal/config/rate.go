package config

import (
	"cmp"
	"math"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// NoLimit is the value in a [RateLimit] for a missing limit.
const NoLimit = math.MaxInt

// A RateLimit bounds how often something may be used. The zero RateLimit allows nothing.
type RateLimit struct {
	PerMinute int // average rate
	Burst     int // uses at once before PerMinute limits them
	AtOnce    int // calls under way at once
}

// UnmarshalJSONFrom reads a limit. Without a value, Burst is PerMinute, and the others are NoLimit.
func (r *RateLimit) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type limits RateLimit
	*r = RateLimit{PerMinute: NoLimit, AtOnce: NoLimit}
	err := json.UnmarshalDecode(dec, (*limits)(r))
	r.Burst = cmp.Or(r.Burst, r.PerMinute)
	return err
}

// Rate holds limits.rate, which limits how often agents may call.
type Rate struct {
	Identity RateLimit // limit of each caller
	// Limit of each caller in a group, instead of Identity; with several groups, the first counts.
	Groups  Table[RateLimit]
	Servers Table[RateLimit] // limits of servers' calls, for all callers together
	Tools   Table[Table[RateLimit]]
}

// checkLimitedTools refuses the limit of a tool that no allowlist file names: with a misspelled
// name, the limit would have no effect. Call it after the allowlist files are read.
func (l *loader) checkLimitedTools(allowlist string) {
	if allowlist != "" || l.out.Closed != nil {
		return
	}
	if rate := l.Limits.Rate; rate != nil {
		for _, server := range rate.Tools {
			for _, tool := range server.Value {
				l.checkLimitedTool(path{"limits", "rate", "tools", server.Name}, server.Name, tool.Name)
			}
		}
	}
	for _, server := range l.Servers {
		for _, tool := range server.Value.ReportWithin {
			l.checkLimitedTool(path{"servers", server.Name, "report_within"}, server.Name, tool.Name)
		}
	}
}

func (l *loader) checkLimitedTool(at path, server, tool string) {
	var names []string
	for _, a := range l.out.Content.Allowlist {
		if a.Server == server {
			names = append(names, a.Tools...)
		}
	}
	if !slices.Contains(names, tool) {
		l.addKeyFault(at.child(tool),
			nearestOr(tool, names, "allow the tool, or remove the limit"),
			"no allowlist file allows the tool %s of %s", quote(tool), quote(server))
	}
}
