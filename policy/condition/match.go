package condition

import (
	"slices"

	"pgfsm/internal/glob"
)

// Match has the globs of a policy or risk rule. An empty one is "*".
type Match struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Env    string `json:"env"`
}

// Globs are a compiled [Match]. The zero Globs fit every call.
type Globs struct{ server, tool, env *glob.Glob } // nil fits everything

// Compile compiles the globs. It reports a fault under match.server, match.tool or match.env.
func (m *Match) Compile(fault func(key string, err error)) Globs {
	compile := func(key, pattern string) *glob.Glob {
		if pattern == "" {
			return nil
		}
		g, err := glob.Compile(pattern)
		if err != nil {
			fault(key, err)
		}
		if err != nil || g.MatchesAll() {
			return nil
		}
		return g
	}
	return Globs{compile("match.server", m.Server), compile("match.tool", m.Tool), compile("match.env", m.Env)}
}

// Fit reports whether the globs match the names of a call.
func (g *Globs) Fit(in *Input) bool {
	return (g.server == nil || g.server.Match(in.Server)) && (g.tool == nil || g.tool.Match(in.Tool)) &&
		(g.env == nil || g.env.Match(in.Env))
}

// Misfit returns the first name that a glob does not match, and the glob; empty if all match.
func (g *Globs) Misfit(in *Input) (what, name, pattern string) {
	switch {
	case g.server != nil && !g.server.Match(in.Server):
		return "server", in.Server, g.server.String()
	case g.tool != nil && !g.tool.Match(in.Tool):
		return "tool", in.Tool, g.tool.String()
	case g.env != nil && !g.env.Match(in.Env):
		return "environment", in.Env, g.env.String()
	}
	return "", "", ""
}

// A Placed program is one of a file; see [Fault] for its place.
type Placed struct {
	List    string
	Index   int
	Key     string
	Globs   Globs // the calls for which it is evaluated
	Program *Program
}

// Programs holds the programs of a file, in order.
type Programs []Placed

// Add adds a program. A nil program adds nothing.
func (p *Programs) Add(list string, index int, key string, globs Globs, program *Program) {
	if program != nil {
		*p = append(*p, Placed{list, index, key, globs, program})
	}
}

// Queries returns the queries of the programs that may be evaluated for a call, in order and each
// once.
func (p Programs) Queries(server, tool, env string) (queries []Query) {
	input := &Input{Server: server, Tool: tool, Env: env}
	for i := range p {
		if q := p[i].Program.Queries(); len(q) > 0 && p[i].Globs.Fit(input) {
			queries = append(queries, q...)
		}
	}
	return Distinct(queries)
}

// Asking returns the programs with queries about earlier calls.
func (p Programs) Asking() []Placed {
	return slices.DeleteFunc(slices.Clone(p), func(one Placed) bool { return len(one.Program.Queries()) == 0 })
}

// ReadsSession reports whether a program reads the session of the call.
func (p Programs) ReadsSession() bool {
	return slices.ContainsFunc(p, func(one Placed) bool { return one.Program.ReadsSession() })
}

// ReadsOrigins reports whether a program reads where arguments come from.
func (p Programs) ReadsOrigins() bool {
	return slices.ContainsFunc(p, func(one Placed) bool { return one.Program.ReadsOrigins() })
}

// Uses reports whether a program reads one of actor.groups and actor.claims.NAME.
func (p Programs) Uses(name string) bool {
	return slices.ContainsFunc(p, func(one Placed) bool { return one.Program.Uses(name) })
}
