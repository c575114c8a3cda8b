package prove

import (
	"maps"
	"slices"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/condition"
)

// A form is a kind of caller. What else is known of a caller depends on it.
type form uint8

const (
	staticAgent  form = iota // of no identity provider
	staticPerson             // of no identity provider
	subject                  // of an identity provider
)

func formOf(actor string) form {
	switch {
	case policy.HasSubject(actor):
		return subject
	case strings.HasPrefix(actor, policy.LocalUser):
		return staticPerson
	}
	return staticAgent
}

// usualNames name a caller of each form about which nothing else is asked.
var usualNames = [...]string{"agent", policy.LocalUser + "person", policy.SubjectName("https://idp.example", "agent")}

// forms returns the forms of the callers that may call the tool.
func (t *tool) forms() []form {
	if len(t.groups) > 0 { // only members of groups
		return []form{subject}
	}
	return []form{staticAgent, staticPerson, subject}
}

const tooManyStates = "its patterns have too many states together"

// longName is a name that no condition can use.
var longName = strings.Repeat("a", condition.MaxName+1)

// divideName divides what conditions ask about the caller's kind, client, claims and so on.
func (p *problem) divideName(d *domain) {
	root := treeOf(d.atoms)
	claim, isClaim := strings.CutPrefix(d.name, condition.ClaimPrefix)
	if p.form != subject || isClaim { // without the name
		p.addCell(d, true, func(*Call) {})
	}
	if p.form != subject {
		return
	}
	if d.name == placeKind {
		for _, kind := range []string{policy.ActorAgent, policy.ActorPerson, ""} {
			p.addCell(d, true, func(c *Call) { c.identity.Kind = kind })
		}
		return
	}

	texts, ok := divideAmong(root.literals, root.patterns, root.sizes)
	if !ok {
		d.problem = tooManyStates
	}
	for _, name := range append(texts, longName) {
		p.addCell(d, true, func(c *Call) {
			switch {
			case isClaim:
				c.identity.Claims = append(c.identity.Claims, condition.Claim{Name: claim, Value: name})
			case d.name == placeClient:
				c.identity.Client = name
			default:
				c.identity.OnBehalfOf = name
			}
		})
	}
}

// maxGroups bounds the groups whose subsets are tried.
const maxGroups = 8

// divideCaller divides callers by their names, their groups and the roles that follow from both.
func (p *problem) divideCaller(d *domain) {
	root := treeOf(d.atoms)
	groups := slices.Concat(root.names(), p.tool.groups)
	if slices.ContainsFunc(d.atoms, func(a *atom) bool { return slices.Contains(a.reads, "actor.roles") }) {
		for _, s := range p.sides {
			for _, role := range s.bundle.Content().Roles {
				for _, actor := range role.Actors {
					if group, ok := strings.CutPrefix(actor, policy.GroupPrefix); ok {
						groups = append(groups, group)
					} else {
						addTo(&root.literals, actor)
					}
				}
			}
		}
	}
	slices.Sort(groups)
	if groups = slices.Compact(groups); len(groups) > maxGroups {
		d.problem = "it names too many groups"
		return
	}

	// The patterns divide names by their forms.
	patterns := append(root.patterns, `\Ahttps?://`, `#`, `\A`+policy.LocalUser)
	names, ok := divideAmong(root.literals, patterns, root.sizes)
	if !ok {
		d.problem = tooManyStates
	}
	names = append(names, longName, policy.LocalUser+longName, "https://"+longName+"#a")
	for _, name := range names {
		if formOf(name) == p.form {
			p.addCallers(d, name, groups)
		}
	}
}

// addCallers adds the callers of a name, with every set of groups.
func (p *problem) addCallers(d *domain, name string, groups []string) {
	add := func(in *[]string) {
		id := &policy.Identity{Kind: policy.ActorAgent, Groups: in}
		if p.form != subject {
			id = nil
		}
		conform := name != "" && p.sides[0].bundle.Names(p.tool.server, p.tool.name, id)
		p.addCell(d, conform, func(c *Call) { c.Actor, c.identity.Groups = name, in })
	}
	add(nil) // unknown groups
	for set := range 1 << len(groups) {
		in := []string{}
		for i, group := range groups {
			if set&(1<<i) != 0 {
				in = append(in, group)
			}
		}
		if p.form == subject {
			add(&in)
		}
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

// newCall returns a call of the tool with what no condition asks about.
func (t *tool) newCall(f form) *Call {
	in := t.input()
	c := &Call{
		Server:      t.server,
		Tool:        t.name,
		Env:         t.env,
		Pinned:      t.pinned,
		Annotations: in.Annotations,
		Actor:       usualNames[f],
		identity:    policy.Identity{Kind: policy.ActorAgent, Groups: &t.groups},
	}
	if t.required == nil {
		t.required = map[string]value{}
		for _, name := range t.root.Required() {
			if part, possible := t.root.member(name); possible {
				t.required[name] = sample(&part, 1)[0]
			}
		}
	}
	c.members = maps.Clone(t.required)
	return c
}

// finish writes what was set into the members of the call.
func (c *Call) finish() {
	var all members
	for _, name := range slices.Sorted(maps.Keys(c.members)) {
		all = all.appendMember(name, c.members[name])
	}
	c.Args = []byte(all.value().json)
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
