package policy

import (
	"fmt"
	"slices"
	"strings"

	"pgfsm/policy/condition"
)

// reads holds the parts of identities on which the judgements of a bundle depend.
type reads struct {
	groups bool     // conditions read actor.groups
	roles  []string // the groups in roles, sorted
	named  []string // the groups in roles and in the allowlist, sorted
	claims []string // the claims that conditions read, sorted
}

// compileIdentity compiles the content's rules about actors and their identity provider.
func (b *Bundle) compileIdentity() error {
	uses := func(name string) bool {
		return b.risk.Programs().Uses(name) || b.rules.Programs().Uses(name) || b.items.Uses(name)
	}
	b.reads.groups = uses("actor.groups")

	for _, claim := range b.content.Identity.claimNames() {
		if uses(condition.ClaimPrefix + claim) {
			b.reads.claims = append(b.reads.claims, claim)
		}
	}

	for _, r := range b.content.Roles {
		for _, actor := range r.Actors {
			if group, ok := strings.CutPrefix(actor, GroupPrefix); ok {
				b.reads.roles = append(b.reads.roles, group)
			}
		}
	}

	// A record needs the groups of roles and of the allowlist, and no others.
	b.reads.named = slices.Clone(b.reads.roles)
	for _, a := range b.content.Allowlist {
		if a.Group != "" {
			b.reads.named = append(b.reads.named, a.Group)
		}
	}

	for _, list := range []*[]string{&b.reads.claims, &b.reads.roles, &b.reads.named} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}

	if b.content.Identity == nil {
		return nil
	}

	b.same = make(map[string]int)
	for i, names := range b.content.Identity.Same {
		for _, name := range names {
			key := nameKey(name)
			if first, ok := b.same[key]; ok && first != i {
				return fmt.Errorf("identity: %q is one of two persons", clip(name))
			}
			b.same[key] = i
		}
	}

	return nil
}

// nameKey is equal for two names if [SamePerson] is true for them.
func nameKey(name string) string { return condition.FoldCase(strings.TrimPrefix(name, LocalUser)) }

// SamePerson reports whether two names identify one person: by the package's function, or because
// the configuration says so.
func (b *Bundle) SamePerson(x, y string) bool {
	if SamePerson(x, y) {
		return true
	}
	first, ok := b.same[nameKey(x)]
	second, too := b.same[nameKey(y)]
	return ok && too && first == second
}

// RolesOf returns the roles of an actor, in the operator's order. An actor whose groups are unknown
// has no role by a group.
func (b *Bundle) RolesOf(actor string, id *Identity) []string {
	isActor := func(name string) bool {
		if group, ok := strings.CutPrefix(name, GroupPrefix); ok {
			return id.InGroup(group)
		}
		return name == actor
	}
	var roles []string
	for _, r := range b.content.Roles {
		if slices.ContainsFunc(r.Actors, isActor) {
			roles = append(roles, r.Role)
		}
	}
	return roles
}

// RoleGroups returns the groups of an identity that are in roles, sorted: those that are recorded
// with a vote.
func (b *Bundle) RoleGroups(id *Identity) []string { return b.reads.groupsIn(b.reads.roles, id) }

func (r *reads) groupsIn(names []string, id *Identity) (in []string) {
	for _, group := range names {
		if id.InGroup(group) {
			in = append(in, group)
		}
	}
	return in
}

// Recorded returns the part of an identity that the bundle reads, and the display names, for the
// record of a run. It is nil for actors of no identity provider: all of their identity is in their
// name.
func (b *Bundle) Recorded(actor string, full *Identity) *Identity {
	if full == nil || !HasSubject(actor) {
		return nil
	}

	id := &Identity{
		Client:            full.Client,
		Credential:        full.Credential,
		Display:           full.Display,
		Kind:              full.Kind,
		OnBehalfOf:        full.OnBehalfOf,
		OnBehalfOfDisplay: full.OnBehalfOfDisplay,
	}

	// Claims are recorded in the order of their names.
	for _, name := range b.reads.claims {
		for _, c := range full.Claims {
			if c.Name == name {
				id.Claims = append(id.Claims, c)
				break
			}
		}
	}

	// Conditions that read actor.groups may ask for any group, so all are recorded.
	switch {
	case full.Groups == nil:
	case b.reads.groups:
		id.Groups = new(slices.Clone(*full.Groups))
	case len(b.reads.named) > 0:
		id.Groups = new(append([]string{}, b.reads.groupsIn(b.reads.named, full)...))
	}

	return id
}

// Reread returns the bundle's view of an identity that [Bundle.Recorded] of another bundle
// returned. If the bundle reads groups that the other one did not record, the groups are unknown.
func (b *Bundle) Reread(recorded *Identity, by *Bundle) *Identity {
	if recorded == nil || by.reads.groups || !b.reads.groups && !slices.ContainsFunc(b.reads.named, by.omitsGroup) {
		return recorded
	}
	id := *recorded
	id.Groups = nil
	return &id
}

// Omits reports whether the bundle leaves a name of the actor's identity out of its records:
// actor.groups, or a claim.
func (b *Bundle) Omits(name string) bool {
	if claim, ok := strings.CutPrefix(name, condition.ClaimPrefix); ok {
		return !slices.Contains(b.reads.claims, claim)
	}
	return !b.reads.groups
}

// omitsGroup reports whether the bundle records the named groups, and not this one.
func (b *Bundle) omitsGroup(group string) bool { return !slices.Contains(b.reads.named, group) }

// ConditionActor returns the names that conditions may read about an actor.
func (b *Bundle) ConditionActor(actor string, id *Identity) condition.Actor {
	a := condition.Actor{ID: actor, Roles: b.RolesOf(actor, id)}
	switch {
	case HasSubject(actor): // nothing is known but what is recorded
		if id == nil {
			id = new(Identity)
		}
	case id == nil:
		id = &Identity{Kind: staticKind(actor), Groups: new([]string)}
	}
	a.Kind, a.Client, a.OnBehalfOf, a.Groups, a.Claims = id.Kind, id.Client, id.OnBehalfOf, id.Groups, id.Claims
	a.RolesUnknown = id.Groups == nil && len(b.reads.roles) > 0
	return a
}

// staticKind is the kind of an actor of no identity provider.
func staticKind(actor string) string {
	if strings.HasPrefix(actor, LocalUser) {
		return ActorPerson
	}
	return ActorAgent
}
