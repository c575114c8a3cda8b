package policy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/check"
	"pgfsm/policy"
	"pgfsm/policy/rules"
	"pgfsm/states/statestest"
)

const here, there = "https://a.example", "https://b.example"

// peopleBundle has roles by names and groups, and persons of two names.
func peopleBundle(t *testing.T, change func(*policy.Content)) *policy.Bundle {
	t.Helper()
	c := statestest.Content()
	c.Identity = &policy.IdentityRules{
		Claims: []string{"department", "mail"},
		Same:   [][]string{{"bob", here + "#1"}, {"eve", there + "#2"}},
	}
	if change != nil {
		change(&c)
	}
	b, err := policy.Compile(c)
	check.NoError(t, err)
	return b
}

func owners(c *policy.Content) {
	c.Roles = []policy.Role{{Role: "owners", Actors: []string{"alice", policy.GroupPrefix + "owners"}}}
}

func denies(when string) func(*policy.Content) {
	return func(c *policy.Content) {
		c.Policy = statestest.Policies(rules.Policy{ID: "x", Effect: rules.Deny, When: when})
	}
}

func groups(names ...string) *policy.Identity {
	return &policy.Identity{Client: "ci", Kind: policy.ActorAgent, Groups: new(append([]string{}, names...))}
}

func TestSamePersonByConfiguration(t *testing.T) {
	b := peopleBundle(t, nil)
	for _, tt := range []struct {
		name, x, y string
		want       bool
	}{
		{"both-names-of-one-person", "bob", here + "#1", true},
		{"in-another-letter-case", "BOB", here + "#1", true},
		{"as-local-user", policy.LocalUser + "bob", here + "#1", true},
		{"subject-of-another-issuer", "bob", there + "#1", false},
		{"name-that-is-not-configured", "carol", here + "#1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if b.SamePerson(tt.x, tt.y) != tt.want || b.SamePerson(tt.y, tt.x) != tt.want {
				t.Errorf("SamePerson(%q, %q) is not %t both ways", tt.x, tt.y, tt.want)
			}
		})
	}
}

func TestNameOfTwoPersonsIsRefused(t *testing.T) {
	c := statestest.Content()
	c.Identity = &policy.IdentityRules{Same: [][]string{{"bob", here + "#1"}, {"BOB", there + "#2"}}}
	if _, err := policy.Compile(c); err == nil || !strings.Contains(err.Error(), "one of two persons") {
		t.Errorf("Compile() = %v, want an error about BOB", err)
	}
}

func TestRolesOf(t *testing.T) {
	b := peopleBundle(t, owners)
	for _, tt := range []struct {
		name, actor string
		id          *policy.Identity
		want        []string
	}{
		{"by-name", "alice", nil, []string{"owners"}},
		{"by-group", here + "#1", groups("owners"), []string{"owners"}},
		{"other-group", here + "#1", groups("guests"), nil},
		{"unknown-groups", here + "#1", &policy.Identity{Kind: policy.ActorAgent}, nil},
		{"group-in-another-letter-case", here + "#1", groups("Owners"), nil},
		{"actor-named-like-a-group", policy.GroupPrefix + "owners", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := b.RolesOf(tt.actor, tt.id); !slices.Equal(got, tt.want) {
				t.Errorf("RolesOf() = %q, want %q", got, tt.want)
			}
		})
	}
}

// TestRecorded: a record has what the bundle reads of an identity, and nothing else.
func TestRecorded(t *testing.T) {
	full := groups("guests", "owners", "secret")
	full.Claims = []policy.Claim{{Name: "department", Value: "it"}, {Name: "mail", Value: "a@example.com"}}
	unknown := &policy.Identity{Client: "ci", Kind: policy.ActorAgent}
	for _, tt := range []struct {
		name, actor string
		change      func(*policy.Content)
		full, want  *policy.Identity
	}{
		{"nothing-is-read", here + "#1", nil, full, unknown},
		{"group-of-a-role", here + "#1", owners, full, groups("owners")},
		{"no-group-of-a-role", here + "#1", owners, groups("guests"), groups()},
		{"all-groups", here + "#1", denies("'x' in actor.groups"), full, groups("guests", "owners", "secret")},
		{"one-claim", here + "#1", denies("actor.claims.department == 'it'"), full,
			&policy.Identity{Client: "ci", Kind: policy.ActorAgent, Claims: full.Claims[:1]}},
		{"unknown-groups-stay-unknown", here + "#1", owners, unknown, unknown},
		{"actor-of-no-provider", "alice", owners, full, nil},
		{"nothing-is-known", here + "#1", owners, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, peopleBundle(t, tt.change).Recorded(tt.actor, tt.full)); d != "" {
				t.Errorf("Recorded() (-want +got):\n%s", d)
			}
		})
	}
}

// TestReread: groups that a record left out are unknown to a bundle that reads them.
func TestReread(t *testing.T) {
	onlyOncall := func(c *policy.Content) { c.Allowlist[0].Group = "oncall" }
	all := denies("'x' in actor.groups")
	for _, tt := range []struct {
		name     string
		by, read func(*policy.Content)
		known    bool
	}{
		{"same-groups", owners, owners, true},
		{"another-group", owners, onlyOncall, false},
		{"all-groups-read-but-not-recorded", owners, all, false},
		{"all-groups-recorded", all, owners, true},
		{"nothing-is-read", owners, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			by := peopleBundle(t, tt.by)
			recorded := by.Recorded(here+"#1", groups("owners"))
			if got := peopleBundle(t, tt.read).Reread(recorded, by); (got.Groups != nil) != tt.known {
				t.Errorf("Reread() = %+v, want known groups: %t", got, tt.known)
			}
			if recorded.Groups == nil {
				t.Error("Reread changed the record")
			}
		})
	}
}

// TestAllowlistOfAGroup: only members of its group may call a tool of a group's allowlist (INV-3).
func TestAllowlistOfAGroup(t *testing.T) {
	ofGroup := func(c *policy.Content) { c.Allowlist[0].Group = "oncall" }
	for _, tt := range []struct {
		name   string
		change func(*policy.Content)
		id     *policy.Identity
		listed bool
	}{
		{"default-list-and-nobody", nil, nil, true},
		{"default-list-and-unknown-groups", nil, &policy.Identity{}, true},
		{"member", ofGroup, groups("guests", "oncall"), true},
		{"member-of-another-group", ofGroup, groups("guests"), false},
		{"no-groups", ofGroup, groups(), false},
		{"unknown-groups", ofGroup, &policy.Identity{}, false},
		{"actor-of-no-provider", ofGroup, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := peopleBundle(t, tt.change)
			c := b.Catalog("test", statestest.Listings(statestest.Page))
			plan := must(statestest.GoodPlan)
			_, v := b.Validate(c, plan, tt.id)
			if v.Allows() != tt.listed || !tt.listed && v.Code != policy.CodeToolNotAllowed {
				t.Errorf("Validate() = %+v, want listed: %t", v, tt.listed)
			}
			shown := slices.ContainsFunc(b.EffectiveFor(c, tt.id), func(tool *policy.Tool) bool { return tool.Server == plan.Server && tool.Name == plan.Tool })
			if shown != tt.listed {
				t.Errorf("EffectiveFor() shows the tool: %t, want %t", shown, tt.listed)
			}
		})
	}
}
