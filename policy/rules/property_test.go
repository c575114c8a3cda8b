package rules

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgfsm/internal/glob"
	"pgfsm/policy/condition"
)

// A property is asked about random policies and a random call. It counts in told how often it had something to say.
type property func(d decider, r *rand.Rand, policies []Policy, in condition.Input, told *int) error

// check asks a property about sets of policies, and calls for each.
func check(d decider, p property, sets, calls int) (told int, err error) {
	r := rand.New(rand.NewPCG(4, 2026))
	for range sets {
		policies := randomPolicies(r, 8)
		for range calls {
			if err := p(d, r, policies, randomCall(r), &told); err != nil {
				return told, err
			}
		}
	}
	return told, nil
}

// Replacing a condition by one that fails never turns a denial or a hold into an allow.
func failureNeverAllows(d decider, r *rand.Rand, policies []Policy, in condition.Input, told *int) error {
	before := d(policies, in)
	i := r.IntN(len(policies))
	for _, spoil := range []func(*Policy) *string{
		func(p *Policy) *string { return &p.When },
		func(p *Policy) *string { return &p.Deny },
		func(p *Policy) *string { return &p.RequireApprovalIf },
	} {
		spoilt := slices.Clone(policies)
		condition := spoil(&spoilt[i])
		if *condition == "" {
			continue
		}
		*condition = failing
		if before.Effect == Allow {
			continue
		}
		*told++
		if after := d(spoilt, in); after.Effect == Allow {
			return counterexample(policies, in, "%s became %s after a condition of %s failed", before.Effect, after.Effect,
				policies[i].ID)
		}
	}
	return nil
}

// A policy added below never changes a decision above.
func addingBelow(d decider, r *rand.Rand, policies []Policy, in condition.Input, told *int) error {
	before := d(policies, in)
	at := slices.IndexFunc(policies, func(p Policy) bool { return p.ID == before.Policy })
	if at < 0 {
		return nil
	}
	*told++
	more := slices.Insert(slices.Clone(policies), at+1+r.IntN(len(policies)-at), randomPolicy(r, 1000), randomPolicy(r,
		1001))
	if after := d(more, in); !equal(before, after) {
		return counterexample(more, in, "%+v became %+v", before, after)
	}
	return nil
}

// Neighbours of which at most one can match can change places.
func permuting(d decider, r *rand.Rand, policies []Policy, in condition.Input, told *int) error {
	if len(policies) < 2 {
		return nil
	}
	i := r.IntN(len(policies) - 1)
	if !apart(policies[i].Match, policies[i+1].Match) {
		return nil
	}
	*told++
	swapped := slices.Clone(policies)
	swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
	if before, after := d(policies, in), d(swapped, in); !equal(before, after) {
		return counterexample(policies, in, "%+v became %+v after %d changed places with the next", before, after, i)
	}
	return nil
}

func apart(a, b Match) bool {
	for _, two := range [][2]string{{a.Server, b.Server}, {a.Tool, b.Tool}, {a.Env, b.Env}} {
		x, errX := glob.Compile(cmp.Or(two[0], "*"))
		y, errY := glob.Compile(cmp.Or(two[1], "*"))
		if errX == nil && errY == nil && !glob.Overlaps(x, y) {
			return true
		}
	}
	return false
}

// A shadow policy changes nothing but the record, and the record says what it would do if it alone were enforced.
func shadowsOnlyWatch(d decider, _ *rand.Rand, policies []Policy, in condition.Input, told *int) error {
	got := d(policies, in)
	without := slices.DeleteFunc(slices.Clone(policies), func(p Policy) bool { return p.Mode == Shadow })
	want := d(without, in)
	recorded := got.Shadow
	got.Shadow = nil
	if !equal(got, want) {
		return counterexample(policies, in, "with shadows %+v, without %+v", got, want)
	}
	for i, p := range policies {
		if p.Mode != Shadow {
			continue
		}
		*told++
		enforced := slices.Clone(policies)
		enforced[i].Mode = Enforce
		then := d(enforced, in)
		at := slices.IndexFunc(recorded, func(s ShadowDecision) bool { return s.Policy == p.ID })
		switch {
		case at < 0 && then.Policy == p.ID:
			return counterexample(policies, in, "%s would have decided and is not recorded", p.ID)
		case at >= 0 && recorded[at] != ShadowDecision{then.Condition, then.Effect, then.Failed, then.Policy}:
			return counterexample(policies, in, "%s is recorded as %+v and decides %+v", p.ID, recorded[at], then)
		}
	}
	return nil
}

// What decides is the same with and without an index, and what the package comment says.
func meansWhatItSays(d decider, _ *rand.Rand, policies []Policy, in condition.Input, told *int) error {
	*told++
	if got, want := d(policies, in), model.decide(policies, in); !equal(got, want) {
		return counterexample(policies, in, "decided %+v, want %+v", got, want)
	}
	return nil
}

var model = newNaive()

var properties = []struct {
	name  string
	holds property
	// breaks is a decider that the property must notice.
	breaks decider
}{
	{"a-failing-condition-never-turns-no-into-yes", failureNeverAllows, openDecider},
	{"a-policy-below-changes-nothing-above", addingBelow, lastDecider},
	{"neighbours-that-cannot-both-match-change-places", permuting, blindDecider},
	{"shadows-only-watch", shadowsOnlyWatch, enforcingDecider},
	{"decide-means-what-the-manual-says", meansWhatItSays, openDecider},
}

var openModel = func() *naive { n := newNaive(); n.open = true; return n }()

// openDecider takes what fails for false.
func openDecider(policies []Policy, in condition.Input) Decision {
	return openModel.decide(policies, in)
}

// lastDecider lets the last match win.
func lastDecider(policies []Policy, in condition.Input) Decision {
	reversed := slices.Clone(policies)
	slices.Reverse(reversed)
	return model.decide(reversed, in)
}

// blindDecider does not look at environments.
func blindDecider(policies []Policy, in condition.Input) Decision {
	blind := slices.Clone(policies)
	for i := range blind {
		blind[i].Match.Env = ""
	}
	return model.decide(blind, in)
}

// enforcingDecider has forgotten about shadows.
func enforcingDecider(policies []Policy, in condition.Input) Decision {
	enforced := slices.Clone(policies)
	for i := range enforced {
		enforced[i].Mode = Enforce
	}
	return model.decide(enforced, in)
}

func TestProperties(t *testing.T) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			sets := 60
			if os.Getenv("PGFSM_SOAK") != "" {
				sets = 3000
			}
			told, err := check(compiled(t), p.holds, sets, 6)
			if err != nil {
				t.Fatal(err)
			}
			if told < sets/4 {
				t.Errorf("the property had something to say %d times in %d sets: it is hardly tested", told, sets)
			}
			t.Logf("asked %d times", told)
		})
	}
}

func TestProperties_CanFail(t *testing.T) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			if told, err := check(p.breaks, p.holds, 5000, 6); !errors.Is(err, errCounterexample) {
				t.Errorf("a decider that is wrong passed %d questions, %v; want a counterexample", told, err)
			}
		})
	}
}
