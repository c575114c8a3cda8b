package prove

import (
	"maps"
	"slices"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/condition"
)

// maxGroups bounds the groups whose subsets are tried.
const maxGroups = 8

// divideCaller divides callers by their names, their groups and the roles that follow from both.
func (t *tool) divideCaller(d *domain, sides []*side) (problem string) {
	root := new(tree)
	asksRoles := false
	for _, a := range d.atoms {
		for _, feature := range a.features {
			feature(root)
		}
		asksRoles = asksRoles || slices.Contains(a.reads, "actor.roles")
	}
	groups := slices.Concat(root.names, t.groups)
	if asksRoles {
		for _, s := range sides {
			for _, role := range s.bundle.Content().Roles {
				for _, actor := range role.Actors {
					if group, ok := strings.CutPrefix(actor, policy.GroupPrefix); ok {
						groups = append(groups, group)
					} else if !root.addLiteral(actor) {
						return "a role has an actor whose name is no text"
					}
				}
			}
		}
	}
	slices.Sort(groups)
	if groups = slices.Compact(groups); len(groups) > maxGroups {
		return "it names too many groups"
	}

	// The form of a name decides what else is known of the caller.
	for _, form := range []string{`\Ahttps?://`, `#`, `\A` + policy.LocalUser} {
		if !root.addPattern(form) {
			return "the form of names is not analyzed"
		}
	}
	names, ok := divideAmong(root.literals, root.patterns, root.sizes)
	if !ok {
		return "its patterns have too many states together"
	}
	names = append(names, longName, policy.LocalUser+longName, "https://"+longName+"#a")
	for _, name := range names {
		t.addCallers(d, sides[0].bundle, name, groups)
	}
	return ""
}

// addCallers adds the callers of a name, with every set of groups.
func (t *tool) addCallers(d *domain, b *policy.Bundle, name string, groups []string) {
	add := func(id *policy.Identity, apply func(*Call)) {
		in := t.input()
		in.Actor = b.ConditionActor(name, id)
		d.addCell(cell{
			out:     ask(d.atoms, in),
			tag:     tagOf(name),
			conform: b.Names(t.server, t.name, id) && name != "",
			apply:   apply,
		})
	}
	if !policy.HasSubject(name) {
		add(nil, func(c *Call) { c.Actor = name })
		return
	}

	add(&policy.Identity{Kind: policy.ActorAgent}, func(c *Call) {
		c.Actor, c.identity.Groups = name, nil
	})
	for set := range 1 << len(groups) {
		in := []string{}
		for i, group := range groups {
			if set&(1<<i) != 0 {
				in = append(in, group)
			}
		}
		add(&policy.Identity{Kind: policy.ActorAgent, Groups: &in}, func(c *Call) {
			c.Actor, c.identity.Groups = name, &in
		})
	}
}

// A Call is a call that shows what a claim asks, with everything that conditions read of it.
type Call struct {
	Server      string
	Tool        string
	Env         string
	Args        []byte
	Pinned      bool
	Annotations condition.Annotations
	Actor       string
	Identity    *policy.Identity // nil for callers of no identity provider
	History     []condition.Answer

	identity policy.Identity
	members  map[string]value
}

func (c *Call) set(name string, v value) { c.members[name] = v }

// newCall returns a call of the tool with what no condition asks about.
func (t *tool) newCall() *Call {
	c := &Call{
		Server:   t.server,
		Tool:     t.name,
		Env:      t.env,
		Pinned:   t.pinned,
		Actor:    "agent",
		identity: policy.Identity{Kind: policy.ActorAgent, Groups: new([]string)},
		members:  map[string]value{},
	}
	if t.live != nil {
		c.Annotations = condition.Annotations(t.live.Annotations)
	}
	if len(t.groups) > 0 {
		c.Actor = policy.SubjectName("https://idp.example", "agent")
		c.identity.Groups = &t.groups
	}
	if t.required == nil {
		t.required = map[string]value{}
		for _, name := range t.root.required() {
			if part, possible := t.root.member(name); possible {
				t.required[name] = sample(&part, 1)[0]
			}
		}
	}
	maps.Copy(c.members, t.required)
	return c
}

// finish writes what was set into the members of the call.
func (c *Call) finish() {
	names := slices.Sorted(maps.Keys(c.members))
	parts := make([]value, len(names))
	for i, name := range names {
		parts[i] = c.members[name]
	}
	arguments := objectOf(names, parts)
	c.Args = arguments.appendJSON(nil)
	if policy.HasSubject(c.Actor) {
		c.Identity = &c.identity
	}
}

// Input returns the call as conditions read it.
func (c *Call) Input(b *policy.Bundle) *condition.Input {
	return &condition.Input{
		Server:      c.Server,
		Tool:        c.Tool,
		Env:         c.Env,
		Actor:       b.ConditionActor(c.Actor, c.Identity),
		Args:        c.Args,
		Annotations: c.Annotations,
		Pinned:      c.Pinned,
		Now:         proofTime,
		History:     c.History,
	}
}
